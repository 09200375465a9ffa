#!/usr/bin/env python3
"""Trains a GPT on two ranks with DistributedDataParallel, which keeps gradients in buckets.

Starts both ranks itself, or runs as one of them under torchrun --nproc-per-node 2.
"""

import models
import moments
import ranks
import torch
import torch.nn.functional as F
from outcome import print_outcome
from torch.nn.parallel import DistributedDataParallel


def train(rank):
    moments.begin()
    torch.manual_seed(0)
    model = models.gpt(layers=2).cuda()
    moments.moment("construction")
    model = DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    torch.cuda.synchronize()
    moments.moment("wrapped")
    for step in range(3):
        for batch in range(2):
            tokens = torch.randint(models.VOCABULARY, (2, models.LENGTH + 1)).cuda()
            model.require_backward_grad_sync = batch == 1
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            moments.moment("forward")
            loss.backward()
            moments.moment("backward")
        optimizer.step()
        optimizer.zero_grad(set_to_none=step == 1)
        moments.moment("step")
    moments.end()
    print_outcome(loss=loss.item(), rank=rank)


if __name__ == "__main__":
    ranks.run(2, train)
