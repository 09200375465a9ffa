#!/usr/bin/env python3
"""Exercises rare paths of PyTorch's allocator: a limit below the device's memory, garbage collection
under it, events that are not the allocator's own, and pools that are destroyed.

The scenarios set garbage_collection_threshold and max_split_size_mb, or expandable_segments.
"""

import moments
import torch
from outcome import print_outcome

MIB = 1 << 20


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def within_a_limit():
    """Runs out of memory without a call to the driver; the allocator frees its cache before."""
    torch.cuda.set_per_process_memory_fraction(0.25)
    kept = [tensor(100 * MIB) for _ in range(4)]
    cached = [tensor(50 * MIB + i * 2 * MIB) for i in range(6)]
    moments.moment("below the limit")
    del cached
    for size in (60, 130, 200):  # no cached block fits, and their age grows
        kept.append(tensor(size * MIB))
        moments.moment("collected")
        kept.pop()
    try:
        tensor(900 * MIB)
    except torch.OutOfMemoryError:
        moments.moment("out of memory")
    torch.cuda.set_per_process_memory_fraction(1.0)


def other_events():
    """The same library of PyTorch records other events between an allocation and a free."""
    side = torch.cuda.Stream()
    event = torch.Event("cuda")
    first = tensor(3 * MIB)
    event.record()
    del first
    moments.moment("freed behind an event")
    with torch.cuda.stream(side):
        second = tensor(4 * MIB)
        event.record()
        second.zero_()
    second.record_stream(torch.cuda.current_stream())
    event.query()
    event.record(side)
    del second
    moments.moment("freed behind an event, for another stream")
    event.synchronize()
    torch.cuda.synchronize()
    tensor(MIB)
    moments.moment("waited for")


def in_pools():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = [tensor(7 * MIB), tensor(1000)]
    outside = tensor(7 * MIB)
    moments.moment("in a pool")
    del inside
    moments.moment("pool is empty")
    del pool
    torch.cuda.empty_cache()
    moments.moment("pool is gone")
    del outside


def main():
    moments.begin()
    for part in (within_a_limit, other_events, in_pools):
        part()
        torch.cuda.empty_cache()
        moments.moment(part.__name__)
    moments.end()
    print_outcome()


if __name__ == "__main__":
    main()
