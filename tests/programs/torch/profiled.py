#!/usr/bin/env python3
"""Trains under torch.profiler, some times in one process, and says what each profile saw.

Exercises: Kineto's use of CUPTI (its one subscriber, its buffers, its clock) beside everything else
that runs in the process, and that a later profile sees as much as the first.
"""

import argparse
import collections
import json
import time

import torch
from torch.profiler import ProfilerActivity, profile


def step(model, optimizer, source):
    batch = source.to("cuda", non_blocking=True)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.cpu()


def seen_by(prof):
    """What ran on the device: how often and for how many nanoseconds, by kind."""
    counts, nanoseconds = collections.Counter(), collections.Counter()
    for event in prof.profiler.kineto_results.events():
        if event.device_type() != torch.autograd.DeviceType.CUDA or event.is_user_annotation():
            continue
        kind = event.name().split()[0] if event.name().startswith("Mem") else "kernel"
        counts[kind] += 1
        nanoseconds[kind] += event.duration_ns()
    return {"counts": counts, "nanoseconds": nanoseconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profiles", type=int, default=2, help="one after the other")
    parser.add_argument("--steps", type=int, default=3, help="of training, in each of them")
    args = parser.parse_args()

    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    source = torch.zeros(32, 64).pin_memory()
    step(model, optimizer, source)
    profiles = []
    for _ in range(args.profiles):
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as p:
            begin = time.monotonic_ns()
            for _ in range(args.steps):
                step(model, optimizer, source)
            torch.cuda.synchronize()
            end = time.monotonic_ns()
        profiles.append({**seen_by(p), "begin_ns": begin, "end_ns": end})
    print(json.dumps({"profiles": profiles}))


if __name__ == "__main__":
    main()
