#!/usr/bin/env python3
"""Checks that tensors without plain memory on the device do not disturb the recording, nor it them:
a program that trains with each kind (tests/programs/torch/odd_tensors.py) prints the same with and
without it.

Usage: odd_tensors_check.py --build DIR [--python PYTHON]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent / "recording"))
from rig import Rig, find_python  # noqa: E402

PROGRAM = ROOT / "tests" / "programs" / "torch" / "odd_tensors.py"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    options = parser.parse_args()
    rig = Rig(options.build.resolve(), find_python(options.python))
    command = [rig.python, PROGRAM]
    plain = subprocess.run(rig.simulated(command), capture_output=True, text=True)
    assert plain.returncode == 0, plain.stderr
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "sessions").mkdir(mode=0o700)
        recording = rig.run(folder, command, ("--quiet", "--exit-wait", "100s"))
        done = recording.done
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
        assert done.stdout == plain.stdout, f"{done.stdout}\ninstead of\n{plain.stdout}"
        assert done.stderr == plain.stderr, f"{done.stderr}\ninstead of\n{plain.stderr}"
        recording.check_whole()
        assert recording.info()["sources"]["roles"] == "on", recording.info()["sources"]
    print(plain.stdout)


if __name__ == "__main__":
    main()
