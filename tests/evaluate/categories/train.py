#!/usr/bin/env python3
"""Trains a model of random size in ways that change the purposes of its memory, and reports at each
moment what its storages are used for (truth.py).

Usage: train.py --model mlp|gpt|convnet|recurrent --seed N [--way WAY...]
"""

import argparse
import contextlib
import os
import pathlib
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from truth import Truth

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "programs" / "torch"))
import models  # noqa: E402

WAYS = (
    "foreach fused single sgd accumulate checkpoint checkpoint_reentrant bf16 fp16 zeroed two_optimizers"
    " ema frozen compile kept_batch in_backward clip late_zero_grad ddp fsdp2 channels_last closure inference"
    " uncached async"
).split()
STEPS = 4


class Checkpointed(nn.Module):
    def __init__(self, block, reentrant):
        super().__init__()
        self.block, self.reentrant = block, reentrant

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=self.reentrant)


class Adapted(nn.Module):
    """A frozen layer with a small trainable adapter."""

    def __init__(self, layer, rank):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


class Recurrent(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.tokens = nn.Embedding(1000, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers, batch_first=True, dropout=0.1)
        self.head = nn.Linear(hidden, 1000)

    def forward(self, tokens):
        x, _ = self.lstm(self.tokens(tokens))
        return self.head(x)


class Job:
    """A model, its batches and its loss."""

    def __init__(self, args, sizes):
        self.args, self.ways = args, args.way
        hidden, layers = sizes.choice((256, 384, 512)), sizes.randint(2, 5)
        self.batch = sizes.randint(2, 24)
        self.length = 32 * sizes.randint(2, 4)
        if args.model == "mlp":
            self.hidden = 4 * hidden
            self.batch *= 16
            self.model = models.mlp(self.hidden, layers)
        elif args.model == "gpt":
            self.model = models.gpt(layers=layers, hidden=hidden)
        elif args.model == "convnet":
            self.model = models.resnet(tuple(sizes.choice((32, 64)) * 2**i for i in range(3)))
        else:
            self.model = Recurrent(hidden, sizes.randint(1, 2))
        self._adapt()
        if "fsdp2" not in self.ways:
            self.model = self.model.cuda()
        if "channels_last" in self.ways:
            self.model = self.model.to(memory_format=torch.channels_last)

    def _adapt(self):
        if "checkpoint" in self.ways or "checkpoint_reentrant" in self.ways:
            reentrant = "checkpoint_reentrant" in self.ways
            self.model.blocks = nn.ModuleList(
                Checkpointed(b, reentrant) for b in self.model.blocks
            )
        if "frozen" in self.ways:
            self.model.requires_grad_(False)
            for parent in list(self.model.modules()):
                for name, child in list(parent.named_children()):
                    if isinstance(child, nn.Linear) and not isinstance(parent, Adapted):
                        setattr(parent, name, Adapted(child, 8))

    def next_batch(self):
        if self.args.model == "mlp":
            return [torch.randn(self.batch, self.hidden).cuda()]
        if self.args.model == "convnet":
            images = torch.randn(self.batch, 3, 32, 32).cuda()
            if "channels_last" in self.ways:
                images = images.to(memory_format=torch.channels_last)
            return [images, torch.zeros(self.batch, dtype=torch.long).cuda()]
        vocabulary = models.VOCABULARY if self.args.model == "gpt" else 1000
        return [torch.randint(vocabulary, (self.batch, self.length + 1)).cuda()]

    def forward(self, model, batch):
        """Returns the outputs; the last one is the loss."""
        if self.args.model == "mlp":
            output = model(batch[0])
            return [output, output.square().mean()]
        if self.args.model == "convnet":
            output = model(batch[0])
            return [output, F.cross_entropy(output.float(), batch[1])]
        logits = model(batch[0][:, :-1])
        return [logits, F.cross_entropy(logits.flatten(0, 1).float(), batch[0][:, 1:].flatten())]

    def optimizer(self, parameters):
        if "sgd" in self.ways:
            return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        return torch.optim.AdamW(
            parameters, lr=1e-3, fused="fused" in self.ways, foreach="foreach" in self.ways
        )


def wrap(job):
    """Returns the model wrapped for training."""
    ways = job.ways
    if "ddp" in ways:
        return nn.parallel.DistributedDataParallel(job.model, device_ids=[0], bucket_cap_mb=4)
    if "fsdp2" in ways:
        from torch.distributed.fsdp import fully_shard

        for block in job.model.blocks:
            fully_shard(block)
        fully_shard(job.model)
        job.model = job.model.cuda()
        return job.model
    return torch.compile(job.model) if "compile" in ways else job.model


def step_in_backward(parameters, job, truth):
    """Gives each parameter its own optimizer, which runs as soon as the gradient is available. That is the only
    moment at which the gradient is the parameter's `grad`."""
    for parameter in parameters:
        optimizer = job.optimizer([parameter])
        truth.optimizers.append(optimizer)

        def run(_, optimizer=optimizer):
            truth.moment("in_backward")
            optimizer.step()
            optimizer.zero_grad()

        parameter.register_post_accumulate_grad_hook(run)


def make_optimizers(job, truth):
    learning = [p for p in job.model.parameters() if p.requires_grad]
    if "in_backward" in job.ways:
        step_in_backward(learning, job, truth)
        return []
    if "two_optimizers" in job.ways:
        half = len(learning) // 2
        truth.optimizers = [job.optimizer(learning[:half]), job.optimizer(learning[half:])]
    else:
        truth.optimizers = [job.optimizer(learning)]
    return truth.optimizers


def autocast(ways):
    if "bf16" in ways:
        return torch.autocast("cuda", dtype=torch.bfloat16)
    if "fp16" in ways:
        return torch.autocast("cuda", dtype=torch.float16)
    return contextlib.nullcontext()


def train(job):
    ways = job.ways
    model = wrap(job)
    truth = Truth([job.model])
    optimizers = make_optimizers(job, truth)
    if "checkpoint" in ways or "checkpoint_reentrant" in ways:
        truth.checkpoints = True
        truth.watch_recomputation(job.model)
    average = None
    if "ema" in ways:
        average = torch.optim.swa_utils.AveragedModel(job.model)
        truth.models.append(average)
    scaler = torch.amp.GradScaler("cuda", enabled="fp16" in ways)
    learning = [p for p in job.model.parameters() if p.requires_grad]
    at = [learning[len(learning) // 3], learning[2 * len(learning) // 3]]
    kept = job.next_batch() if "kept_batch" in ways else None
    truth.inputs = kept or []
    truth.moment("construction")
    for step in range(STEPS):
        batches = 3 if "accumulate" in ways else 1
        for _ in range(batches):
            truth.inputs = batch = kept or job.next_batch()
            with autocast(ways), truth.watching():
                truth.outputs = outputs = job.forward(model, batch)
            truth.moment("forward")
            if "late_zero_grad" in ways:
                for optimizer in optimizers:
                    optimizer.zero_grad()
            with truth.backward(at=at):
                scaler.scale(outputs[-1] / batches).backward()
            truth.moment("backward")
        for optimizer in optimizers:
            if "clip" in ways:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(learning, 1.0)
            scaler.step(optimizer)
        scaler.update()
        if average is not None:
            average.update_parameters(job.model)
        truth.moment("step")
        if "late_zero_grad" not in ways:
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none="zeroed" not in ways)


def infer(job):
    """Runs forward passes only: weights, and outputs that are dropped."""
    model = job.model.eval()
    truth = Truth([model])
    truth.moment("construction")
    with torch.no_grad():
        for _ in range(STEPS):
            truth.inputs = batch = job.next_batch()
            job.forward(model, batch)
            truth.moment("forward")


def train_in_closures(job):
    """Runs forward and backward passes inside the optimizer's step, like Lightning."""
    truth = Truth([job.model])
    (optimizer,) = make_optimizers(job, truth)
    truth.moment("construction")
    for _ in range(STEPS):

        def closure():
            optimizer.zero_grad()
            truth.inputs = batch = job.next_batch()
            truth.outputs = outputs = job.forward(job.model, batch)
            truth.moment("forward")
            outputs[-1].backward()
            truth.moment("backward")
            return outputs[-1]

        optimizer.step(closure)
        truth.moment("step")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=("mlp", "gpt", "convnet", "recurrent"), required=True)
    parser.add_argument("--way", choices=WAYS, nargs="*", default=[])
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    if "ddp" in args.way or "fsdp2" in args.way:
        import torch.distributed as dist

        os.environ["TORCH_DIST_INIT_BARRIER"] = "0"
        torch.cuda.set_device(0)
        world = 1 if "ddp" in args.way else 4
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=world)
    job = Job(args, random.Random(args.seed))
    if "inference" in args.way:
        infer(job)
    elif "closure" in args.way:
        train_in_closures(job)
    else:
        train(job)


if __name__ == "__main__":
    main()
