#!/usr/bin/env python3
"""Allocates in greenlets that are resumed from other parts of the stack than those they began on.

Usage: greenlet_check.py --build DIR [--all] [--python PATH]...

Uses those interpreters of sites_check.py, and that of PyTorch, which have the package greenlet.
Exits with 77 if none has it. What is behind a greenlet's first frame does not belong to it: its
stacks end there and are marked truncated.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import sites_check
from expectations import PROGRAMS
from recorded import stacks_by_size

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

NOTHING_TO_CHECK = 77


def fault(stack, functions):
    """Returns what is wrong with a stack, or None."""
    have = [
        (f.get("function") or "").rpartition(".")[2] for f in stack["frames"] if f.get("language") == "python"
    ]
    if have != functions:
        return f"the functions are {have}, not {functions}"
    module = pathlib.Path(stack["frames"][-1].get("module") or "").name
    is_cut = stack.get("truncated", False)
    if functions[-1] == "<module>":
        return "it is marked truncated" if is_cut else None
    if not is_cut:
        return f"it goes on to {stack['frames'][-1]} and is not marked truncated"
    return None if module.startswith("_greenlet.") else f"it ends in {module}"


def check(rig, python, seed):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
        folder = pathlib.Path(folder)
        (folder / "sessions").mkdir(mode=0o700)
        recording = rig.run(folder, [python.path, "-B", PROGRAMS / "greenlets.py", seed])
        assert recording.done.returncode == 0, recording.done.stderr
        reported = json.loads(next(x for x in recording.done.stdout.splitlines() if x.startswith("[[")))
        stacks = stacks_by_size(recording)
    faults = []
    for size, functions in reported:
        (stack,) = stacks[size]
        faults += filter(None, [fault(stack, functions)])
    cut = sum(functions[-1] == "job" for _, functions in reported)
    print(
        f"{python.name}: {len(reported)} stacks, {cut} in greenlets, {len(faults)} wrong",
        *faults[:5],
        sep="\n  ",
        flush=True,
    )
    return not faults and 0 < cut < len(reported)


def has_greenlet(python):
    return subprocess.run([python.path, "-c", "import greenlet"], stderr=subprocess.DEVNULL).returncode == 0


def main():
    options = sites_check.options(__doc__)
    arguments = options.parse_args()
    rig = sites_check.rigs.Rig(arguments.build.resolve(), sys.executable)
    pythons = list(sites_check.interpreters(arguments))
    # scripts/setup installs it for the same Python as PyTorch.
    torch = sites_check.rigs.find_python(None)
    if torch and not arguments.python:
        pythons.append(sites_check.Interpreter("torch", torch, None))
    pythons = [p for p in pythons if has_greenlet(p)]
    if not pythons:
        print("No interpreter has the package greenlet (pip install greenlet).")
        sys.exit(NOTHING_TO_CHECK)
    sites_check.end([check(rig, python, seed) for seed in seeds(1) for python in pythons])


if __name__ == "__main__":
    main()
