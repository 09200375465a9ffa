#!/usr/bin/env python3
"""Exercises the allocator's cache: splits, merges, segments that are freed and allocated again.

Blocks of the small and of the large pool are freed in an order that leaves holes; empty_cache frees
the segments that are entirely free. If the scenario sets garbage_collection_threshold and
max_split_size_mb, the allocator also frees segments by itself.
"""

import moments
import torch
from outcome import print_outcome

KIB = 1 << 10
MIB = 1 << 20


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def main():
    moments.begin()
    # With a limit, the allocator collects its cache before it requests more from the driver.
    torch.cuda.set_per_process_memory_fraction(0.5)
    small = [tensor(KIB * (1 + n % 700)) for n in range(0, 2100, 7)]
    large = [tensor(MIB + MIB // 2 * n) for n in range(20)]
    moments.moment("filled")
    del small[::2], large[1::3]
    moments.moment("holes")
    torch.cuda.empty_cache()
    moments.moment("emptied_around_holes")
    large += [tensor(2 * MIB + 7 * KIB * n) for n in range(12)]
    moments.moment("holes_filled")
    huge = tensor(220 * MIB)
    del huge
    huge = tensor(201 * MIB)  # from the cached segment, which is split or not
    moments.moment("split")
    del huge
    del small, large
    moments.moment("all_free")
    torch.cuda.empty_cache()
    moments.moment("emptied")
    rest = tensor(1)
    moments.end()
    print_outcome(rest=rest.numel())


if __name__ == "__main__":
    main()
