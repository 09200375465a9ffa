#!/usr/bin/env python3
"""Trains a ResNet: convolutions with their workspaces, batch norm, running statistics.

cuDNN requests a workspace from PyTorch for each convolution and frees it after it: the
shortest-lived blocks of a training step. With --benchmark it tries algorithms at the first
convolution of each shape.
"""

import argparse

import models
import moments
import torch
import torch.nn.functional as F
from outcome import print_outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--amp", action="store_true", help="bf16 autocast")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--benchmark", action="store_true", help="torch.backends.cudnn.benchmark")
    parser.add_argument("--native", action="store_true", help="without cuDNN")
    args = parser.parse_args()

    moments.begin()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = args.benchmark
    torch.backends.cudnn.enabled = not args.native
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    model = models.resnet().cuda().to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    moments.moment("construction")
    for step in range(3):
        images = torch.randn(16 + 3 * step, 3, 32, 32).cuda().to(memory_format=layout)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.amp):
            output = model(images)
            loss = F.cross_entropy(output, torch.zeros(len(images), dtype=torch.long).cuda())
        moments.moment("forward")
        loss.backward()
        moments.moment("backward")
        optimizer.step()
        moments.moment("step")
        optimizer.zero_grad()
    model.eval()
    with torch.inference_mode():
        model(images)
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
