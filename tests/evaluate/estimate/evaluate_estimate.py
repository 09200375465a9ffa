#!/usr/bin/env python3
"""Measures how well `estimate` predicts: models are trained on the simulated device, with sizes drawn from the seed.

The truth is the tensors of each program and PyTorch's own statistics. The estimate sees the configuration alone.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "evaluate"), str(ROOT / "tests" / "evaluate" / "categories")]
from evaluate_libraries import python_with_libraries  # noqa: E402
from evaluation import Evaluation  # noqa: E402

PROGRAM = pathlib.Path(__file__).resolve().parent / "train_estimated.py"
CONTEXT, MEMORY = 20 << 20, 64 << 30
DEFAULTS = {"precision": "mixed", "optimizer": "adamw", "attention": "flash", "checkpointing": "none"}
# A shape without a family is the GPT of tests/programs/train_gpt.py; the others are transformers' models.
CASES = (
    {"precision": "fp32"},
    {"checkpointing": "full"},
    {"family": "gpt2", "precision": "fp32", "attention": "eager"},
    {"family": "gpt2"},
    {"family": "gpt2", "checkpointing": "full"},
    {"family": "llama", "precision": "bf16"},
    {"family": "llama", "attention": "eager", "precision": "mixed"},
    {"family": "llama", "precision": "fp32", "optimizer": "sgd-momentum"},
    {"family": "llama", "lora": 8},
    {"family": "llama", "lora": 8, "precision": "bf16"},
    {"family": "llama", "precision": "bf16", "serve": True},
    {"family": "llama", "precision": "bf16", "serve": True, "attention": "eager"},
    {"family": "mistral", "precision": "bf16", "checkpointing": "full"},
    {"family": "qwen2"},
    {"family": "qwen3", "precision": "bf16", "attention": "eager"},
    {"family": "gemma", "precision": "bf16"},
    {"family": "phi3", "accumulate": True},
    {"family": "opt", "precision": "bf16", "attention": "eager", "optimizer": "sgd"},
    {"family": "gpt_neox"},
    {"family": "bert", "attention": "eager"},
    {"family": "bert"},
    {"family": "t5", "precision": "fp32", "attention": "eager"},
)
QUICK = CASES[:2]
ARCHITECTURES = {
    "gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM", "gemma": "GemmaForCausalLM", "phi3": "Phi3ForCausalLM", "opt": "OPTForCausalLM",
    "gpt_neox": "GPTNeoXForCausalLM", "bert": "BertForMaskedLM", "t5": "T5ForConditionalGeneration",
}
TABLE = ("weights", "gradients", "optimizer_state", "kv_cache", "kept", "peak")


def config_of(family, size):
    """Returns a config.json with the key names of the family."""
    config = {"model_type": family, "architectures": [ARCHITECTURES[family]], "vocab_size": size["vocabulary"],
              "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    if family == "gpt2":
        return config | {"n_embd": size["hidden"], "n_layer": size["layers"], "n_head": size["heads"], "n_positions": size["seq"]}
    if family == "t5":
        return config | {"d_model": size["hidden"], "num_layers": size["layers"], "num_decoder_layers": size["layers"],
                         "num_heads": size["heads"], "d_kv": size["hidden"] // size["heads"], "d_ff": 4 * size["hidden"],
                         "decoder_start_token_id": 0}
    config |= {"hidden_size": size["hidden"], "num_hidden_layers": size["layers"], "num_attention_heads": size["heads"],
               "max_position_embeddings": 1024}
    if family == "opt":
        return config | {"ffn_dim": 4 * size["hidden"], "word_embed_proj_dim": size["hidden"]}
    if family in ("bert", "gpt_neox"):
        return config | {"intermediate_size": 4 * size["hidden"]}
    return config | {"intermediate_size": size["inner"], "num_key_value_heads": size["heads"] // size["grouped"],
                     "head_dim": size["hidden"] // size["heads"]}


def make_case(chosen, seed):
    rng = random.Random(f"{seed}{chosen}")
    heads = rng.choice((4, 8))
    size = {"heads": heads, "hidden": heads * rng.choice((64, 96)), "layers": rng.choice((4, 6, 8)),
            "vocabulary": rng.choice((4000, 10000)), "batch": rng.choice((4, 8)), "seq": rng.choice((192, 256, 512)),
            "grouped": rng.choice((2, 4))}
    size["inner"] = size["hidden"] * rng.choice((2, 3)) + 64
    case = DEFAULTS | chosen | size
    if "family" in case:
        case["config"] = config_of(case["family"], size)
    return case


def name_of(case):
    words = [case.get("family", "gpt"), case["precision"]]
    words += ["serving"] if case.get("serve") else [case["optimizer"]]
    words += [case["attention"]] + (["checkpointing"] if case["checkpointing"] == "full" else [])
    words += ["LoRA"] if case.get("lora") else []
    words += ["accumulating"] if case.get("accumulate") else []
    return (", ".join(words) + f"; {case['layers']} x {case['hidden']}, {case['heads']} heads, {case['vocabulary']} words, "
            f"{case['batch']} x {case['seq']}")


class Runs:
    def __init__(self, evaluation):
        self.build, self.device = evaluation.build, evaluation.device
        self.tool = str(self.build / "bin" / "gpumemtrace")
        self.python = evaluation.python()
        self.libraries = None if evaluation.options.quick else python_with_libraries()

    def train(self, case, recording):
        command = [self.tool, "run", "--quiet", "--exit-wait", "100s", "-o", str(recording), "--",
                   *self.device, self.libraries if "config" in case else self.python, "-B",
                   str(PROGRAM), json.dumps(case)]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "SIMCUDA_MEMORY": str(MEMORY), "SIMCUDA_CONTEXT": str(CONTEXT)})
        if not done.stdout.startswith("{"):
            sys.exit(f"{name_of(case)}: ended with {done.returncode}:\n{done.stderr[-3000:]}")
        return json.loads(done.stdout)

    def estimate(self, case, folder, *more):
        if "config" in case:
            path = folder / "config.json"
            path.write_text(json.dumps(case["config"]), encoding="utf-8")
            words = ["--config", str(path)]
        else:
            words = [word for key in ("layers", "hidden", "heads", "vocabulary") for word in (f"--{key}", str(case[key]))]
        words += ["--precision", case["precision"], "--attention", case["attention"], "--batch", str(case["batch"]),
                  "--seq", str(case["seq"])]
        if case.get("serve"):
            words.append("--serve")
        else:
            words += ["--optimizer", case["optimizer"], "--checkpointing", case["checkpointing"]]
        words += ["--lora", str(case["lora"])] if case.get("lora") else []
        words += ["--accumulate"] if case.get("accumulate") else []
        done = subprocess.run([self.tool, "estimate", *words, *more, "--json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{name_of(case)}: estimate ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def case(self, chosen, seed):
        case = make_case(chosen, seed)
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            folder = pathlib.Path(name)
            truth = self.train(case, folder / "run.gmt")
            answer = self.estimate(case, folder, "--recording", str(folder / "run.gmt"))
            return {"case": case, "seed": seed, "estimated": quantities(answer), "true": flat(truth), "answer": answer}


def allocated(moment):
    return moment["bytes"] - sum(part["bytes"] for part in moment["parts"] if part["name"] in ("context", "cache"))


def quantities(answer):
    """Returns the estimate of each measured quantity."""
    moments = {moment["name"]: moment for moment in answer["moments"]}
    parts = {name: {part["name"]: part["bytes"] for part in moment["parts"]} for name, moment in moments.items()}
    if "serving" in moments:
        return {"weights": parts["serving"]["weights"], "kv_cache": parts["serving"]["kv_cache"],
                "peak": allocated(moments["serving"])}
    optimizer = parts["optimizer"]
    return {"weights": optimizer["weights"], "gradients": optimizer["gradients"],
            "optimizer_state": optimizer.get("optimizer_state", 0), "kept": answer["kept_bytes"],
            "peak": max(map(allocated, moments.values()))}


def flat(truth):
    return {key: value for key, value in truth.items() if key != "peaks"} | {"peak": max(truth["peaks"].values())}


def error(run, name):
    true = run["true"][name]
    return run["estimated"][name] / true - 1 if true else float(run["estimated"][name] != 0)


def residual(run):
    """Returns by how much the recorded groups differ from the estimate, without inputs and workspaces, which it has not."""
    groups = [group for group in run["answer"]["recorded"]["groups"] if group["name"] != "other"]
    return sum(group["recorded_bytes"] for group in groups) / sum(group["bytes"] for group in groups) - 1


def main():
    evaluation = Evaluation("estimate", "How much memory a model will need")
    runs = Runs(evaluation)
    cases = QUICK if evaluation.options.quick else CASES
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(lambda key: runs.case(*key), [(c, s) for s in evaluation.seeds for c in cases]))
    evaluation.text(
        f"{len(results)} models are trained on {evaluation.device_name}: the GPT of tests/programs, and models of transformers; "
        "two read prompts. `estimate` gets their configuration. Weights, gradients and optimizer state are compared with "
        "the program's tensors; what a forward pass keeps for the backward pass, and the peak of a step, with PyTorch's "
        "statistics.")
    rows = [[name_of(run["case"]), *(f"{error(run, name):+.1%}" if name in run["true"] else "" for name in TABLE)]
            for run in results]
    evaluation.table(("model and plan", *(name.replace("_", " ") for name in TABLE)), rows)
    for name in TABLE:
        judged = [run for run in results if name in run["true"]]
        if not judged:
            continue
        goal = 0.1 if name in ("kept", "peak") else 0
        for run in judged:
            if abs(error(run, name)) > goal or evaluation.repeating:
                evaluation.missed(run["seed"], f"{name_of(run['case'])}: {name} {run['estimated'][name]:,}, "
                                  f"really {run['true'][name]:,}")
        words = "exact" if goal == 0 else f"within {goal:.0%}"
        evaluation.at_least(f"{name.replace('_', ' ')} {words}", sum(abs(error(run, name)) <= goal for run in judged),
                            len(judged), 1)
    residuals = [residual(run) for run in results]
    evaluation.shown("residual against the recording of the run", f"{min(residuals):+.1%} to {max(residuals):+.1%}")
    return evaluation.finish()


if __name__ == "__main__":
    sys.exit(main())
