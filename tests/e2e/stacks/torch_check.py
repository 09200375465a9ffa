#!/usr/bin/env python3
"""Records PyTorch on the simulated device and compares the stacks of known tensors: lines of the
model, and the operators that were called.

Usage: torch_check.py --build DIR [--python PYTHON]

PYTHON (default: $GMT_TORCH_PYTHON, else the one that scripts/setup installed) has a CUDA build of
PyTorch.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import sites_check
from comparison import Comparison
from expectations import PROGRAMS, Expectations
from recorded import WITH_ALL_NAMES


def check_model(rig, version, folder):
    """Each tensor is the first allocation of its size."""
    expectations = Expectations([PROGRAMS / "torch_sites.py"], version)
    command = [rig.python, "-B", PROGRAMS / "torch_sites.py"]
    run = sites_check.Run(rig, folder, command, True, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    run.stacks = {size: stacks[:1] for size, stacks in run.stacks.items()}
    comparison = Comparison(expectations, noted_further_out=True)
    return sites_check.report("known tensors", comparison, run, True)


def check_training(rig, version, folder):
    """Trains a model with PyTorch's own allocator. Each stack of the main thread ends in its main
    module; each of an autograd thread has no Python frame; none is marked uncertain.
    """
    (folder / "sessions").mkdir(mode=0o700)
    program = sites_check.rigs.PROGRAMS / "train_gpt.py"
    recording = rig.run(folder, [rig.python, "-B", program, "--json"], WITH_ALL_NAMES)
    recording.result()
    stacks, main, elsewhere, wrong = {}, 0, 0, []
    pid = recording.info()["target"]["pid"]
    for event in recording.events():
        if event["kind"] == "stack":
            stacks[event["id"]] = event
        elif event["kind"] == "alloc":
            stack = stacks[event["stack"]]
            python = [f for f in stack["frames"] if f.get("language") == "python"]
            ends = bool(python) and (python[-1]["function"], python[-1]["file"])
            main += event["thread"] == pid
            elsewhere += event["thread"] != pid
            good = ends == (("<module>", str(program)) if event["thread"] == pid else False)
            if not good or any(stack.get(f) for f in ("truncated", "unmerged", "no_python")):
                wrong.append(f"  {ends}, {[f.get('function') for f in stack['frames']]}")
    print(
        f"training: {main} stacks of the main thread, {elsewhere} of others, {len(wrong)} wrong",
        *wrong[:5],
        sep="\n",
    )
    return main > 0 and elsewhere > 0 and not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    arguments = parser.parse_args()
    python = sites_check.rigs.find_python(arguments.python)
    if python is None:
        sys.exit("No Python with PyTorch found. Run scripts/setup, or name one with --python.")
    rig = sites_check.rigs.Rig(arguments.build.resolve(), python)
    ask = "import sys; print(*sys.version_info[:2])"
    words = subprocess.run([python, "-c", ask], stdout=subprocess.PIPE, text=True, check=True)
    version = tuple(map(int, words.stdout.split()))
    results = []
    for check in (check_model, check_training):
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
            results.append(check(rig, version, pathlib.Path(folder)))
    sites_check.end(results)


if __name__ == "__main__":
    main()
