#!/usr/bin/env python3
"""Trains the model of a case three steps, or lets it read prompts, and prints as a line of JSON what its
tensors take and what it had requested from PyTorch's allocator.

Usage: train_estimated.py CASE, a JSON object as evaluate_estimate.py makes it.
"""

import contextlib
import json
import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "programs"))
from train_gpt import GPT  # noqa: E402

ARCHITECTURES = {"bert": "BertForMaskedLM", "t5": "T5ForConditionalGeneration", "gpt2": "GPT2LMHeadModel"}


def make_model(case):
    if "config" not in case:
        return GPT(case["vocabulary"], case["layers"], case["hidden"], case["heads"], case["seq"],
                   case["checkpointing"] == "full")  # in fp32
    import transformers
    from transformers import masking_utils
    # The simulated device computes nothing, so the question whether the positions are those of one sequence has no
    # answer. On a device it is yes, and flash attention needs no mask.
    masking_utils.find_packed_sequence_indices = lambda positions: None
    config = transformers.AutoConfig.for_model(**case["config"])
    config.use_cache = case.get("serve", False)
    config._attn_implementation = "eager" if case["attention"] == "eager" else "sdpa"
    model = getattr(transformers, case["config"]["architectures"][0])(config)
    if case["checkpointing"] == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if case["precision"] == "bf16":
        model = model.bfloat16()
    if case.get("lora"):
        import peft  # its adapters are in fp32
        model = peft.get_peft_model(model, peft.LoraConfig(r=case["lora"], target_modules="all-linear"))
    return model


def make_optimizer(case, parameters):
    kind = case["optimizer"]
    if kind == "adamw":
        return torch.optim.AdamW(parameters)
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9 if kind == "sgd-momentum" else 0)


def bytes_of(tensors):
    return sum(tensor.nbytes for tensor in tensors if tensor is not None and tensor.is_cuda)


def loss_of(case, model, tokens):
    if "config" in case:
        return model(input_ids=tokens, labels=tokens).loss
    logits = model(tokens)
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def requested(moment="current"):
    """Returns what the program has asked for. A block may be larger, which matters for small models."""
    return torch.cuda.memory_stats()[f"requested_bytes.all.{moment}"]


def train(case, model, tokens):
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = make_optimizer(case, parameters)
    autocast = (lambda: torch.autocast("cuda", torch.bfloat16)) if case["precision"] == "mixed" else contextlib.nullcontext
    peaks = {}

    def end(moment, before):
        peaks[moment] = requested("peak") - before
        torch.cuda.reset_peak_memory_stats()

    for _ in range(3):
        if not case.get("accumulate"):
            optimizer.zero_grad()
        torch.cuda.reset_peak_memory_stats()
        before = requested()
        kept_gradients = bytes_of(p.grad for p in parameters)
        with autocast():
            loss = loss_of(case, model, tokens)
        kept = requested() - before
        end("forward", before)
        loss.backward()
        end("backward", before)
        gradients = bytes_of(p.grad for p in parameters)
        optimizer.step()
        end("optimizer", before)
        del loss
    state = bytes_of(value for of in optimizer.state.values() for value in of.values() if torch.is_tensor(value))
    constant = bytes_of(model.parameters()) + state + kept_gradients
    return {"weights": bytes_of(model.parameters()), "gradients": gradients, "optimizer_state": state, "kept": kept,
            "peaks": {moment: constant + peak for moment, peak in peaks.items()}}


def serve(case, model, tokens):
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            torch.cuda.reset_peak_memory_stats()
            before = requested()
            out = model(input_ids=tokens, use_cache=True, logits_to_keep=1)
            peak = requested("peak") - before
            cache = bytes_of(tensor for layer in out.past_key_values.layers for tensor in (layer.keys, layer.values))
            del out
    weights = bytes_of(model.parameters())
    return {"weights": weights, "kv_cache": cache, "peaks": {"serving": weights + peak}}


def main():
    case = json.loads(sys.argv[1])
    model = make_model(case).cuda()
    tokens = torch.randint(2, case["vocabulary"], (case["batch"], case["seq"])).cuda()
    print(json.dumps((serve if case.get("serve") else train)(case, model, tokens)))


if __name__ == "__main__":
    main()
