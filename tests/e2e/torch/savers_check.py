#!/usr/bin/env python3
"""Compares which autograd nodes save a block, as recorded, with what PyTorch itself knows: the class of
each node, and the line that created it, which anomaly detection keeps (tests/programs/torch/roles.py).

Usage: savers_check.py --build DIR [--python PYTHON] [NAME...]

NAMEs select programs. The exit code is 1 if any saved block has other nodes.
"""

import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "recording"))
import frames  # noqa: E402
import roles_check  # noqa: E402
from rig import Rig, find_python  # noqa: E402

# Those that save tensors for the backward pass, each with other nodes.
PROGRAMS = ("gpt", "gpt_flash", "gpt_bf16", "convnet", "kept_graph", "custom_function")


def line_of(stack):
    """Returns the function, file and line of the innermost Python frame."""
    python = frames.python_frames(stack)
    return python[0] if python else None


def moments_of(events):
    """Returns for each marked moment: address -> {(class, line)} of the nodes that save it."""
    stacks = {event["id"]: event for event in events if event["kind"] == "stack"}
    savers, moments = {}, []
    for event in events:
        if event["kind"] == "mark" and event["name"].startswith("moment-"):
            moments.append({address: set(nodes) for address, nodes in savers.items()})
        if event.get("heap") != "pytorch" or event["kind"] not in ("alloc", "free", "role"):
            continue
        if "saved" not in event.get("role", ()):
            savers.pop(event["address"], None)
        elif "forward_stack" in event:
            line = line_of(stacks[event["forward_stack"]])
            savers.setdefault(event["address"], set()).add((event.get("node"), line))
    return moments


def compare(reported, seen):
    """Returns how many (block, node) agree, and texts about those that differ."""
    agree, different = 0, []
    for number, (noted, recorded) in enumerate(zip(reported, seen)):
        parameters, saved = set(noted["parameters"]), set(noted.get("saved", ()))
        truth = {}
        for address, name, line in noted.get("savers", ()):
            if address in saved - parameters:  # a parameter has no other role
                truth.setdefault(address, set()).add((name, tuple(line)))
        for address, nodes in truth.items():
            found = recorded.get(address, set())
            agree += len(nodes & found)
            different += [f"moment {number}, 0x{address:x}: {node} is not recorded" for node in nodes - found]
            different += [f"moment {number}, 0x{address:x}: {node} is recorded" for node in found - nodes]
    return agree, different


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*", default=PROGRAMS)
    options = parser.parse_args()
    rig = Rig(options.build.resolve(), find_python(options.python))
    failed = False
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "sessions").mkdir(mode=0o700)
            recording = rig.run(folder, [rig.python, roles_check.PROGRAM, name], ("--quiet", "--exit-wait", "100s"),
                                PYTHONPATH=str(roles_check.ROOT / "python"), GMT_ANOMALY="1")
            reported, seen = recording.result(), moments_of(recording.events())
        if len(reported) != len(seen):
            sys.exit(f"{name}: {len(reported)} moments were reported, {len(seen)} recorded")
        agree, different = compare(reported, seen)
        print(f"{name}: {agree:,} agree, {len(different):,} differ", flush=True)
        print(*different[:20], sep="\n", end="\n" if different else "")
        failed |= bool(different) or agree == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
