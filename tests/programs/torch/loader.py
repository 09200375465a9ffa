#!/usr/bin/env python3
"""Trains on batches in pinned memory that two worker processes produce.

The workers are forked after CUDA is in use, or spawned (--spawn); they never use the device. Another
thread of the program pins the batches.
"""

import argparse

import models
import moments
import torch
from outcome import print_outcome
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 24 * 16

    def __getitem__(self, index):
        return torch.full((512,), float(index)), index % 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spawn", action="store_true", help="spawn the workers")
    args = parser.parse_args()

    moments.begin()
    torch.manual_seed(0)
    model = models.mlp().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    moments.moment("construction")
    loader = DataLoader(
        Noise(),
        batch_size=16,
        num_workers=2,
        pin_memory=True,
        multiprocessing_context="spawn" if args.spawn else "fork",
    )
    for number, (inputs, _) in enumerate(loader):
        loss = model(inputs.cuda(non_blocking=True)).square().mean()
        loss.backward()
        if number % 8 == 0:
            moments.moment("backward")
        optimizer.step()
        optimizer.zero_grad()
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
