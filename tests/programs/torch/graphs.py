#!/usr/bin/env python3
"""Uses CUDA graphs and MemPool: blocks in pools that are not the default ones.

A graph's private pool keeps its segments while the graph exists; two graphs that share a pool share
its blocks. make_graphed_callables captures forward and backward passes. A MemPool serves every
allocation in its context.
"""

import models
import moments
import torch
from outcome import print_outcome

MIB = 1 << 18  # floats


def graph_with_private_pool():
    static = torch.zeros(3 * MIB, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = static * 2 + 1
    moments.moment("captured")
    second = torch.cuda.CUDAGraph()
    with torch.cuda.graph(second, pool=graph.pool()):
        other = result.square()
    graph.replay()
    second.replay()
    moments.moment("replayed")
    del result, other
    graph.reset()
    second.reset()
    del graph, second
    moments.moment("graphs_gone")
    torch.cuda.empty_cache()
    moments.moment("emptied")


def graphed_model():
    model = models.mlp(256, 2).cuda()
    sample = torch.randn(64, 256, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(model, (sample,))
    moments.moment("graphed")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        loss = graphed(torch.randn(64, 256, device="cuda", requires_grad=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        moments.moment("graphed_step")
    return loss


def memory_pool():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = torch.empty(7 * MIB, device="cuda")
        torch.empty(9 * MIB, device="cuda")
    outside = torch.empty(7 * MIB, device="cuda")
    moments.moment("pool_used")
    del kept, outside
    moments.moment("pool_freed")
    del pool
    torch.cuda.empty_cache()
    moments.moment("pool_gone")


def main():
    moments.begin()
    torch.manual_seed(0)
    graph_with_private_pool()
    loss = graphed_model()
    memory_pool()
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
