#!/usr/bin/env python3
"""Trains a GPT on two ranks with fully_shard: each layer's full weights exist only while it is in use.

Gathers run on separate streams, so blocks of other streams' pools wait for events. Starts both
ranks itself, or runs as one of them under torchrun --nproc-per-node 2.
"""

import models
import moments
import ranks
import torch
import torch.nn.functional as F
from outcome import print_outcome
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def train(rank):
    moments.begin()
    torch.manual_seed(0)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = models.gpt(layers=3).cuda()
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    moments.moment("construction")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(3):
        tokens = torch.randint(models.VOCABULARY, (2, models.LENGTH + 1)).cuda()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        moments.moment("forward")
        loss.backward()
        moments.moment("backward")
        optimizer.step()
        optimizer.zero_grad()
        moments.moment("step")
    moments.end()
    print_outcome(loss=loss.item(), rank=rank)


if __name__ == "__main__":
    ranks.run(2, train)
