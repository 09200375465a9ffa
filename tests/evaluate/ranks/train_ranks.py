#!/usr/bin/env python3
"""Trains a GPT in several processes with a GPU each, one of which differs.

Usage: train_ranks.py PARALLEL WORLD CULPRIT CAUSE STORE
  PARALLEL  ddp, fsdp2 or pipeline
  WORLD     number of ranks
  CULPRIT   the rank that differs
  CAUSE     none, or
    batch         a batch four times as large
    leak          it keeps 1 MiB in each step
    communicator  it has further communicators
    stray         all other ranks use its GPU before they select their own
    shard         pipeline: it has more layers; fsdp2: it has layers that are not sharded
    gathers       fsdp2: it keeps gathered parameters until the backward pass
  STORE     a file that does not exist yet, by which the ranks find each other
"""

import os
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "programs" / "torch"))
import models  # noqa: E402

LAYERS, HIDDEN, BATCH, STEPS, LEAKING_STEPS = 8, 512, 4, 6, 220
COMMUNICATORS = 32


class Job:
    def __init__(self, rank, world, culprit, cause):
        self.rank, self.world, self.culprit, self.cause = rank, world, culprit, cause

    def is_cause(self, cause):
        return self.cause == cause and self.rank == self.culprit

    def batch(self):
        return 4 * BATCH if self.is_cause("batch") else BATCH

    def tokens(self):
        return torch.randint(models.VOCABULARY, (self.batch(), models.LENGTH + 1)).cuda()


def loss_of(logits, tokens):
    return F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())


class DataParallel:
    """A step of DistributedDataParallel."""

    def __init__(self, job):
        self.job = job
        self.model = DistributedDataParallel(models.gpt(layers=LAYERS, hidden=HIDDEN).cuda(), device_ids=[job.rank])

    def step(self):
        tokens = self.job.tokens()
        logits = self.model(tokens[:, :-1])
        loss_of(logits, tokens).backward()
        return logits


class FullyShard:
    """A step of FSDP2: each layer's parameters are gathered while it is in use."""

    def __init__(self, job):
        self.job = job
        self.model = models.gpt(layers=LAYERS, hidden=2 * HIDDEN).cuda()
        for block in self.model.blocks:
            fully_shard(block, reshard_after_forward=not job.is_cause("gathers"))
        fully_shard(self.model)
        # Layers of this rank alone that are not sharded, as in a head that only one rank has.
        self.more = nn.Sequential(*[nn.Linear(2 * HIDDEN, 2 * HIDDEN) for _ in range(6)]).cuda() if job.is_cause("shard") else None

    def parameters(self):
        return [*self.model.parameters(), *(self.more.parameters() if self.more is not None else [])]

    def step(self):
        tokens = self.job.tokens()
        logits = self.model(tokens[:, :-1])
        loss = loss_of(logits, tokens)
        if self.more is not None:
            loss = loss + self.more(torch.ones(1, 2 * HIDDEN).cuda()).sum()
        loss.backward()
        return logits


class Pipeline:
    """A step of a pipeline of equal stages: two micro-batches pass this rank's, forward and then backward."""

    def __init__(self, job):
        self.job = job
        gpt = models.gpt(layers=2 * LAYERS if job.is_cause("shard") else LAYERS, hidden=HIDDEN)
        self.blocks = nn.Sequential(*gpt.blocks)
        self.is_first, self.is_last = job.rank == 0, job.rank == job.world - 1
        self.model = self.blocks.cuda()

    def forward(self):
        x = torch.empty(BATCH, models.LENGTH, HIDDEN, device="cuda")
        if not self.is_first:
            dist.recv(x, self.job.rank - 1)
        x.requires_grad_()
        y = self.blocks(x)
        if self.is_last:
            return x, y.square().mean()
        dist.send(y.detach(), self.job.rank + 1)
        return x, y

    def backward(self, x, y):
        if self.is_last:
            y.backward()
        else:
            gradient = torch.empty_like(y)
            dist.recv(gradient, self.job.rank + 1)
            y.backward(gradient)
        if not self.is_first:
            dist.send(x.grad, self.job.rank - 1)

    def step(self):
        micro_batches = [self.forward() for _ in range(2)]
        for x, y in micro_batches:
            self.backward(x, y)
        return micro_batches[0][1]


PARALLEL = {"ddp": DataParallel, "fsdp2": FullyShard, "pipeline": Pipeline}


def train(rank, parallel, world, culprit, cause, store):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world))
    torch.set_num_threads(1)
    job = Job(rank, world, culprit, cause)
    if cause == "stray" and rank != culprit:
        torch.zeros(1, device=f"cuda:{culprit}")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=world)
    if cause == "communicator":
        # All ranks create a group; only its member has a communicator.
        groups = [dist.new_group([culprit]) for _ in range(COMMUNICATORS)]
        if rank == culprit:
            for group in groups:
                dist.all_reduce(torch.zeros(1024, device="cuda"), group=group)
    part = PARALLEL[parallel](job)
    parameters = part.parameters() if hasattr(part, "parameters") else part.model.parameters()
    # Sharded parameters and others cannot be in one list of tensors.
    optimizer = torch.optim.AdamW(parameters, foreach=False if job.is_cause("shard") else None)
    kept = []
    for _ in range(LEAKING_STEPS if cause == "leak" else STEPS):
        output = part.step()
        optimizer.step()
        optimizer.zero_grad()
        if job.is_cause("leak"):
            kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
        del output
    torch.cuda.synchronize()
    dist.destroy_process_group()


def main():
    parallel, world, culprit, cause, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
    mp.spawn(train, (parallel, world, culprit, cause, store), world)


if __name__ == "__main__":
    main()
