#!/usr/bin/env python3
"""Trains a small MLP with Adam: the simplest training loop.

Exercises: cudaMalloc and cudaFree through PyTorch's caching allocator, pinned host memory
(--pinned), parameters, gradients, two optimizer states per parameter, activations that live
from forward to backward.
"""

import argparse
import json

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--pinned", action="store_true", help="copy the input from pinned memory")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON line")
    args = parser.parse_args()

    device = args.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(device)

    torch.manual_seed(0)
    layers = []
    for _ in range(args.layers):
        layers += [nn.Linear(args.hidden, args.hidden), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(args.hidden, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for _ in range(args.steps):
        inputs = torch.randn(args.batch, args.hidden)
        if args.pinned and device.type == "cuda":
            inputs = inputs.pin_memory()
        inputs = inputs.to(device, non_blocking=args.pinned)
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    result = {"loss": loss.item(), "device": str(device)}
    if device.type == "cuda":
        stats = torch.cuda.memory_stats(device)
        result["max_memory_allocated"] = torch.cuda.max_memory_allocated(device)
        result["max_memory_reserved"] = torch.cuda.max_memory_reserved(device)
        result["num_device_alloc"] = stats.get("num_device_alloc")
        result["num_device_free"] = stats.get("num_device_free")
    if args.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key}: {value}")


if __name__ == "__main__":
    main()
