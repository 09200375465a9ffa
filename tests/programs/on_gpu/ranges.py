"""Makes NVTX ranges and marks through PyTorch's interface.

Usage: ranges.py
Prints one JSON line: {"ranges": [names in the order in which they begin], "marks": [names]}.
"""

import json

import torch


def main():
    nvtx = torch.cuda.nvtx
    result = {"ranges": [], "marks": []}

    def begin(name):
        result["ranges"].append(name)
        return name

    kept = torch.empty(1 << 20, device="cuda")  # the recording begins here
    for step in range(3):
        nvtx.range_push(begin(f"step {step}"))
        nvtx.range_push(begin("forward"))
        kept = torch.empty(1 << 20, device="cuda")
        nvtx.range_pop()
        with nvtx.range(begin("backward")):
            kept.add_(1)
        nvtx.mark("loss is known")
        result["marks"].append("loss is known")
        nvtx.range_pop()
    overlapping = nvtx.range_start(begin("overlapping"))
    nvtx.range_end(overlapping)
    torch.cuda.synchronize()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
