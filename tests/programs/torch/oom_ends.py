#!/usr/bin/env python3
"""Runs out of memory and then ends in one of several ways.

--then raise     ends with the error, as most programs do
--then kill      is killed at once, as by a watchdog
--then hang      hangs, like ranks that wait for the one that failed
--then halve     halves the size until it fits, like programs that search for the largest batch
--in-backward    the backward pass runs out of memory
"""

import argparse
import os
import signal
import time

import moments
import torch
from outcome import print_outcome

GIB = 1 << 30


ROWS = 1024  # of the tensors, so that a shape is not merely a size


def tensor(size):
    return torch.empty(ROWS, size // ROWS, dtype=torch.uint8, device="cuda")


class Greedy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * tensor(64 * GIB)[0, 0]


def run_backward_once():
    """Runs a backward pass, from whose nodes the profiler learns how to find a node's forward pass."""
    x = torch.ones(1000, device="cuda", requires_grad=True)
    for _ in range(10):
        x = x * 2
    x.sum().backward()


def ask_for_too_much(args, size):
    if args.in_backward:
        Greedy.apply(torch.ones(1000, device="cuda", requires_grad=True)).sum().backward()
    return tensor(size)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--then", choices=("raise", "kill", "hang", "halve"), default="raise")
    parser.add_argument("--in-backward", action="store_true")
    args = parser.parse_args()
    moments.begin()
    kept = [tensor(GIB // 4 + i * 1024) for i in range(8)]
    cached = [tensor(GIB // 8) for _ in range(4)]
    del cached
    if args.in_backward:
        run_backward_once()
    size = 128 * GIB
    while True:
        moments.moment("before")
        try:
            ask_for_too_much(args, size)
            break
        except torch.OutOfMemoryError as error:
            print(str(error).partition("\n")[0], flush=True)
            if args.then == "raise":
                raise
            if args.then == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            while args.then == "hang":
                time.sleep(1000)
            size //= 2
    moments.end()
    print_outcome(kept=len(kept))


if __name__ == "__main__":
    main()
