#!/usr/bin/env python3
"""Trains a GPT that torch.compile has compiled to Triton kernels.

Inductor's generated code allocates through its own function (empty_strided_cuda). Compiling needs
gcc; TRITON_LIBCUDA_PATH is the folder of the driver that Triton links its launcher to.
"""

import argparse

import models
import moments
import torch
import torch.nn.functional as F
from outcome import print_outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", default="default", help="as in torch.compile")
    args = parser.parse_args()

    moments.begin()
    torch.manual_seed(0)
    model = torch.compile(models.gpt(layers=2), mode=args.mode).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    moments.moment("construction")
    for _ in range(3):
        tokens = torch.randint(models.VOCABULARY, (4, models.LENGTH + 1)).cuda()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        moments.moment("forward")
        loss.backward()
        moments.moment("backward")
        optimizer.step()
        optimizer.zero_grad()
        del logits
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
