"""Trains a few steps under torch.profiler, twice in one process, and prints what it recorded.

Usage: profiled.py
Prints one JSON line: {"kernels": [count in each profile], "copies": [...], "sums": whether the loss
is a number}.
"""

import json

import torch
from torch.profiler import ProfilerActivity, profile


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        loss = model(torch.randn(64, 512).cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    step()
    result = {"kernels": [], "copies": []}
    for _ in range(2):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            for _ in range(3):
                loss = step()
            torch.cuda.synchronize()
        events = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
        copies = [e for e in events if e.name.startswith(("Memcpy", "Memset"))]
        result["kernels"].append(len(events) - len(copies))
        result["copies"].append(len(copies))
        step()
    result["sums"] = loss == loss
    print(json.dumps(result))


if __name__ == "__main__":
    main()
