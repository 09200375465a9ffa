"""A training loop with Adam that keeps a tensor of every step, and a few tensors that are not leaks.
For each line of standard input it takes that many steps, and then prints its own data on PyTorch's blocks: one line of
JSON {"parameters": {address: size}, "gradients": ..., "state": ..., "leak": ..., "other": ...}; the parameters are included
in the state.

Usage: leaking_training.py OPTIMIZER [like-a-parameter] [gradients-stay]
  OPTIMIZER         Adam, SGD, Momentum
  like-a-parameter  the kept tensors have the size of a parameter
  gradients-stay    gradients are set to zero, not freed
"""

import json
import sys

import torch
from torch import nn

SIDES = (512, 768, 640, 512)


def sizes():
    """Returns the sizes of all blocks in use, by address."""
    found = {}
    for segment in torch.cuda.memory_snapshot():
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                found[at] = block["size"]
            at += block["size"]
    return found


def make_optimizer(name, parameters):
    if name == "Adam":
        return torch.optim.Adam(parameters, lr=1e-3)
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9 if name == "Momentum" else 0)


def main():
    layers = []
    for inner, outer in zip(SIDES, SIDES[1:]):
        layers += [nn.Linear(inner, outer), nn.ReLU()]
    model = nn.Sequential(*layers).cuda()
    optimizer = make_optimizer(sys.argv[1], model.parameters())
    tables = [torch.zeros(150_000 + 40_000 * i, device="cuda") for i in range(5)]
    shape = (SIDES[1], SIDES[0]) if "like-a-parameter" in sys.argv else (300_000,)
    kept = []
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            loss = model(torch.randn(64, SIDES[0], device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none="gradients-stay" not in sys.argv)
            kept.append(torch.ones(shape, device="cuda"))
            del loss
        held = sizes()
        state = [t for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t) and t.is_cuda]
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        kinds = {"parameters": list(model.parameters()), "gradients": gradients, "state": [*model.parameters(), *state], "leak": kept,
                 "other": tables}
        print(json.dumps({kind: {t.data_ptr(): held[t.data_ptr()] for t in tensors}
                          for kind, tensors in kinds.items()}), flush=True)


main()
