"""Trains a small model in which the size of a tensor identifies it, so that the stack of each is known.

Run with PYTORCH_NO_CUDA_MEMORY_CACHING=1, so that each tensor is an allocation. sites.py describes
the notation.
"""

import sys
import threading

import torch
from notes import note
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


_noted = set()


def noted(site, tensor):
    """Notes the caller's stack at the first call, which is on the line that made the tensor."""
    if site not in _noted:
        _noted.add(site)
        note(site, sys._getframe(1), tensor.nbytes)
    return tensor


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(64, 3 * 64)

    def forward(self, x):
        qkv = noted("qkv", self.qkv(x))  # site qkv: native at::native::linear < ~ < Attention.forward
        # < ~ < Block.forward@attention < ~ < Model.forward@blocks < ~ < step@forward < main
        q, k, v = qkv.view(5, 7, 3, 4, 16).permute(2, 0, 3, 1, 4)
        weights = noted("scores", q @ k.transpose(-2, -1))  # site scores: native at::native::matmul
        # < Attention.forward < ~ < Block.forward@attention < ~ < Model.forward@blocks < ~
        # < step@forward < main
        weights = noted("softmax", weights.double().softmax(-1))  # site softmax: Attention.forward
        # < ~ < Block.forward@attention < ~ < Model.forward@blocks < ~ < step@forward < main
        return (weights.float() @ v).transpose(1, 2).reshape(5, 7, 64)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.norm = nn.LayerNorm(64)
        self.up, self.down = nn.Linear(64, 211), nn.Linear(211, 64)

    def forward(self, x):
        x = x + self.attention(self.norm(x))  # @attention
        wide = noted("up", self.up(x))  # site up: native at::native::linear < ~ < Block.forward < ~
        # < Model.forward@blocks < ~ < step@forward < main
        wide = noted("to_double", F.gelu(wide.double()))  # site to_double: native at::native::to
        # < Block.forward < ~ < Model.forward@blocks < ~ < step@forward < main
        return x + self.down(wide.float())


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return noted("custom", torch.cat([x] * 3))  # site custom: native at::_ops::cat::call
        # < Tripled.forward < ~ < Model.forward@custom_call < ~ < step@forward < main

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        # On a thread of PyTorch, below C++ code that was not called from Python.
        wide = noted("backward", torch.empty(9, 1013, device=x.device))  # site backward:
        # native at::_ops::empty_memory_format::call < Tripled.backward@backward < ~
        return gradient[:7] * x + wide.sum()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(523, 64)
        self.block = Block()
        self.head = nn.Linear(64, 523, bias=False)

    def forward(self, tokens):
        x = noted("embedding", self.tokens(tokens))  # site embedding: native at::native::embedding_symint
        # < ~ < Model.forward < ~ < step@forward < main
        x = self.block(x)  # @blocks
        x = checkpoint(self.recomputed, x, use_reentrant=False)  # @checkpoint_call
        x = Tripled.apply(x.sum(0))  # @custom_call
        return noted("head", self.head(x))  # site head: native at::native::linear < ~
        # < Model.forward < ~ < step@forward < main

    def recomputed(self, x):
        out = noted("checkpoint", torch.cat([x] * 13))  # site checkpoint:
        # native at::_ops::cat::call < Model.recomputed < ~ < Model.forward@checkpoint_call < ~
        # < step@forward < main
        return out[:5] * 2


def hook(gradient):
    noted("hook", torch.zeros(3, 1019, device=gradient.device))  # site hook:
    # native at::native::zeros_symint < hook


def step(model, optimizer, tokens):
    loss = model(tokens).logsumexp(-1).mean()  # @forward
    loss.register_hook(hook)
    loss.backward()
    optimizer.step()


def on_a_thread(device):
    noted("thread", torch.randn(11, 1021, device=device))  # site thread: native at::native::randn
    # < on_a_thread < ~


@torch.no_grad()
def evaluates(device):
    noted("no_grad", torch.full((7, 1031), 2.0, device=device))  # site no_grad:
    # native at::native::full < evaluates < ~ < evaluated@evaluated < main


def evaluated(device):
    evaluates(device)  # @evaluated


def run(function, *arguments):
    return function(*arguments)  # @run


if __name__ == "__main__":
    device = torch.device("cuda")
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.zeros(5, 7, dtype=torch.long, device=device)
    for function, *arguments in (
        (step, model, optimizer, tokens),
        (evaluated, device),
    ):
        run(function, *arguments)  # @start
    thread = threading.Thread(target=on_a_thread, args=[device])
    thread.start()
    thread.join()
