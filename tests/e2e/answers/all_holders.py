#!/usr/bin/env python3
"""Holds device memory in every way that a ledger distinguishes, reports the amounts, and ends in that state.

It holds live blocks, a cached segment, a hole, NCCL communicators, cuBLAS handles, and memory from its own cudaMalloc call.
Prints one JSON object, waits until its input ends, and ends without freeing anything.
"""

import ctypes
import json
import os
import sys

import torch
import torch.distributed as dist

MIB = 1 << 20


def used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def own_memory(cudart, mib):
    """Allocates memory like an extension would."""
    pointer = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(mib * MIB)) == 0
    return pointer


def outside():
    """Returns the device memory in use outside PyTorch's segments."""
    return used() - torch.cuda.memory_reserved()


def main():
    keep = [torch.empty(5 * MIB, dtype=torch.uint8, device="cuda") for _ in range(6)]
    context = outside()
    gone = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    del gone, keep[1]  # a cached segment and a hole
    before = outside()
    torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
    cublas = outside() - before
    before = outside()
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:0", rank=0, world_size=1,
                            device_id=torch.device("cuda", 0))
    dist.all_reduce(keep[0])
    torch.cuda.synchronize()
    nccl = outside() - before
    mine = own_memory(ctypes.CDLL(os.environ.get("CUDART", "libcudart.so.13")), 48)
    state = {
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "context": context,
        "cublas": cublas,
        "nccl": nccl,
        "own": 48 * MIB,
        "used": used(),
        "pid": os.getpid(),
    }
    print(json.dumps(state), flush=True)
    sys.stdin.read()
    assert mine and keep
    os._exit(0)


if __name__ == "__main__":
    main()
