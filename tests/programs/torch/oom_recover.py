#!/usr/bin/env python3
"""Runs out of memory in ways from which programs recover.

1. A failing cudaMalloc that the allocator handles: it frees its cache and tries again.
2. A batch size that is halved until a training step fits.
3. An error in the middle of a backward pass, after which the program continues.

The scenario gives the device 4 GiB.
"""

import models
import moments
import torch
from outcome import print_outcome

GIB = 1 << 30


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def retry():
    """Fills the cache with segments of the wrong size; the next request needs their memory."""
    cached = [tensor(GIB // 2) for _ in range(6)]
    del cached
    moments.moment("cached")
    whole = tensor(3 * GIB)
    moments.moment("retried")
    del whole
    torch.cuda.empty_cache()


def step(model, optimizer, batch):
    loss = model(torch.randn(batch, 2048).cuda()).square().mean()
    moments.moment("forward")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def find_batch(model, optimizer, batch):
    """Halves `batch` until a step fits. Returns that size and the loss."""
    while True:
        try:
            return batch, step(model, optimizer, batch)
        except torch.OutOfMemoryError as error:
            assert "CUDA out of memory" in str(error)
        moments.moment("out_of_memory")
        torch.cuda.empty_cache()
        optimizer.zero_grad()
        batch //= 2


class Greedy(torch.autograd.Function):
    """Requests more memory than the device has in its backward pass."""

    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        tensor(8 * GIB)
        return gradient


def main():
    moments.begin()
    torch.manual_seed(0)
    model = models.mlp(2048, 6).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    moments.moment("construction")
    retry()
    batch, loss = find_batch(model, optimizer, 1 << 17)
    moments.moment("fits")
    try:
        Greedy.apply(model(torch.randn(64, 2048).cuda())).sum().backward()
    except torch.OutOfMemoryError:
        moments.moment("out_of_memory_in_backward")
    optimizer.zero_grad()
    step(model, optimizer, 64)
    moments.end()
    print_outcome(loss=loss.item(), batch=batch)


if __name__ == "__main__":
    main()
