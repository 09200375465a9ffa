#!/usr/bin/env python3
"""Creates the optimizer NAME, and then another one, and runs out of memory in the first step of its training."""

import argparse

import models
import torch


class Signs(torch.optim.Optimizer):
    """An optimizer of the program's own."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})


def create(name, parameters):
    classes = {"own": Signs, "none": None}
    constructor = classes.get(name) or getattr(torch.optim, name)
    return constructor(parameters, lr=0.1)  # the line that is recorded


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", metavar="NAME", help="a class of torch.optim, own, or none")
    name = parser.parse_args().name
    model = models.mlp().cuda()
    optimizers = [] if name == "none" else [create(name, model.parameters()), torch.optim.SGD(model.parameters(), lr=0.1)]
    whole = torch.zeros(1, 512, device="cuda").expand(1 << 22, 512)
    model(whole).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()


if __name__ == "__main__":
    main()
