#!/usr/bin/env python3
"""Measures the cost of recording PyTorch's allocations, for gpumemtrace and for PyTorch's own recorder.

Exercises: the caching allocator's fastest path (a block that is taken from the cache and
returned), below one and below many Python functions; training steps with a backward pass; millions
of events; a snapshot in the middle of an allocating loop.

Usage: torch_cost.py PART [--history python|all] [--snapshot none|gpumemtrace|torch] [--events N] [--quick]
  pair    nanoseconds of a torch.empty(1024) and its release, at Python depth 1 and 21
  step    nanoseconds of a training step of a small GPT
  saves   nanoseconds of a sum, whose node saves nothing, and of a product, whose node saves both
          factors
  growth  anonymous memory in bytes that N events from many places add to the process
  pause   longest pause in milliseconds of an allocating loop around a snapshot after N events
--history turns on PyTorch's own recorder with default settings except for the kind of stacks.
Times of `pair` and `step` are processor time of this process and the minimum of many short batches,
because other processes on the machine can only increase it. Prints one line of JSON.
"""

import argparse
import ctypes
import gc
import json
import pathlib
import random
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

DEPTH = 21
PLACES = 200  # functions that allocate, for `growth`


def nested(depth, work):
    """Returns a function that calls work() at a Python depth of `depth`; each level has its own
    code object."""
    function = work
    for level in range(1, depth):
        names = {"inner": function}
        exec(f"def level{level}(count):\n    return inner(count)\n", names)
        function = names[f"level{level}"]
    return function


def pairs(count):
    empty = torch.empty
    started = time.thread_time_ns()
    for _ in range(count):
        block = empty(1024, device="cuda")
        del block
    return time.thread_time_ns() - started


def pair(arguments):
    count, batches = (500, 5) if arguments.quick else (1000, 200)
    result = {}
    for depth in (1, DEPTH):
        function = nested(depth, pairs)
        function(count)
        result[f"depth {depth}"] = min(function(count) for _ in range(batches)) / count
    return result


def step(arguments):
    from train_gpt import GPT

    torch.manual_seed(0)
    model = GPT(8192, 4, 256, 4, 128, False).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def train(steps):
        for _ in range(steps):
            tokens = torch.randint(8192, (4, 129), device="cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = model(tokens[:, :-1])
                loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 8192), tokens[:, 1:].reshape(-1))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    train(10)
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    train(1)
    allocations = torch.cuda.memory_stats()["allocation.all.allocated"] - before
    times = []
    for _ in range(5 if arguments.quick else 200):
        started = time.process_time_ns()
        train(1)
        times.append(time.process_time_ns() - started)
    return {"step": min(times), "allocations": allocations}


def saves(arguments):
    """Both results are released without a backward pass and allocate one block each."""
    leaf = torch.ones(256, device="cuda", requires_grad=True)
    left, right = leaf * 1, leaf * 2
    count, batches = (50, 50) if arguments.quick else (50, 4000)  # short: the difference is a tenth of each

    def timed(operator):
        started = time.thread_time_ns()
        for _ in range(count):
            operator(left, right)
        return time.thread_time_ns() - started

    timed(torch.add), timed(torch.mul)
    times = [(timed(torch.add), timed(torch.mul)) for _ in range(batches)]
    return {"sum": min(a for a, _ in times) / count, "product": min(b for _, b in times) / count}


def anonymous_bytes():
    """Returns the anonymous memory of this process, resident and swapped out."""
    total = 0
    with open("/proc/self/smaps_rollup", encoding="ascii") as rollup:
        for line in rollup:
            if line.startswith(("Anonymous:", "Swap:")):
                total += int(line.split()[1]) * 1024
    return total


def places():
    """Returns functions that allocate and release a block, each at different lines and depths."""
    made = []
    for number in range(PLACES):
        names = {"torch": torch}
        exec(f"def place{number}(count):\n" + "\n" * (number % 50)
             + f"    for _ in range(count):\n        torch.empty({512 * (1 + number % 60)}, device='cuda')\n", names)
        made.append(nested(1 + number % DEPTH, names[f"place{number}"]))
    return made


def run_events(functions, events):
    """Makes `events` events, half of them allocations and half releases."""
    order = random.Random(0)
    left = events // 2
    while left > 0:
        count = min(left, 100)
        order.choice(functions)(count)
        left -= count


def growth(arguments):
    functions = places()
    run_events(functions, 40 * PLACES)
    gc.collect()
    before = anonymous_bytes()
    run_events(functions, arguments.events)
    gc.collect()
    return {"bytes": anonymous_bytes() - before, "events": arguments.events}


def loop(seconds, take):
    """Returns the longest time between two pairs; take() is called after a third of the time."""
    take_at = time.perf_counter() + seconds / 3
    end = take_at + seconds * 2 / 3
    longest, last = 0.0, time.perf_counter()
    while last < end:
        torch.empty(1024, device="cuda")
        if last >= take_at:
            take()
            take_at = float("inf")
        now = time.perf_counter()
        longest = max(longest, now - last)
        last = now
    return longest


def take_none():
    pass


def take_gpumemtrace():
    if ctypes.CDLL(None).gpumemtrace_snapshot(b"bench") != 1:
        sys.exit("torch_cost: no snapshot was taken")


def take_torch():
    torch.cuda.memory._snapshot()


def pause(arguments):
    functions = places()
    run_events(functions, arguments.events)
    kept = [torch.empty(512 * (1 + n % 60), device="cuda") for n in range(1000)]
    take = {"none": take_none, "gpumemtrace": take_gpumemtrace, "torch": take_torch}[arguments.snapshot]
    gc.collect()
    gc.disable()  # the collector's pauses are not the recorder's
    # Other processes can stop the loop, too, so the minimum of several loops is used.
    longest = min(loop(0.3 if arguments.quick else 1.5, take) for _ in range(1 if arguments.snapshot == "torch" else 3))
    return {"milliseconds": longest * 1e3, "events": arguments.events, "live": len(kept)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["pair", "step", "saves", "growth", "pause"])
    parser.add_argument("--history", choices=["python", "all"])
    parser.add_argument("--snapshot", choices=["none", "gpumemtrace", "torch"], default="none")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.empty(1024, device="cuda")
    if arguments.history:
        torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks=arguments.history)
    print(json.dumps(globals()[arguments.part](arguments)))


if __name__ == "__main__":
    main()
