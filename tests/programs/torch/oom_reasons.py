#!/usr/bin/env python3
"""Runs out of memory for the given REASON; --seed varies the sizes and the course of the program.

The environment sets the device's size and the use by other processes. Prints one line of JSON: the
reason, the bytes that it accounts for, and PyTorch's own counters at that moment.
"""

import argparse
import ctypes
import json
import os
import random

import torch

MIB = 1 << 20


def tensor(size, stream=None):
    if stream is None:
        return torch.empty(int(size), dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(stream):
        return torch.empty(int(size), dtype=torch.uint8, device="cuda")


def driver_free():
    return torch.cuda.mem_get_info()[0]


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.total = torch.cuda.mem_get_info()[1]
        self.kept = []
        self.bytes = 0  # that the reason accounts for

    def keep(self, size, stream=None):
        self.kept.append(tensor(size, stream))
        return self.kept[-1]

    def fill_up_to(self, rest):
        """Allocates until the driver has about `rest` bytes free, and leaves no cache."""
        while driver_free() > rest + 40 * MIB:
            self.keep(min(self.random.randint(20, 200) * MIB, driver_free() - rest - 20 * MIB))

    def fill(self):
        while True:
            self.keep(self.random.randint(20, 200) * MIB)

    def churn(self):
        for _ in range(self.random.randint(0, 5)):
            tensor(self.random.randint(1, 100) * MIB)
        torch.cuda.empty_cache()

    # ---- Reasons --------------------------------------------------------------------------------

    def capacity(self):
        self.churn()
        self.fill()

    def single_request(self):
        self.keep(self.random.randint(1, 200) * MIB)
        tensor(self.total * self.random.uniform(1.05, 4))

    def fragmentation(self):
        stream = torch.cuda.Stream() if self.random.random() < 0.5 else None
        hole = self.random.randint(60, 150) * MIB
        fillers = []
        for _ in range(int(self.total * self.random.uniform(0.2, 0.4) / hole) + 2):
            whole = tensor(hole, stream)
            del whole
            pin = self.random.randint(3, 10) * MIB // 2
            self.keep(pin, stream)
            fillers.append(tensor(hole - pin, stream))
            self.bytes += hole - pin
        request = int(hole * self.random.uniform(1.3, 2))
        self.fill_up_to(self.random.randint(0, request // 2))
        fillers.clear()
        tensor(request)

    def leak(self):
        weight = torch.nn.Parameter(torch.empty(8 << 18, device="cuda"))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        activation = 40 * MIB
        room = driver_free() - 4 * activation
        size = room // self.random.randint(230, 400)
        history = []
        while True:
            layers = [tensor(activation) for _ in range(2)]
            loss = (weight * 2).sum()
            loss.backward()
            history.append(tensor(size))
            self.bytes += size
            optimizer.step()
            optimizer.zero_grad()
            del layers, loss

    def outside(self):
        runtime = ctypes.CDLL("libcudart.so.13")
        most = self.total * self.random.uniform(0.35, 0.6)
        while self.bytes < most:
            size = self.random.randint(10, 100) * MIB
            pointer = ctypes.c_void_p()
            assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
            self.bytes += size
        self.fill()

    def cap(self):
        fraction = self.random.uniform(0.2, 0.7)
        torch.cuda.set_per_process_memory_fraction(fraction)
        self.bytes = int(self.total * fraction)
        self.churn()
        self.fill()

    def other_process(self):
        self.bytes = self.total - driver_free()
        self.churn()
        self.fill()

    def private_pool(self):
        most = self.total * self.random.uniform(0.25, 0.45)
        if self.random.random() < 0.5:
            self.graph = torch.cuda.CUDAGraph()
            context = torch.cuda.graph(self.graph)
        else:
            self.pool = torch.cuda.MemPool()
            context = torch.cuda.use_mem_pool(self.pool)
        with context:
            blocks = []
            while self.bytes < most:
                size = self.random.randint(20, 200) * MIB
                blocks.append(tensor(size))
                self.bytes += size
            blocks.clear()
        self.fill()

    def stream_deferred(self):
        side = torch.cuda.Stream()
        self.use_elsewhere_once(side)
        most = self.total * self.random.uniform(0.2, 0.35)
        blocks = []
        while self.bytes < most:
            size = self.random.randint(20, 100) * MIB
            blocks.append(tensor(size))
            self.bytes += size
        request = int(self.total * self.random.uniform(0.05, 0.1))
        self.fill_up_to(self.random.randint(0, request // 2))
        with torch.cuda.stream(side):
            for block in blocks:
                block[:1].add_(1)  # work that is not completed
                block.record_stream(side)
        del block
        blocks.clear()
        graph = torch.cuda.CUDAGraph()
        # torch.cuda.graph is not used, because it would synchronise and thereby end the wait.
        with torch.cuda.stream(torch.cuda.Stream()):
            graph.capture_begin(capture_error_mode="relaxed")
            tensor(request)

    def use_elsewhere_once(self, stream):
        """Uses a block on another stream, like each step of a real program: the allocator queries
        whether that stream has completed."""
        with torch.cuda.stream(stream):
            block = tensor(4 * MIB)
        block[:1].add_(1)
        block.record_stream(torch.cuda.current_stream())
        del block
        torch.cuda.synchronize()
        tensor(4 * MIB)

    def none(self):
        for _ in range(self.random.randint(1, 4)):
            size = int(self.total * self.random.uniform(0.1, 0.14))
            cached = []
            while driver_free() > size + 40 * MIB:
                cached.append(tensor(size))
            cached.clear()
            tensor(self.total * 0.3)
            torch.cuda.empty_cache()


def split():
    """Returns the bytes of PyTorch's segments by what holds them or why they are free, from PyTorch's
    own snapshot."""
    sums = dict.fromkeys(("allocated", "releasable", "beside", "private", "awaiting"), 0)
    for segment in torch.cuda.memory_snapshot():
        states = [(block["state"], block["size"]) for block in segment["blocks"]]
        is_private = tuple(segment["segment_pool_id"]) != (0, 0)
        is_free = all(state == "inactive" for state, _ in states)
        for state, size in states:
            if state == "active_allocated":
                sums["allocated"] += size
            elif state != "inactive":
                sums["awaiting"] += size
            else:
                free = "private" if is_private else "releasable" if is_free else "beside"
                sums[free] += size
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reason")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    program = Program(args.seed)
    failed = False
    try:
        getattr(program, args.reason)()
    except torch.OutOfMemoryError:
        failed = True
    stats = torch.cuda.memory_stats()
    outcome = {
        "reason": args.reason,
        "bytes": program.bytes,
        "failed": failed,
        "allocated": stats["allocated_bytes.all.current"],
        "reserved": stats["reserved_bytes.all.current"],
        "retries": stats["num_alloc_retries"],
        "split": split(),
        "named_pools": not hasattr(program, "pool"),
    }
    print(json.dumps(outcome), flush=True)
    os._exit(1 if failed else 0)  # skips the frees at exit


if __name__ == "__main__":
    main()
