"""Medians of pairs, with intervals that make no assumption about the distribution."""

import math
import statistics


def median_interval(values, confidence=0.95):
    """Returns (low, median, high). The true median is between low and high with at least that confidence, for any
    distribution (the interval of the sign test). 95 % needs at least six values; with fewer the interval is the whole
    range."""
    ordered = sorted(values)
    count = len(ordered)
    if count == 0:
        raise ValueError("no values")
    # The `rank` extreme values on each side may be cut off while the binomial tail is small enough.
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
    low, median, high = median_interval(ratios)
    return f"x{median:.3f} (95 %: x{low:.3f} to x{high:.3f}; {len(ratios)} pairs)"
