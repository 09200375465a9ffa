"""Whether a recording tells the truth about the part of a process's life that it saw.

The truth is the simulated device's log, in which no two allocations have one size. A recording of an
attach begins and ends somewhere in it, and each thread may be in one call at either end.
"""

import collections

import verdict


def _allocations(events):
    return [event for event in events if event.kind == "alloc"]


def _key(event):
    return event.address, event.size, event.thread


def _check_order(want, have, lost):
    """What was allocated while it was recorded is there, thread by thread in order, but for what is
    counted as lost."""
    places = collections.defaultdict(dict)
    for event in want:
        places[event.thread][_key(event)] = len(places[event.thread])
    seen = collections.defaultdict(list)
    for event in have:
        place = places[event.thread].get(_key(event))
        assert place is not None, f"never happened: {event}"
        seen[event.thread].append(place)
    missing = 0
    for thread, found in seen.items():
        assert found == sorted(set(found)), f"thread {thread}: out of order"
        missing += found[-1] - found[0] + 1 - len(found)
    assert missing <= lost, f"{missing} allocations are missing, {lost} events said to be lost"


def _check_live(want, have, threads):
    """What is live at its end is what was allocated since its beginning and not given back."""
    recorded = verdict.live(have)
    first = {_key(event) for event in _allocations(have)}
    begin = next((n for n, e in enumerate(want) if e.kind == "alloc" and _key(e) in first), None)
    if begin is None:
        return
    last = max(n for n, e in enumerate(want) if e.kind == "alloc" and _key(e) in first)
    truth = verdict.live(want[begin : last + 1])
    differs = set(truth.items()) ^ set(recorded.items())
    # At either end each thread may be in a call; the last one of all may have had a free since.
    assert len(differs) <= 3 * threads, f"live at its end: {len(differs)} differ: {list(differs)[:5]}"


def check(want, info, lines, threads):
    """Returns how many events it lost."""
    verdict.check_identity(info["losses"])
    lost = info["losses"]["written"] - info["losses"]["delivered"]
    have = verdict.truth.recorded(lines)
    _check_order(_allocations(want), _allocations(verdict.seen(lines)), lost)
    if info["complete"] and lost == 0:
        _check_live(want, have, threads)
    return lost
