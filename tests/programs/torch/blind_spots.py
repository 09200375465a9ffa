#!/usr/bin/env python3
"""Does things that are invisible from outside PyTorch's allocator, one for each PART.
tests/e2e/torch/blind_spots_check.py checks the known errors of the recordings.
"""

import argparse

import moments
import torch
from outcome import print_outcome

MIB = 1 << 20


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def by_stream():
    """A library allocates for its own stream while another one is current."""
    side = torch.cuda.Stream()
    address = torch.cuda.caching_allocator_alloc(5 * MIB, device=0, stream=side)
    moments.moment("taken")
    torch.cuda.caching_allocator_delete(address)
    moments.moment("given back")


def in_capture():
    """A block that is freed in a capture cannot wait for an event; it waits until the capture ends."""
    side, capturing = torch.cuda.Stream(), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=capturing):
        block = tensor(6 * MIB)
        block.zero_()
        side.wait_stream(capturing)
        with torch.cuda.stream(side):
            block.add_(1)
        block.record_stream(side)
        capturing.wait_stream(side)
        del block
        other = tensor(2 * MIB)
    moments.moment("captured")
    graph.replay()
    torch.cuda.synchronize()
    tensor(MIB)
    moments.moment("replayed")
    del graph, other
    torch.cuda.empty_cache()
    moments.moment("graph is gone")


def foreign_event():
    """PyTorch's library records an event on another stream between an allocation and a free."""
    side = torch.cuda.Stream()
    event = torch.Event("cuda")
    event.record(side)
    event.query()
    block = tensor(3 * MIB)
    event.record(side)
    del block
    moments.moment("freed behind the event")
    event.query()
    moments.moment("and the event is done")


def silent_retry():
    """With a limit below the device's memory, the allocator refuses without calling the driver. Only
    the segments that it frees show that it tries again."""
    torch.cuda.set_per_process_memory_fraction(0.25)
    cached = [tensor(300 * MIB) for _ in range(3)]
    del cached
    kept = tensor(600 * MIB)
    moments.moment("tried again")
    del kept


PARTS = {f.__name__: f for f in (by_stream, in_capture, foreign_event, silent_retry)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    args = parser.parse_args()
    moments.begin()
    PARTS[args.part]()
    moments.end()
    print_outcome()


if __name__ == "__main__":
    main()
