#!/usr/bin/env python3
"""Trains an MLP with Adam: parameters, gradients, two states per parameter, activations.

The simplest loop. zero_grad frees every gradient, so each backward pass allocates them again.
"""

import models
import moments
import torch
from outcome import print_outcome


def main():
    moments.begin()
    torch.manual_seed(0)
    model = models.mlp().cuda()
    moments.moment("construction")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(5):
        inputs = torch.randn(64, 512).cuda()
        loss = model(inputs).square().mean()
        moments.moment("forward")
        loss.backward()
        moments.moment("backward")
        optimizer.step()
        moments.moment("step")
        optimizer.zero_grad()
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
