#!/usr/bin/env python3
"""Compares the recorded roles of PyTorch's memory (parameters, gradients, saved for backward) with
what the programs themselves report, by address, at every moment that they mark
(tests/programs/torch/roles.py).

Usage: roles_check.py --build DIR [--python PYTHON] [NAME...]

NAMEs select programs. Prints a table: bytes that both name, and bytes that only the recording or
only the program names. The exit code is 1 if any byte differs.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent / "recording"))
from rig import Rig, find_python  # noqa: E402

PROGRAM = ROOT / "tests" / "programs" / "torch" / "roles.py"
ROLES = {"parameters": "parameter", "gradients": "gradient", "saved": "saved"}


def moments_of(events):
    """Returns what is live at each marked moment: address -> (bytes, roles)."""
    live, moments = {}, []
    for event in events:
        kind = event["kind"]
        if kind == "mark" and event["name"].startswith("moment-"):
            moments.append(dict(live))
        if event.get("heap") != "pytorch":
            continue
        address = event.get("address")
        if kind == "alloc":
            live[address] = (event["size"], ())
        elif kind == "free":
            live.pop(address, None)
        elif kind == "role":
            live[address] = (live[address][0], tuple(event.get("role", ())))
    return moments


def compare(reported, seen):
    """Returns role -> bytes (named by both, by the recording only, by the program only)."""
    result = {}
    for key, role in ROLES.items():
        if key not in reported:
            continue
        truth = set(reported[key])
        if role == "saved":  # the role parameter takes precedence
            truth -= set(reported["parameters"])
        found = {address for address, (_, roles) in seen.items() if role in roles}
        size = {address: bytes_ for address, (bytes_, _) in seen.items()}
        total = lambda which: sum(size.get(address, 0) for address in which)  # noqa: E731
        result[role] = (total(found & truth), total(found - truth), total(truth - found))
    return result


def names_of_programs():
    """Returns the names of the programs in PROGRAM."""
    return re.findall(r"\w+", re.search(r"for f in \((.*?)\)", PROGRAM.read_text(), re.S)[1])


def compare_moments(reported, seen):
    """Returns the sums of compare() over all moments: role -> [by both, by the recording only, by the program only]."""
    if len(reported) != len(seen) or not seen:
        raise ValueError(f"{len(reported)} moments were reported, {len(seen)} recorded")
    sums = {role: [0, 0, 0] for role in ROLES.values()}
    for one, other in zip(reported, seen):
        for role, figures in compare(one, other).items():
            sums[role] = [a + b for a, b in zip(sums[role], figures)]
    return sums


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    rig = Rig(options.build.resolve(), find_python(options.python))
    names = options.names or names_of_programs()
    wrong = 0
    print(f"{'program':28}" + "".join(f"{role:>34}" for role in ROLES.values()))
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "sessions").mkdir(mode=0o700)
            recording = rig.run(folder, [rig.python, PROGRAM, name], ("--quiet", "--exit-wait", "100s"),
                                PYTHONPATH=str(ROOT / "python"))
            sums = compare_moments(recording.result(), moments_of(recording.events()))
        wrong += sum(sum(figures[1:]) for figures in sums.values())
        print(f"{name:28}" + "".join(f"{both:>14,} +{more:>8,} -{less:>8,}" for both, more, less in sums.values()),
              flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
