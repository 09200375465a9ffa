#!/usr/bin/env python3
"""Records backward passes of every kind and checks which line of the forward pass each of their
blocks is attributed to. PyTorch knows that itself if its anomaly detection is on; the program runs
with and without it, and both recordings must agree.

Usage: backward_check.py --build DIR [--python PYTHON] [NAME...]

NAMEs select scenarios; all of them train, so any can be named.
"""

import argparse
import dataclasses
import difflib
import pathlib
import sys
import tempfile

import agreement
import forward
import frames
import oracle_check
from driver_memory import Difference
from oracle_check import SCENARIOS
from replay import Replay
from rig import Rig, find_python

SAME_IN_BOTH = 0.95
WITH_FORWARD_LINE = 0.999
BLOCKS_OF_LEARNING = 16  # from the first eight nodes of a process


def record(rig, folder, scenario, **environment):
    """Returns what PyTorch reported, and the replayed recording."""
    folder.mkdir()
    more = dataclasses.replace(scenario, environment={**scenario.environment, **environment})
    scene = oracle_check.Scene(rig, folder, more)
    (reported,) = scene.reported.values()
    scene.recording.check_whole()
    replay = Replay(scene.recording.events())
    agreement.compare_moments(reported, replay)
    return reported, replay


def by_device(replay, device):
    return [(index, line) for index, line in replay.allocations if line["device"] == device]


def same_allocations(traced, quiet):
    """Pairs the indexes of equal allocations in two lists: a run may make a few that the other does
    not make, for instance the workspace of another thread's handle."""
    sizes = [[line["size"] for _, line in run] for run in (traced, quiet)]
    matcher = difflib.SequenceMatcher(None, *sizes, autojunk=False)
    pairs = [
        (a + i, b + i) for a, b, size in matcher.get_matching_blocks() for i in range(size)
    ]
    if len(pairs) < SAME_IN_BOTH * len(traced):
        raise Difference(f"of {len(traced)} allocations only {len(pairs)} were made again")
    return pairs


def compare_device(device, trace, traced, quiet):
    """Returns (name of the run, agreement) of both runs."""
    events = [event for event in trace if event["action"] == "alloc"]
    of_traced, of_quiet = by_device(traced, device), by_device(quiet, device)
    if len(of_traced) != len(events):
        raise Difference(f"{len(events)} allocations, {len(of_traced)} recorded")
    pairs = same_allocations(of_traced, of_quiet)
    again = [events[a] for a, _ in pairs], [of_quiet[b] for _, b in pairs]
    return [
        ("with", forward.compare(events, of_traced, traced.stacks())),
        ("without", forward.compare(*again, quiet.stacks())),
    ]


def check(rig, folder, scenario):
    """Prints rows; raises Difference if the recordings disagree."""
    reported, traced = record(rig, folder / "traced", scenario, GMT_ANOMALY="1")
    _, quiet = record(rig, folder / "quiet", scenario)
    own = frames.compare_stacks(reported, traced)
    results = []
    for device, trace in enumerate(reported[-1].traces):
        results += compare_device(device, trace, traced, quiet)
    print(f"{scenario.name}: {own.compared} own stacks, {own.differing} differ")
    print(*own.in_words(), sep="\n", end="\n" if own.examples else "")
    for name, agreed in results:
        print(f"  {name} anomalies: {agreed.compared} of backward, {agreed.differing} differ")
        print(*agreed.in_words(), sep="\n", end="\n" if agreed.examples else "")
    if not any(agreed.compared for _, agreed in results):
        raise Difference("no block was allocated in a backward pass")
    own.require(oracle_check.STACKS_THAT_AGREE)
    for _, agreed in results:
        agreed.require(WITH_FORWARD_LINE)
        learning = agreed.kinds[frames.LEARNING]
        if learning > BLOCKS_OF_LEARNING:
            raise Difference(f"{learning} blocks were allocated before the layout of nodes was known")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*", default=["backward_sites"])
    args = parser.parse_args()
    python = find_python(args.python)
    if python is None:
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
    rig = Rig(args.build.resolve(), python)
    known = {scenario.name: scenario for scenario in SCENARIOS if scenario.ranks == 1}
    unknown = set(args.names) - set(known)
    if unknown:
        sys.exit(f"no such scenario of one process: {', '.join(sorted(unknown))}")
    failed = 0
    for name in args.names:
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-backward.") as folder:
            try:
                check(rig, pathlib.Path(folder), known[name])
            except (Difference, AssertionError) as difference:
                failed += 1
                print(f"{name} DIFFERS\n  {difference}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
