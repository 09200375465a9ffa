#!/usr/bin/env python3
"""Trains a small GPT under bf16 autocast with AdamW.

Exercises: embeddings, attention with F.scaled_dot_product_attention, the weight casts that autocast
keeps until the end of the forward pass, the logits as the largest activation, temporaries of the
foreach optimizer, zero_grad, which frees every gradient. --checkpoint recomputes blocks in the
backward pass; --graph runs a forward pass from a CUDA graph with its private pool.
"""

import argparse
import json

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x):
        batch, length, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x.transpose(1, 2).reshape(batch, length, hidden))


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads)
        self.norm2 = nn.LayerNorm(hidden)
        self.mlp = nn.Sequential(
            nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, layers, hidden, heads, length, checkpointing):
        super().__init__()
        self.checkpointing = checkpointing
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(length, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.head(self.norm(x))


def capture_forward(model, tokens, autocast):
    """Captures one forward pass into a CUDA graph and replays it."""
    # The cache of autocast's casts must not outlive the capture that made them.
    with torch.no_grad(), autocast(cache_enabled=False):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(tokens)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(tokens)
    graph.replay()
    torch.cuda.synchronize()
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--no-amp", action="store_true", help="train in fp32")
    parser.add_argument("--checkpoint", action="store_true", help="recompute blocks in backward")
    parser.add_argument("--graph", action="store_true", help="also replay a CUDA graph")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON line")
    args = parser.parse_args()

    device = args.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(device)

    torch.manual_seed(0)
    model = GPT(args.vocabulary, args.layers, args.hidden, args.heads, args.seq, args.checkpoint)
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def autocast(**options):
        return torch.autocast(
            device.type, dtype=torch.bfloat16, enabled=not args.no_amp, **options
        )

    for _ in range(args.steps):
        tokens = torch.randint(args.vocabulary, (args.batch, args.seq + 1), device=device)
        with autocast():
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(
                logits.reshape(-1, args.vocabulary), tokens[:, 1:].reshape(-1)
            )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    if args.graph and device.type == "cuda":
        graph = capture_forward(model, tokens[:, :-1].contiguous(), autocast)
        del graph

    result = {"loss": loss.item(), "device": str(device)}
    result["parameters"] = sum(p.numel() for p in model.parameters())
    if device.type == "cuda":
        stats = torch.cuda.memory_stats(device)
        result["max_memory_allocated"] = torch.cuda.max_memory_allocated(device)
        result["max_memory_reserved"] = torch.cuda.max_memory_reserved(device)
        result["num_device_alloc"] = stats.get("num_device_alloc")
        result["num_device_free"] = stats.get("num_device_free")
    if args.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key}: {value}")


if __name__ == "__main__":
    main()
