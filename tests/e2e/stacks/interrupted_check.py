#!/usr/bin/env python3
"""Allocates in a signal handler while Python runs: at any moment, also in the middle of a call.

Usage: interrupted_check.py --build DIR [--all] [--python PATH]... [--count N]

A recorded stack may be marked as having missing or unmerged Python frames. If it is not, each frame
was called by the next one, at a line that calls it, out to the main module.
"""

import collections
import pathlib
import re
import sys
import tempfile

import sites_check
from expectations import PROGRAMS, Expectations, comments
from recorded import WITH_ALL_NAMES

PROGRAM = PROGRAMS / "interrupted.py"
CALLED = re.compile(r"called ([\w.<>]+): (.*)$")


def callers(version):
    """Returns function -> the (function, line) pairs that may call it."""
    marks = Expectations([PROGRAM]).marks
    found, unfinished = {}, None
    for _, text, alone in comments(PROGRAM):
        stated = CALLED.search(text)
        if stated:
            unfinished = stated[1]
            found[unfinished] = stated[2]
        elif unfinished and alone and text.startswith("or "):
            found[unfinished] += " " + text
        else:
            unfinished = None

    def name(qualified):
        return qualified if version >= (3, 11) else qualified.rpartition(".")[2]

    return {
        name(function): {
            (name(caller), marks[mark][1])
            for caller, mark in (item.split("@") for item in text.split(" or "))
        }
        for function, text in found.items()
    }


def fault(stack, allowed):
    """Returns what is wrong with a stack, or None."""
    python = [f for f in stack["frames"] if f.get("language") == "python"]
    if not python:
        return "it has no Python frames and is not marked so"
    if python[-1]["function"] != "<module>":
        return f"it ends with {python[-1]['function']}"
    for frame, caller in zip(python, python[1:]):
        if (caller["function"], caller["line"]) not in allowed.get(frame["function"], ()):
            return f"{frame['function']} was not called by {caller['function']}:{caller['line']}"
    return None


def check(rig, python, count):
    allowed = callers(python.version)
    library = rig.build / "tests" / "stack_sites" / "interrupter.so"
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
        folder = pathlib.Path(folder)
        (folder / "sessions").mkdir(mode=0o700)
        command = [python.path, "-B", PROGRAM, library, count]
        recording = rig.run(folder, command, WITH_ALL_NAMES, simulated=False)
        if recording.done.returncode != 0:
            print(f"{python.name}: exit code {recording.done.returncode}", flush=True)
            return False
        events = recording.events()
    stacks, seen, wrong = {}, collections.Counter(), []
    for event in events:
        if event["kind"] == "stack":
            stacks[event["id"]] = event
        elif event["kind"] == "alloc" and event["size"] == 4096:
            stack = stacks[event["stack"]]
            unsure = [f for f in ("no_python", "unmerged", "truncated") if stack.get(f)]
            why = None if unsure else fault(stack, allowed)
            seen["wrong" if why else unsure[0] if unsure else "right"] += 1
            if why:
                names = [(f.get("function"), f.get("line")) for f in stack["frames"]]
                wrong.append(f"  {why}: {names}")
    print(f"{python.name}: {dict(seen)}", *wrong[:3], sep="\n", flush=True)
    return not wrong and seen["right"] > count / 50


def main():
    options = sites_check.options(__doc__)
    options.add_argument("--count", type=int, default=2000)
    arguments = options.parse_args()
    rig = sites_check.rigs.Rig(arguments.build.resolve(), sys.executable)
    sites_check.end(
        [check(rig, python, arguments.count) for python in sites_check.interpreters(arguments)]
    )


if __name__ == "__main__":
    main()
