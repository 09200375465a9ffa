#!/usr/bin/env python3
"""Compares the bytes per sample and per token that `report` finds from shapes with what a program's
forward passes leave on the device (tests/programs/torch/shapes.py). What is no dimension of the inputs
must not be reported.

Usage: shapes_check.py --build DIR [--python PYTHON]
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import PROGRAMS, ROOT, main_of_cases  # noqa: E402

TOLERANCE = 0.05  # of the bytes: what does not depend on the batch


def batch_of(recording, kind):
    (device,) = recording.report("--at", f"snapshot:{kind}")["devices"]
    return device["tensors"] and device["tensors"]["batch"]


def problem_of(batch, truth):
    """Returns how they differ; None: not at all."""
    if batch is None:
        return "not known" if truth["samples"] else None
    if truth["samples"] is None:
        return f"known: {batch['samples']} samples"
    if (batch["samples"], batch["tokens"]) != (truth["samples"], truth["tokens"]):
        return f"{batch['samples']} samples of {batch['tokens']} tokens"
    units = {"bytes_per_sample": truth["samples"]}
    if truth["tokens"]:
        units["bytes_per_token"] = truth["samples"] * truth["tokens"]
    for key, count in units.items():
        if abs(batch[key] * count / truth["bytes"] - 1) > TOLERANCE:
            return f"{key} {batch[key]} instead of {truth['bytes'] / count:.0f}"
    return None


def each_kind_of_input(rig, folder):
    recording = rig.run(folder, [rig.python, "-B", PROGRAMS / "torch" / "shapes.py"], ("--quiet", "--exit-wait", "100s"),
                        PYTHONPATH=str(ROOT / "python"))
    problems = {}
    for kind, truth in recording.result().items():
        problems[kind] = problem_of(batch_of(recording, kind), truth)
    wrong = {kind: problem for kind, problem in problems.items() if problem}
    assert problems and not wrong, wrong


if __name__ == "__main__":
    sys.exit(main_of_cases([(each_kind_of_input.__name__, each_kind_of_input)], __doc__))
