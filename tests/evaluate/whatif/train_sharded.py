#!/usr/bin/env python3
"""Trains a GPT in WORLD processes with a GPU each, among which fully_shard() divides it; alone if WORLD is 1.

Usage: train_sharded.py WORLD STORE LAYERS HIDDEN BATCH
  STORE  a file that does not exist yet, by which the ranks find each other
Prints the peaks of memory that PyTorch allocated and reserved on the first GPU, as JSON.
"""

import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "programs" / "torch"))
import models  # noqa: E402

STEPS = 6


def train(rank, world, store, layers, hidden, batch):
    torch.set_num_threads(1)
    if world > 1:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world))
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=world)
    model = models.gpt(layers=layers, hidden=hidden).cuda()
    if world > 1:
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        tokens = torch.randint(models.VOCABULARY, (batch, models.LENGTH + 1)).cuda()
        logits = model(tokens[:, :-1])
        F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten()).backward()
        del logits
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    if rank == 0:
        print(json.dumps({"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}), flush=True)
    if world > 1:
        dist.destroy_process_group()


def main():
    world, store = int(sys.argv[1]), sys.argv[2]
    arguments = (world, store, *map(int, sys.argv[3:6]))
    if world == 1:
        train(0, *arguments)
    else:
        mp.spawn(train, arguments, world)


if __name__ == "__main__":
    main()
