"""A training loop that takes a step for each line of standard input, and prints after each step the memory held by
PyTorch's allocator: one line of JSON {"allocated", "reserved", "blocks": [[address, size]],
"segments": [[address, size]]}.
"""

import json
import sys

import torch
from torch import nn


def held():
    blocks, segments = [], []
    for segment in torch.cuda.memory_snapshot():
        segments.append([segment["address"], segment["total_size"]])
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks.append([at, block["size"]])
            at += block["size"]
    return {
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "blocks": blocks,
        "segments": segments,
    }


def main():
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    kept = []
    print("ready", flush=True)
    for line in sys.stdin:
        loss = model(torch.randn(64, 512, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(torch.empty(len(kept) + 1, 100000, device="cuda"))
        if line.startswith("free"):
            kept.clear()
            torch.cuda.empty_cache()
        if line.startswith("raise"):
            # Querying Python must not affect an exception in progress.
            try:
                raise KeyError(torch.empty(1000, device="cuda").numel())
            except KeyError as error:
                assert error.args == (1000,), error
        print(json.dumps(held()), flush=True)


main()
