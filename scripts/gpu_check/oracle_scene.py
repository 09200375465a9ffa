"""Records one scenario of tests/programs/torch and compares it with PyTorch's data at every moment, using the comparison
of tests/e2e/torch on the available device. Runs in a separate process, so that a scenario that hangs or crashes affects no
other.

Usage: oracle_scene.py JSON
JSON: {"name", "program", "python", "folder", "device": [command prefix], "environment"}. Prints one JSON line:
{"row", "ran_out": [errors, retries]} with the amount of compared data and the allocator's counters, or {"differs"} with a
description of the first difference.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import types

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"
sys.path[:0] = [str(TESTS / "e2e/torch"), str(TESTS / "e2e/recording"), str(TESTS / "programs/torch")]
import oracle_check  # noqa: E402
from driver_memory import Difference  # noqa: E402
from rig import Recording  # noqa: E402


class Rig(types.SimpleNamespace):
    """The rig that oracle_check needs, on a device that may be real."""

    build = None

    def run(self, folder, command, options=(), **environment):
        done = subprocess.run(
            [self.program, "run", "-o", str(folder / "run.gmt"), *options, "--", *self.device, *map(str, command)],
            env={**os.environ, **self.environment, **environment}, cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        return Recording(self, folder, done)


def ran_out(scene):
    """Returns how often PyTorch ran out of memory and how often it retried."""
    last = [device for moments in scene.reported.values() for device in moments[-1].statistics.values()]
    return [sum(device[name] for device in last) for name in ("num_ooms", "num_alloc_retries")]


def main():
    given = json.loads(sys.argv[1])
    scenario = next(s for s in oracle_check.ALL if s.name == given["name"])
    folder = pathlib.Path(given["folder"])
    rig = Rig(program=given["program"], python=given["python"], device=given["device"],
              environment={**given["environment"], "GPUMEMTRACE_DIR": str(folder / "sessions")})
    # The caller has set the directories for compiled code.
    scenario = dataclasses.replace(scenario, compiles=False)
    with contextlib.redirect_stdout(sys.stderr):
        try:
            scene = oracle_check.Scene(rig, folder, scenario, "python")
            answer = {"row": oracle_check.compare_scene(scene), "ran_out": ran_out(scene)}
        except (Difference, AssertionError) as difference:
            answer = {"differs": str(difference)[-2000:]}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
