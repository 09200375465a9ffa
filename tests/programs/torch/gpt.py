#!/usr/bin/env python3
"""Trains a small GPT with options that change its use of memory.

--optimizer    foreach makes temporaries of the size of all parameters, fused makes none.
--amp          autocast keeps its casts until the forward pass ends; fp16 adds a GradScaler.
--accumulate   gradients live through several backward passes.
--checkpoint   blocks are recomputed in the backward pass, in one of PyTorch's two modes.
--varying      sequences of different length leave holes that the next batch does not fit into.
"""

import argparse
import contextlib

import models
import moments
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from outcome import print_outcome


class Checkpointed(torch.nn.Module):
    def __init__(self, block, reentrant):
        super().__init__()
        self.block = block
        self.reentrant = reentrant

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.block, x, use_reentrant=self.reentrant)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--optimizer", choices=("foreach", "fused", "loop"), default="foreach")
    parser.add_argument("--amp", choices=("none", "bf16", "fp16"), default="none")
    parser.add_argument("--accumulate", type=int, default=1, help="batches for each step")
    parser.add_argument("--checkpoint", choices=("none", "reentrant", "other"), default="none")
    parser.add_argument("--varying", action="store_true", help="sequences of different length")
    parser.add_argument("--steps", type=int, default=4)
    return parser.parse_args()


def build(args):
    model = models.gpt()
    if args.checkpoint != "none":
        reentrant = args.checkpoint == "reentrant"
        model.blocks = torch.nn.ModuleList(Checkpointed(b, reentrant) for b in model.blocks)
    model = model.cuda()
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=3e-4,
        foreach=args.optimizer == "foreach",
        fused=args.optimizer == "fused",
    )
    return model, optimizer


def main():
    args = parse()
    moments.begin()
    torch.manual_seed(0)
    model, optimizer = build(args)
    moments.moment("construction")
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp == "fp16")
    autocast = contextlib.nullcontext
    if args.amp != "none":
        dtype = torch.bfloat16 if args.amp == "bf16" else torch.float16

        def autocast():
            return torch.autocast("cuda", dtype=dtype)

    for step in range(args.steps):
        for batch in range(args.accumulate):
            length = models.LENGTH - 24 * ((step + batch) % 4) if args.varying else models.LENGTH
            tokens = torch.randint(models.VOCABULARY, (4, length + 1)).cuda()
            with autocast():
                logits = model(tokens[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            moments.moment("forward")
            if step == 1:  # in the middle of the backward pass, on autograd's thread
                logits.register_hook(lambda gradient: moments.moment("in_backward"))
            scaler.scale(loss / args.accumulate).backward()
            moments.moment("backward")
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        moments.moment("step")
        optimizer.zero_grad()
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
