#!/usr/bin/env python3
"""Trains inside named ranges: those of PyTorch's optimizers and profiler, and the program's own.

--profile also runs torch.profiler for the first two of four steps; its steps are ranges, too.
"""

import argparse
import contextlib

import models
import moments
import torch
from outcome import print_outcome
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def step(model, optimizer):
    with record_function("batch"):
        inputs = torch.randn(48, 512).cuda()
    with record_function("forward"):
        hidden = model[:-1](inputs)
        with record_function("loss"):
            loss = model[-1](hidden).square().mean()
        moments.moment("forward")
    with record_function("backward"):
        loss.backward()
    optimizer.step()
    moments.moment("step")
    optimizer.zero_grad()
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", action="store_true", help="run torch.profiler as well")
    args = parser.parse_args()

    moments.begin()
    torch.manual_seed(0)
    model = models.mlp().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    moments.moment("construction")
    profiling = contextlib.nullcontext()
    if args.profile:
        plan = schedule(wait=0, warmup=1, active=1, repeat=1)
        profiling = profile(activities=[ProfilerActivity.CPU], schedule=plan, profile_memory=True)
    with profiling as profiler:
        for _ in range(4):
            loss = step(model, optimizer)
            if profiler:
                profiler.step()
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
