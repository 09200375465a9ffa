#!/usr/bin/env python3
"""Trains under torch.profiler several times in one process and prints what each profile recorded.

Exercises: Kineto's use of CUPTI (its single subscriber, its buffers, its clock) beside other users
in the process, and whether a later profile records as much as the first.
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
    """Returns the counts and nanoseconds of the device's work by kind."""
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
    parser.add_argument("--profiles", type=int, default=2, help="profiles, one after the other")
    parser.add_argument("--steps", type=int, default=3, help="training steps in each profile")
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
