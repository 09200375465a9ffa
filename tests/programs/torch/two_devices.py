#!/usr/bin/env python3
"""Trains one model on two devices, one half on each; activations are copied between them.

The backward pass runs on one thread per device, so the devices' events interleave.
"""

import models
import moments
import torch
from outcome import print_outcome


def main():
    moments.begin()
    torch.manual_seed(0)
    first = models.mlp().cuda(0)[:-1]
    second = models.mlp(512, 3).cuda(1)
    moments.moment("construction")
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for _ in range(3):
        hidden = first(torch.randn(96, 512, device="cuda:0"))
        loss = second(hidden.to("cuda:1")).square().mean()
        moments.moment("forward")
        loss.backward()
        moments.moment("backward")
        optimizer.step()
        optimizer.zero_grad()
    with torch.cuda.device(1):
        scratch = torch.empty(33 << 20, dtype=torch.uint8, device="cuda")
    del scratch
    moments.moment("steps")
    torch.cuda.empty_cache()
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
