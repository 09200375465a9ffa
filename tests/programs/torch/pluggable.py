#!/usr/bin/env python3
"""Trains with a pluggable allocator, a C library.

By default it serves a MemPool, and PyTorch splits its memory into blocks. With --whole the library
replaces PyTorch's allocator, and there are no blocks.
"""

import argparse
import pathlib
import shutil
import subprocess
import tempfile

import models
import moments
import torch
from outcome import print_outcome

SOURCE = """
#include <stddef.h>
#include <sys/types.h>
extern int cudaMalloc(void** pointer, size_t size);
extern int cudaFree(void* pointer);
void* take(ssize_t size, int device, void* stream) {
  void* pointer = NULL;
  return cudaMalloc(&pointer, (size_t)size) == 0 ? pointer : NULL;
}
void give_back(void* pointer, ssize_t size, int device, void* stream) { cudaFree(pointer); }
"""


def own_allocator(folder):
    library = pathlib.Path(folder) / "libown_allocator.so"
    command = [shutil.which("gcc") or "clang", "-shared", "-fPIC", "-o", str(library), "-xc", "-"]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    return torch.cuda.memory.CUDAPluggableAllocator(str(library), "take", "give_back")


def train(steps):
    model = models.mlp(256, 2).cuda()
    moments.moment("construction")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = model(torch.randn(64, 256).cuda()).square().mean()
        moments.moment("forward")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true", help="replace PyTorch's allocator")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        own = own_allocator(folder)
        if args.whole:
            torch.cuda.memory.change_current_allocator(own)
            print_outcome(loss=train(3).item())
            return
        moments.begin()
        torch.manual_seed(0)
        pool = torch.cuda.MemPool(own.allocator())
        with torch.cuda.use_mem_pool(pool):
            loss = train(2)
        outside = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
        moments.moment("outside_the_pool")
        loss = loss.item()
        del outside, pool
        moments.moment("pool_gone")
        torch.cuda.empty_cache()
        moments.end()
        print_outcome(loss=loss)


if __name__ == "__main__":
    main()
