#!/usr/bin/env python3
"""Allocates until the GPU is full.

Exercises: how PyTorch handles a failing cudaMalloc (it frees its cache and tries again), the text of
torch.OutOfMemoryError, and, with --catch, a process that continues afterwards.
"""

import argparse
import json

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of one tensor")
    parser.add_argument("--most", type=int, default=4096, help="maximum number of tensors")
    parser.add_argument("--catch", action="store_true", help="catch the error and end normally")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON line")
    args = parser.parse_args()

    tensors = []
    message = None
    try:
        for _ in range(args.most):
            tensors.append(torch.empty(args.mib << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        if not args.catch:
            raise
        message = str(error)

    count = len(tensors)
    del tensors
    torch.cuda.empty_cache()
    after = torch.empty(args.mib << 20, dtype=torch.uint8, device="cuda")  # there is room again
    stats = torch.cuda.memory_stats()
    result = {
        "tensors": count,
        "message": message,
        "num_ooms": stats["num_ooms"],
        "num_device_alloc": stats["num_device_alloc"],
        "num_device_free": stats["num_device_free"],
        "allocated": after.numel(),
    }
    print(json.dumps(result) if args.json else result)


if __name__ == "__main__":
    main()
