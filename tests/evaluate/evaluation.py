"""The common part of the evaluators in Python, like evaluation.h in C++: seeds, goals, the section of
docs/accuracy.md, the exit code. Their recordings come from PyTorch on the simulated device, or with
--gpu from the GPU of this machine.

    evaluation = Evaluation("categories_torch", "Categories of PyTorch's programs", seeds=8, quick_seeds=1)
    for seed in evaluation.seeds:
        ...
    evaluation.at_least("bytes of the peak", right, of, 0.95)
    sys.exit(evaluation.finish())
"""

import argparse
import functools
import math
import os
import pathlib
import subprocess
import sys


def find_python(given=None):
    """Returns a Python with PyTorch: `given`, $GMT_TORCH_PYTHON, that of scripts/setup, or None."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    for python in (given, os.environ.get("GMT_TORCH_PYTHON"), cache / "gpumemtrace/torch/bin/python"):
        if python and pathlib.Path(python).exists():
            return str(python)
    return None


@functools.cache
def python_with_libraries(*modules):
    """Returns the Python with the training libraries of scripts/setup. Exits the program if it cannot import one."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    python = os.environ.get("GMT_LIBRARIES_PYTHON") or f"{cache}/gpumemtrace/libraries/bin/python"
    asked = [python, "-c", f"import {', '.join(modules)}"]
    if not os.path.exists(python) or subprocess.run(asked, capture_output=True).returncode != 0:
        sys.exit(f"{python} lacks libraries: run scripts/setup --all, or set GMT_LIBRARIES_PYTHON to another Python")
    return python


def wilson(right, of):
    """Returns the 95 % confidence interval of the rate (Wilson's score interval)."""
    if of == 0:
        return 0.0, 1.0
    z, p = 1.959964, right / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


class Evaluation:
    def __init__(self, name, title, seeds=1, quick_seeds=1, arguments=None):
        self.name, self.title = name, title
        parser = argparse.ArgumentParser(prog=f"evaluate_{name}", description=title)
        parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder")
        parser.add_argument("--python", help="a Python with a CUDA build of PyTorch")
        parser.add_argument("--seeds", type=_positive, help=f"use N seeds 1, 3, ... (default: {seeds})")
        parser.add_argument("--seed", type=_positive, action="append", help="use this seed; goals are not judged")
        parser.add_argument("--tune", action="store_true", help="use even seeds, which rules are developed with")
        parser.add_argument("--gpu", action="store_true", help="use this machine's GPU instead of the simulated device")
        parser.add_argument("--quick", action="store_true", help=f"use {quick_seeds} seeds")
        self.options = parser.parse_args(arguments)
        self.build = self.options.build.resolve()
        # Put before a command, this runs it on the device.
        self.device = [] if self.options.gpu else [str(self.build / "simcuda" / "with-simcuda")]
        self.device_name = "a GPU" if self.options.gpu else "the simulated device"
        self.repeating = bool(self.options.seed)
        count = self.options.seeds or (quick_seeds if self.options.quick else seeds)
        first = 2 if self.options.tune else 1
        self.seeds = self.options.seed or [first + 2 * i for i in range(count)]
        more = (" --tune" if self.options.tune else "") + (" --gpu" if self.options.gpu else "")
        self.command = f"evaluate_{name} --seeds {len(self.seeds)}{more}"  # repeats the measurement
        self._section, self._goals = [], []

    def python(self):
        """Returns a Python with PyTorch. Exits the program if there is none."""
        python = find_python(self.options.python)
        if python is None:
            sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
        return python

    def missed(self, seed, what):
        print(f"evaluate_{self.name} --seed {seed}: {what}", file=sys.stderr, flush=True)

    def text(self, paragraph):
        self._section.append(paragraph + "\n")

    def table(self, columns, rows):
        lines = [columns, ["---"] * len(columns), *rows]
        cells = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
        self._section.append("".join(f"| {' | '.join(line)} |\n" for line in cells))

    def at_least(self, what, right, of, goal):
        value = right / of if of else 1.0
        low, high = wilson(right, of)
        measured = f"{value:.3f} ({right:,} of {of:,}), 95 %: {low:.3f}-{high:.3f}"
        self._goals.append((what, measured, f">= {goal:g}", value >= goal))

    def share_at_least(self, what, part, whole, goal):
        """Adds a goal for a share of bytes. There is no confidence interval, because the bytes of a
        program are not independent."""
        value = part / whole if whole else 1.0
        self._goals.append((what, f"{value:.3f} ({part:,} of {whole:,} bytes)", f">= {goal:g}", value >= goal))

    def at_most(self, what, measured, goal):
        self._goals.append((what, f"{measured:.3g}", f"<= {goal:g}", measured <= goal))

    def holds(self, what, holds):
        self._goals.append((what, "yes" if holds else "no", "yes", bool(holds)))

    def shown(self, what, measured):
        self._goals.append((what, measured, "", None))

    def finish(self):
        """Prints the section. Returns 1 if a goal is missed, otherwise 0."""
        missed = False
        rows = []
        for what, measured, goal, met in self._goals:
            judged = met is not None and not self.repeating
            if judged and not met:
                missed = True
                print(f"evaluate_{self.name}: goal missed: {what}: {measured}, the goal is {goal}", file=sys.stderr)
            rows.append((what, measured, goal, "" if not judged else "met" if met else "**MISSED**"))
        if rows:
            self.table(("measured", "value", "goal", ""), rows)
        self._section.append(f"`{self.command}`")
        print(f"## {self.title}\n\n" + "\n".join(self._section))
        return 1 if missed else 0
