#!/usr/bin/env python3
"""Runs backward passes of every kind. Each has a unique width, so that sizes identify its memory.
tests/e2e/torch/backward_check.py checks the line of the forward pass to which each block of the
backward pass is attributed.
"""

import threading

import moments
import torch
import torch.nn.functional as F
from outcome import print_outcome
from torch.utils.checkpoint import checkpoint

ROWS = 512


def weight(width):
    return torch.nn.Parameter(torch.ones(width, width, device="cuda"))


def layers(x, w):
    y = x @ w
    y = F.gelu(y)
    y = F.layer_norm(y, y.shape[1:])
    return y * x


def rows(width):
    return torch.ones(ROWS, width, device="cuda", requires_grad=True)


def plain():
    layers(rows(1000), weight(1000)).sum().backward()


def checkpointed(reentrant, width):
    w = weight(width)
    x = checkpoint(layers, rows(width), w, use_reentrant=reentrant)
    checkpoint(layers, x, w, use_reentrant=reentrant).sum().backward()


class Doubled(torch.autograd.Function):
    """Has a backward pass in Python that allocates."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        scale = torch.full_like(gradient, 2.0)
        return gradient * scale


def checkpointed_anew():
    checkpointed(False, 1030)


def checkpointed_reentrantly():
    checkpointed(True, 1060)


def custom():
    x = Doubled.apply(rows(1100))
    layers(x, weight(1100)).sum().backward()


class Inner(torch.autograd.Function):
    """Runs a backward pass inside the backward pass."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + 1

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            inside = F.silu(again * 3)
            torch.autograd.backward(inside, gradient)
        return again.grad


def reentrant():
    x = Inner.apply(rows(1200))
    layers(x, weight(1200)).sum().backward()


def on_another_thread():
    loss = layers(rows(1300), weight(1300)).sum()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()


def forward_on_other_threads():
    """Each thread numbers its own nodes, so equal numbers can mean different nodes."""
    losses = {}

    def first():
        losses["first"] = layers(rows(1400), weight(1400)).sum()

    def second():
        y = rows(1500) @ weight(1500)
        losses["second"] = F.relu(y).square().sum()

    for function in (first, second):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
    (losses["first"] + losses["second"]).backward()


def twice():
    x, w = rows(1600), weight(1600)
    (slope,) = torch.autograd.grad(layers(x, w).sum(), x, create_graph=True)
    slope.square().sum().backward()


def hooked():
    y = rows(1700) @ weight(1700)
    y.register_hook(lambda gradient: gradient + torch.ones_like(gradient))
    F.gelu(y).sum().backward()


def again_over_one_graph():
    loss = layers(rows(1800), weight(1800)).sum()
    loss.backward(retain_graph=True)
    loss.backward()


def main():
    moments.begin()
    for part in (
        plain,
        checkpointed_anew,
        checkpointed_reentrantly,
        custom,
        reentrant,
        on_another_thread,
        forward_on_other_threads,
        twice,
        hooked,
        again_over_one_graph,
    ):
        part()
        moments.moment(part.__name__)
    moments.end()
    print_outcome()


if __name__ == "__main__":
    main()
