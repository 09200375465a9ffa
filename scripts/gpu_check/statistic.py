"""Medians of pairs, with intervals that assume nothing of how the figures are distributed."""

import math
import statistics


def median_interval(values, confidence=0.95):
    """(low, median, high): between two of the sorted values the true median lies with at least
    that confidence, whatever the distribution (the interval of the sign test). Needs six values or
    more for 95 %; with fewer it is the whole range."""
    ordered = sorted(values)
    count = len(ordered)
    if count == 0:
        raise ValueError("no values")
    # The largest `rank` values may be cut off on both sides while the binomial tail stays small.
    tail, rank = 0.0, 0
    for below in range(count // 2):
        tail += math.comb(count, below) / 2**count
        if 2 * tail > 1 - confidence:
            break
        rank = below + 1
    low = ordered[max(rank - 1, 0)]
    high = ordered[min(count - rank, count - 1)]
    return low, statistics.median(ordered), high


def ratio_in_words(ratios):
    low, middle, high = median_interval(ratios)
    return f"x{middle:.3f} (95 %: x{low:.3f} to x{high:.3f}; {len(ratios)} pairs)"
