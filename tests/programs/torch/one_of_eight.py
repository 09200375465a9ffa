#!/usr/bin/env python3
"""Trains a bf16 GPT of 7 billion parameters as one rank of eight without the other seven.

The simulated NCCL does not wait for other ranks, so one process can be rank 0 of a group of eight.
The weights are created on the meta device, sharded, and then allocated as empty memory.
"""

import os

import models
import moments
import torch
import torch.distributed as dist
import torch.nn.functional as F
from outcome import print_outcome
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint

LAYERS, HIDDEN, VOCABULARY, LENGTH = 32, 4096, 50257, 1024


class Checkpointed(models.Block):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


def build():
    with torch.device("meta"):
        model = models.GPT(VOCABULARY, 0, HIDDEN, 32, LENGTH, False)
        model.blocks = torch.nn.ModuleList(Checkpointed(HIDDEN, 32) for _ in range(LAYERS))
        model = model.to(torch.bfloat16)
    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model).to_empty(device="cuda")


def main():
    os.environ["TORCH_DIST_INIT_BARRIER"] = "0"
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
    moments.begin()
    torch.manual_seed(0)
    model = build()
    moments.moment("construction")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(2):
        tokens = torch.randint(VOCABULARY, (1, LENGTH + 1), device="cuda")
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        moments.moment("forward")
        loss.backward()
        moments.moment("backward")
        optimizer.step()
        optimizer.zero_grad()
        moments.moment("step")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    moments.end()
    print_outcome(loss=loss.item(), parameters=parameters)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
