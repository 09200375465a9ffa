"""Trains a small model in several processes with a GPU each, one of which differs.

Usage: uneven_ranks.py CAUSE
  none     all are alike
  batch    rank 2 has a batch four times as large
  shard    rank 1 has twice as many layers
  leak     rank 3 keeps the output of every step
  stray    ranks 1 to 3 use the first GPU before they select their own
"""

import os
import sys

import torch
import torch.multiprocessing as mp
from torch import nn

WORLD, WIDTH = 4, 1024


def train(rank, cause):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD))
    torch.set_num_threads(1)
    if cause == "stray":
        torch.zeros(1, device="cuda:0")
    torch.cuda.set_device(rank)
    layers = 8 if cause == "shard" and rank == 1 else 4
    model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(layers)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch = 4096 if cause == "batch" and rank == 2 else 1024
    kept = []
    for _ in range(220 if cause == "leak" else 4):
        output = model(torch.randn(batch, WIDTH).cuda())
        output.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if cause == "leak" and rank == 3:
            kept.append(output.detach())


if __name__ == "__main__":
    mp.spawn(train, (sys.argv[1],), WORLD)
