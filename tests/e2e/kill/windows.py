"""Checks that a recording agrees with the part of a process's life that it covers.

The truth is the simulated device's log, in which all allocations have different sizes. The recording of an attach starts and
ends somewhere in it, and each thread may be in one call at either end.
"""

import collections

import verdict


def _allocations(events):
    return [event for event in events if event.kind == "alloc"]


def _key(event):
    return event.address, event.size, event.thread


def _check_order(want, have, lost):
    """Everything allocated during the recording is in it, in order per thread, except for events counted as lost."""
    places = collections.defaultdict(dict)
    for event in want:
        places[event.thread][_key(event)] = len(places[event.thread])
    seen = collections.defaultdict(list)
    for event in have:
        place = places[event.thread].get(_key(event))
        assert place is not None, f"not in the truth: {event}"
        seen[event.thread].append(place)
    missing = 0
    for thread, found in seen.items():
        assert found == sorted(set(found)), f"thread {thread}: out of order"
        missing += found[-1] - found[0] + 1 - len(found)
    assert missing <= lost, f"{missing} allocations are missing, {lost} events reported as lost"


def _check_live(want, have, threads):
    """What is live at its end was allocated since its start and not freed."""
    recorded = verdict.live(have)
    first = {_key(event) for event in _allocations(have)}
    begin = next((n for n, e in enumerate(want) if e.kind == "alloc" and _key(e) in first), None)
    if begin is None:
        return
    last = max(n for n, e in enumerate(want) if e.kind == "alloc" and _key(e) in first)
    truth = verdict.live(want[begin : last + 1])
    differs = set(truth.items()) ^ set(recorded.items())
    # At either end each thread may be in a call; the last allocation may have been freed since.
    assert len(differs) <= 3 * threads, f"live at its end: {len(differs)} differ: {list(differs)[:5]}"


def check(want, info, lines, threads):
    """Returns the number of lost events."""
    verdict.check_identity(info["losses"])
    lost = info["losses"]["written"] - info["losses"]["delivered"]
    have = verdict.truth.recorded(lines)
    _check_order(_allocations(want), _allocations(verdict.seen(lines)), lost)
    if info["complete"] and lost == 0:
        _check_live(want, have, threads)
    return lost
