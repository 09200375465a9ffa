"""A training loop that names its steps with torch.cuda.nvtx, which has a copy of NVTX in PyTorch's own libraries. Prints
the levels that it returns.
"""

import torch

weights = torch.randn(64, 64, device="cuda", requires_grad=True)
levels = []
for step in range(2):
    levels.append(torch.cuda.nvtx.range_push(f"step {step}"))
    torch.cuda.nvtx.mark("batch is there")
    levels.append(torch.cuda.nvtx.range_push("forward"))
    loss = (weights @ weights).sum()
    levels.append(torch.cuda.nvtx.range_pop())
    loss.backward()
    levels.append(torch.cuda.nvtx.range_pop())
print(*levels)
