#!/usr/bin/env python3
"""What a recording cannot know about PyTorch's allocator: each blind spot must differ from
PyTorch's report in exactly one way.

Usage: blind_spots_check.py --build DIR [--python PYTHON] [NAME...]
"""

import re
import sys

import agreement
import oracle_check
from driver_memory import Difference
from replay import Replay
from rig import main_of_cases
from scenarios import Scenario

# Part of the program -> (moment, the difference there)
BLIND_SPOTS = {
    # The block is attributed to the current stream: the requested one is not known.
    "by_stream": (
        "taken",
        r"live blocks: not recorded: .* \(not recorded 1, only recorded 1 of 1\)",
    ),
    # Freed in a capture, with its events postponed to the end of it: recorded as free at once.
    "in_capture": ("captured", r"blocks that wait for a stream: not recorded: .* of 1\)"),
    # An event that looks like one of the allocator's: the block is recorded as waiting for it.
    "foreign_event": (
        "freed behind the event",
        r"blocks that wait for a stream: only recorded: .* of 0\)",
    ),
    # No call fails that could be seen.
    "silent_retry": ("tried again", r"num_alloc_retries of device 0: PyTorch 1, recorded 0$"),
}


def differences(reported, replay):
    """Returns name of each moment that differs -> how."""
    found = {}
    for moment in reported:
        try:
            agreement.compare_moment(moment, replay.moments[moment.index])
        except Difference as difference:
            found[moment.name] = str(difference)
    return found


def check(rig, folder, name):
    where, how = BLIND_SPOTS[name]
    scenario = Scenario(
        name, "blind_spots.py", (name,), {"SIMCUDA_MEMORY": "4G", "SIMCUDA_LAG": "20"}
    )
    scene = oracle_check.Scene(rig, folder, scenario)
    scene.recording.check_whole()
    (reported,) = scene.reported.values()
    replay = Replay(scene.recording.events())  # the totals agree in spite of what is not known
    found = differences(reported, replay)
    assert re.match(how, found.get(where, "nothing differs")), found
    others = {n: d for n, d in found.items() if n != where and not ends_as(name, d)}
    assert not others, others


def ends_as(name, difference):
    """Returns whether this is a later effect of the blind spot: counters never recover from it."""
    return name == "silent_retry" and "num_alloc_retries" in difference or (
        name in ("in_capture", "foreign_event") and "active" in difference
    )


if __name__ == "__main__":
    named = [
        (name, lambda rig, folder, name=name: check(rig, folder, name)) for name in BLIND_SPOTS
    ]
    sys.exit(main_of_cases(named, __doc__.splitlines()[0]))
