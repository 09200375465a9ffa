#!/usr/bin/env python3
"""Runs the checks of scripts/gpu-check on recordings that differ from what the program did. Each check must detect that;
otherwise it would not detect errors on a GPU either.

Usage: damages_check.py --build DIR [--python PYTHON] [NAME...]

Each check runs on the simulated device with the original recordings, which must pass, and then with one event lost,
changed or duplicated. The last line is "N passed, N failed".
"""

import argparse
import copy
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "e2e" / "recording")]
import rig as e2e_rig  # noqa: E402
from gpu_check import (  # noqa: E402
    cupti_checks,
    neighbour_checks,
    oracle_checks,
    program_checks,
    rig,
    role_checks,
    total_checks,
    training_checks,
)
from gpu_check.recording import Recording  # noqa: E402
from gpu_check.table import Table  # noqa: E402


class DamagedRig(rig.Rig):
    """Records each command once and applies the damage to the recording that a check receives."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.recordings = {}
        self.damage = None
        self.damaged = 0

    def record(self, name, command, *options, **more):
        key = name, tuple(map(str, command)), tuple(map(str, options))
        if key not in self.recordings:
            self.recordings[key] = super().record(name, command, *options, **more)
        return self.with_damage(self.recordings[key])

    def with_damage(self, recording):
        given = Recording(self, recording.path, recording.done)
        events = copy.deepcopy(recording.events())
        if self.damage is not None:
            self.damaged += self.damage(events)
        given._events = events
        return given


# ---- Damages: each changes a list of events and returns whether it was possible ------------------


def find(events, **fields):
    """Returns the indices of the events with these fields."""
    return [i for i, e in enumerate(events) if all(e.get(k) == v for k, v in fields.items())]


def lost(place=-1, **fields):
    """Deletes the last matching event, or the one at `place`."""

    def damage(events):
        found = find(events, **fields)
        if found:
            del events[found[place]]
        return bool(found)

    return damage


def twice(**fields):
    def damage(events):
        found = find(events, **fields)
        for index in found[-1:]:
            events.insert(index, dict(events[index]))
        return bool(found)

    return damage


def changed(key, value, place=-1, **fields):
    """Changes the last matching event, or the one at `place`: adds a number, or replaces a text."""

    def damage(events):
        found = [i for i in find(events, **fields) if key in events[i]]
        if found:
            event = events[found[place]]
            event[key] = event[key] + value if isinstance(value, int) else value
        return bool(found)

    return damage


ALLOC, FREE = {"kind": "alloc", "heap": "driver"}, {"kind": "free", "heap": "driver"}
CALLS = {
    "an allocation is lost": lost(**ALLOC),
    "a free is lost": lost(**FREE),
    "an allocation is duplicated": twice(**ALLOC),
    "a call has another name": changed("api", "cudaMallocElsewhere", **ALLOC),
}
DAMAGES = {
    "ways": (program_checks.ways, CALLS),
    "calls": (
        program_checks.calls,
        {**CALLS, "the kind of memory differs": changed("memory", "managed", kind="alloc", memory="device")},
    ),
    "threads": (
        program_checks.threads,
        {
            "an allocation is lost": lost(kind="alloc"),
            "a size differs": changed("size", 1, kind="alloc"),
            "a free is lost": lost(kind="free"),
            "a free has no size": changed("size", "", kind="free"),
        },
    ),
    "known sizes": (
        total_checks.known_sizes,
        {
            "an allocation is lost": lost(kind="alloc", memory="device"),
            "a size differs": changed("size", 1, kind="alloc", memory="device"),
            "a free is lost": lost(kind="free", memory="device"),
            "physical memory is lost": lost(kind="create"),
        },
    ),
    "segments": (
        training_checks.segments,
        {
            "a segment is lost": lost(kind="alloc", heap="driver", memory="device"),
            "its size differs": changed("size", 2 << 20, kind="alloc", heap="driver", memory="device"),
            "its free is lost": lost(kind="free", heap="driver", memory="device"),
        },
    ),
    "expandable": (
        training_checks.expandable,
        {"a mapping is lost": lost(kind="map"), "an unmapping is lost": lost(kind="unmap")},
    ),
    "cudaMallocAsync": (
        oracle_checks.async_backend,
        {
            "a size differs": changed("size", 512, kind="alloc", memory="pool"),
            "a free is lost": lost(0, kind="free", memory="pool"),
        },
    ),
    "roles": (
        role_checks.roles,
        {
            "a gradient is lost": lost(kind="role", role=["gradient"]),
            "a parameter has no role": changed("role", [], kind="role", role=["parameter", "expects_gradient"]),
        },
    ),
    "ranges": (
        neighbour_checks.ranges,
        {
            "a range is lost": lost(kind="range_begin"),
            "a range has another name": changed("name", "unknown", kind="range_begin"),
            "an end is lost": lost(kind="range_end"),
            "a mark is lost": lost(kind="mark", name="loss is known"),
        },
    ),
    "cupti streams": (
        cupti_checks.streams,
        {
            "a wait is lost": lost(kind="event_wait"),
            "a stream's creation is lost": lost(kind="stream", action="create"),
            "a graph's is lost": lost(kind="graph", action="instantiate"),
        },
    ),
    "cupti copies": (
        cupti_checks.copies,
        {
            "a copy is lost": lost(kind="copy", action="host_to_device"),
            "a copy is larger": changed("value", 1, kind="copy", action="memset"),
            "a copy has another time": changed("t_ns", 1 << 40, kind="copy"),
        },
    ),
    "cupti witnesses": (
        cupti_checks.witnesses,
        {
            # CUPTI also reports mappings as device memory and registered memory as pinned, later in that program.
            "a witness is lost": lost(0, kind="witness", memory="device", action="alloc"),
            "its size differs": changed("value", 1, 0, kind="witness", memory="pinned", action="alloc"),
        },
    ),
}


def run(damaged_rig, function):
    table = Table(echo=lambda line: None)
    table.begin("Damages", "damages")
    function(damaged_rig, table)
    return table


def failures(table):
    return [f"{row.check}: {row.seen}, expected {row.expected}" for row in table.rows if row.ok == "NO"]


def check(damaged_rig, name, function, damages):
    """Yields pairs of a name and a description of the problem, or None."""
    damaged_rig.damage = None
    table = run(damaged_rig, function)
    wrong = failures(table)
    yield f"{name}, undamaged", "; ".join(wrong) or None
    if wrong or all(row.ok == "not here" for row in table.rows):
        return
    for what, damage in damages.items():
        damaged_rig.damage, damaged_rig.damaged = damage, 0
        table = run(damaged_rig, function)
        problem = None
        if not damaged_rig.damaged:
            problem = "there was nothing to damage"
        elif not failures(table):
            problem = "the damage was not detected"
        yield f"{name}: {what}", problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    python = e2e_rig.find_python(arguments.python)
    if python is None:
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
    damaged_rig = DamagedRig(python, arguments.build.resolve(), True)
    passed = failed = 0
    for name, (function, damages) in DAMAGES.items():
        if arguments.names and name not in arguments.names:
            continue
        with tempfile.TemporaryDirectory(prefix="gmt-e2e.", dir="/dev/shm") as folder:
            damaged_rig.folder = pathlib.Path(folder)
            for what, problem in check(damaged_rig, name, function, damages):
                passed, failed = passed + (problem is None), failed + (problem is not None)
                print(f"FAILED {what}: {problem}" if problem else f"ok     {what}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
