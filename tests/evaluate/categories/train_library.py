#!/usr/bin/env python3
"""Trains a small model with a library's loop, optimizer and wrappers, and reports at each moment what
its storages are used for (truth.py). Nothing is downloaded: models are created from configurations.

PyTorch's public hooks find the library's tensors: hooks of the forward pass, of gradient accumulation
and of optimizer steps. Tensors of a pass are only referenced weakly, so that the hooks keep nothing alive.

Usage: train_library.py --program FUNCTION --seed N
"""

import argparse
import random
import weakref

import torch
import torch.nn.functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook
from truth import Truth, _tensors

STEPS = 4


class Watched(Truth):
    """The truth about a program that runs a library's loop."""

    def __init__(self, model, checkpoints=False):
        super().__init__([model])
        self.checkpoints = checkpoints
        # `batch`: of the program's own loop, which may give the model something else.
        self._passing = {"batch": [], "inputs": [], "outputs": [], "kv_cache": []}
        self._watching = None
        model.register_forward_pre_hook(self._before, with_kwargs=True)
        model.register_forward_hook(self._after, with_kwargs=True)
        register_optimizer_step_post_hook(self._stepped)
        learning = [p for p in model.parameters() if p.requires_grad]
        if checkpoints:
            self.watch_recomputation(model)
        for parameter in learning[len(learning) // 3 :: max(1, len(learning) // 3)]:
            parameter.register_post_accumulate_grad_hook(self._in_backward)
        for parameter in learning:
            parameter.register_hook(self._begin_backward)

    def __deepcopy__(self, _):
        return self  # when the model is copied for an average

    def _in_backward(self, _):
        # If the library keeps no output, its graph cannot be walked.
        if any(ref() is not None and ref().grad_fn is not None for ref in self._passing["outputs"]):
            self.moment("in_backward")

    def _begin_backward(self, gradient):
        self.in_backward = True
        return gradient

    def keep(self, name, things):
        self._passing[name] = [weakref.ref(tensor) for tensor in _tensors(things)]

    def _before(self, _, args, kwargs):
        self.in_backward = False
        self.keep("inputs", [args, kwargs])
        self._watching = self.watching()
        self._watching.__enter__()

    def _after(self, _, __, ___, output):
        self._watching.__exit__(None, None, None)
        values = list(output.values()) if isinstance(output, dict) else [output]
        self.keep("outputs", values)
        cache = getattr(output, "past_key_values", None)
        if cache is not None and hasattr(cache, "layers"):
            self.keep("kv_cache", [[layer.keys, layer.values] for layer in cache.layers])
        self.moment("forward")

    def _stepped(self, optimizer, _, __):
        if all(optimizer is not known for known in self.optimizers):
            self.optimizers.append(optimizer)
        self.moment("step")

    def _known(self):
        alive = {name: [ref() for ref in refs if ref() is not None] for name, refs in self._passing.items()}
        yield "kv_cache", alive["kv_cache"]
        self.inputs, self.outputs = alive["batch"] + alive["inputs"], alive["outputs"]
        try:
            for category, things in super()._known():
                yield "output" if things is self.outputs else category, things
        finally:
            self.inputs, self.outputs = [], []


def tokens(sizes, vocabulary=1000):
    return torch.randint(vocabulary, (sizes["batch"], sizes["length"]))


def gpt2(sizes, **more):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=1000, n_positions=256, n_embd=sizes["hidden"], n_layer=sizes["layers"], n_head=4,
            bos_token_id=0, eos_token_id=0, **more
        )
    )


def llama(sizes):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=1000, hidden_size=sizes["hidden"], intermediate_size=2 * sizes["hidden"],
            num_hidden_layers=sizes["layers"], num_attention_heads=4, num_key_value_heads=2
        )
    )


class Sentences(torch.utils.data.Dataset):
    def __init__(self, sizes):
        self.sizes = sizes

    def __len__(self):
        return STEPS * self.sizes["batch"]

    def __getitem__(self, index):
        row = torch.randint(1000, (self.sizes["length"],))
        return {"input_ids": row, "labels": row.clone()}


def trainer(sizes, model, checkpoints=False, **more):
    from transformers import Trainer, TrainingArguments

    Watched(model, checkpoints)
    arguments = TrainingArguments(
        output_dir="trainer", max_steps=STEPS, per_device_train_batch_size=sizes["batch"], report_to=[],
        save_strategy="no", disable_tqdm=True, gradient_checkpointing=checkpoints, logging_strategy="no", **more
    )
    Trainer(model=model, args=arguments, train_dataset=Sentences(sizes)).train()


def transformers_trainer(sizes):
    trainer(sizes, gpt2(sizes))


def transformers_trainer_bf16(sizes):
    trainer(sizes, llama(sizes), bf16=True, gradient_accumulation_steps=2)


def transformers_trainer_checkpoint(sizes):
    trainer(sizes, gpt2(sizes, use_cache=False), checkpoints=True)


def transformers_decode(sizes):
    """Runs a prompt and then decodes token by token with the library's cache."""
    model = llama(sizes).half().cuda().eval()
    Watched(model)
    with torch.inference_mode():
        output = model(tokens(sizes).cuda(), use_cache=True)
        for _ in range(24):
            last = output.logits[:, -1:].argmax(-1)
            output = model(last, past_key_values=output.past_key_values, use_cache=True)


def peft_lora(sizes):
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(llama(sizes), LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    trainer(sizes, model)


def accelerate_bf16(sizes):
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="bf16")
    model = gpt2(sizes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Sentences(sizes), batch_size=sizes["batch"])
    Watched(model)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()


def lightning_loop(sizes, precision="32-true"):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = gpt2(sizes)

        def training_step(self, batch, _):
            return self.model(**batch).loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    module = Module()
    Watched(module.model)
    lightning.Trainer(
        accelerator="gpu", devices=1, max_steps=STEPS, precision=precision, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False
    ).fit(module, torch.utils.data.DataLoader(Sentences(sizes), batch_size=sizes["batch"]))


def lightning_bf16(sizes):
    lightning_loop(sizes, "bf16-mixed")


def images(sizes):
    return torch.randn(sizes["batch"], 3, 64, 64).cuda(), torch.randint(10, (sizes["batch"],)).cuda()


def timm_amp_ema(sizes):
    import timm
    from timm.optim import create_optimizer_v2
    from timm.utils import ModelEmaV3

    model = timm.create_model("vit_tiny_patch16_224", num_classes=10, img_size=64).cuda()
    truth = Watched(model)
    average = ModelEmaV3(model)
    truth.models.append(average.module)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(STEPS):
        batch, labels = images(sizes)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        average.update(model)


def torchvision_sgd(sizes):
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).cuda()
    Watched(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        batch, labels = images(sizes)
        loss = F.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def diffusers_unet(sizes):
    from diffusers import DDPMScheduler, UNet2DModel

    model = UNet2DModel(
        sample_size=32, block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")
    ).cuda()
    truth = Watched(model)
    scheduler = DDPMScheduler(num_train_timesteps=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        clean = torch.randn(sizes["batch"], 3, 32, 32).cuda()
        noise = torch.randn_like(clean)
        truth.keep("batch", [clean, noise])
        times = torch.randint(0, 100, (sizes["batch"],), device="cuda")
        loss = F.mse_loss(model(scheduler.add_noise(clean, noise, times), times).sample, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="a function of this script")
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    chosen = random.Random(args.seed)
    sizes = {
        "hidden": chosen.choice((128, 256)), "layers": chosen.randint(2, 4), "batch": chosen.randint(2, 8),
        "length": 32 * chosen.randint(1, 4)
    }
    globals()[args.program](sizes)


if __name__ == "__main__":
    main()
