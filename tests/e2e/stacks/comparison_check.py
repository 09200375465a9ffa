#!/usr/bin/env python3
"""Checks the comparison itself: it must find wrong stacks, which are made from right ones in every
way in which unwinding or merging can fail.

Usage: comparison_check.py --build DIR
"""

import argparse
import copy
import os
import pathlib
import random
import sys
import tempfile

import sites_check
from comparison import Comparison
from expectations import CUT, LIBRARY, PROGRAMS, Expectations

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

INTERPRETER = {"function": "_PyEval_EvalFrameDefault", "module": "/usr/bin/python3.11"}


def right_stack(comparison, site, note):
    """Returns what a recording should hold: the noted frames, with the native ones of the
    comment."""
    noted = comparison._noted(note)
    want = comparison._written(site)
    frames = [{"function": "ffi_call", "module": "libffi.so.8"}]
    native = []

    def add_python(until):
        nonlocal native
        frames.extend(native)
        native = []
        if noted and frames[-1].get("language") != "python":
            frames.append(dict(INTERPRETER))
        while noted:
            function, file, line = noted.pop(0)
            frames.append({"function": function, "file": file, "line": line, "language": "python"})
            if until((function, os.path.basename(file), line)):
                break

    if comparison._takes(note):
        add_python(lambda _: True)
    for frame in want:
        if frame.native:
            function = frame.function + "(int)"
            native.append({"function": function, "file": frame.file, "line": frame.line})
        elif frame == CUT:
            del noted[100:]
            add_python(lambda _: False)
        elif frame != LIBRARY:
            add_python(lambda have: have == (frame.function, frame.file, frame.line))
        elif want[-1] == LIBRARY:
            add_python(lambda _: False)
    frames += [*native, {"function": "main", "module": "python3.11"}]
    return {"frames": frames, "truncated": want[-1] == CUT}


# Each takes a stack, the indexes of its Python frames and of its stated native ones, and a random
# number generator; returns whether it could make the stack wrong.


def loses_a_python_frame(stack, python, native, chance):
    return python and stack["frames"].pop(chance.choice(python))


def repeats_a_python_frame(stack, python, native, chance):
    if python:
        at = chance.choice(python)
        stack["frames"].insert(at, dict(stack["frames"][at]))
    return python


def says_another_line(stack, python, native, chance):
    if python:
        stack["frames"][chance.choice(python)]["line"] += chance.choice((-1, 1))
    return python


def says_another_function(stack, python, native, chance):
    if python:
        stack["frames"][chance.choice(python)]["function"] = "stale_name"
    return python


def says_another_file(stack, python, native, chance):
    if python:
        stack["frames"][chance.choice(python)]["file"] = "/elsewhere/sites.py"
    return python


def swaps_neighbours(stack, python, native, chance):
    pairs = [(a, b) for a, b in zip(python, python[1:]) if stack["frames"][a] != stack["frames"][b]]
    if pairs:
        a, b = chance.choice(pairs)
        frames = stack["frames"]
        frames[a], frames[b] = frames[b], frames[a]
    return pairs


def calls_a_python_frame_native(stack, python, native, chance):
    if python:
        stack["frames"][chance.choice(python)]["language"] = "c++"
    return python


def shows_frames_of_another_thread(stack, python, native, chance):
    frame = {"function": "<module>", "file": "/x/sites.py", "line": 38, "language": "python"}
    stack["frames"] += [dict(INTERPRETER), frame]
    return True


def loses_a_native_frame(stack, python, native, chance):
    return native and stack["frames"].pop(chance.choice(native))


def puts_python_under_native(stack, python, native, chance):
    """Loses the order of the two kinds: all native frames come first."""
    before = [f for f in stack["frames"] if f.get("language") == "python"]
    behind = [f for f in stack["frames"] if f.get("language") != "python"]
    changed = any(place < python[-1] for place in native) if python else False
    stack["frames"] = [behind[0], dict(INTERPRETER), *before, *behind[1:]]
    return changed


def puts_a_run_elsewhere(stack, python, native, chance):
    runs = [p for p in python if stack["frames"][p - 1] == INTERPRETER]
    if runs:
        del stack["frames"][runs[0] - 1]
    return runs


def has_the_wrong_mark(stack, python, native, chance):
    stack["truncated"] = not stack["truncated"]
    return True


def is_unsure(stack, python, native, chance):
    stack["unmerged"] = True
    return True


def is_empty(stack, python, native, chance):
    del stack["frames"][:]
    return True


FAULTS = [
    loses_a_python_frame,
    repeats_a_python_frame,
    says_another_line,
    says_another_function,
    says_another_file,
    swaps_neighbours,
    calls_a_python_frame_native,
    shows_frames_of_another_thread,
    loses_a_native_frame,
    puts_python_under_native,
    puts_a_run_elsewhere,
    has_the_wrong_mark,
    is_unsure,
    is_empty,
]


def harmless(fault, stack):
    """Returns whether the damage cannot be seen: a cut stack may end anywhere, and equal frames
    look alike."""
    return stack["truncated"] and fault in (
        loses_a_python_frame,
        repeats_a_python_frame,
        calls_a_python_frame_native,  # which is one Python frame fewer
        shows_frames_of_another_thread,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    rig = sites_check.rigs.Rig(arguments.build.resolve(), sys.executable)
    comparison = Comparison(Expectations(sites_check.files(), sys.version_info[:2], ["held"]))
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
        run = sites_check.run_sites(rig, pathlib.Path(folder), sys.executable, "held", False)
    passed, failed = 0, 0
    for seed in seeds(1):
        chance = random.Random(seed)
        for note in run.notes:
            site = comparison.expectations.sites[note["site"]]
            right = right_stack(comparison, site, note)
            assert not comparison.differences(site, note, right), comparison.differences(
                site, note, right
            )
            stated = {f.function + "(int)" for f in comparison._written(site) if f.native}
            frames = right["frames"]
            python = [n for n, f in enumerate(frames) if f.get("language") == "python"]
            native = [n for n, f in enumerate(frames) if f["function"] in stated]
            for fault in FAULTS:
                wrong = copy.deepcopy(right)
                if not fault(wrong, python, native, chance) or harmless(fault, right):
                    continue
                if comparison.differences(site, note, wrong):
                    passed += 1
                else:
                    failed += 1
                    print(f"FAILED {site.name}: the comparison accepts one that {fault.__name__}")
        if failed:
            break
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0 or passed < 5 * len(run.notes))


if __name__ == "__main__":
    main()
