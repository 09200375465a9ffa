#!/usr/bin/env python3
"""Reused addresses: no stack may have a name that belonged to the address before.

Usage: reuse_check.py --build DIR [--all] [--python PATH]... [--count N]

Creates and destroys Python code objects (churn.py) on the interpreters of sites_check.py, and
unloads and replaces libraries (replaced.cc). """

import json
import pathlib
import sys
import tempfile

import sites_check
from expectations import PROGRAMS
from recorded import WITH_ALL_NAMES, stacks_by_size


# Code objects that a session is certain to have room for.
MAX_CODE_OBJECTS = 10000


def record(rig, folder, command):
    (folder / "sessions").mkdir(mode=0o700)
    recording = rig.run(folder, command, WITH_ALL_NAMES)
    assert recording.done.returncode == 0, recording.done.stderr
    losses = recording.info()["losses"]
    assert losses["written"] == losses["delivered"], losses
    return json.loads(recording.done.stdout.strip().splitlines()[-1]), stacks_by_size(recording)


def check_churn(rig, python, count, names):
    """If a table of the session is full, something may be missing; nothing may be wrong."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
        command = [python.path, "-B", PROGRAMS / "churn.py", count, names]
        result, stacks = record(rig, pathlib.Path(folder), command)
    right = incomplete = 0
    wrong = []
    for n in range(count):
        want = (f"made_{n % names}", f"<churn {n % (names - 1)}>", 2 + n % names % 7)
        (stack,) = stacks[4096 + 16 * n]
        frames = [f for f in stack["frames"] if f.get("language") == "python"]
        # The innermost frame is the function that all of them call.
        have = [frames[1].get(key) for key in ("function", "file", "line")] if len(frames) > 1 else []
        if have == list(want):
            right += 1
        elif all(h in (w, None, "", 0) for h, w in zip(have, want)):
            incomplete += 1
        else:
            wrong.append(f"  function {n}: {want} is shown as {have}")
    print(
        f"{python.name}: {count} functions, {names} names, {result['addresses']} addresses: "
        f"{right} right, {incomplete} incomplete, {len(wrong)} wrong",
        *wrong[:5],
        sep="\n",
        flush=True,
    )
    may_be_incomplete = names * (names - 1) > MAX_CODE_OBJECTS
    # If no address was reused, nothing was tested.
    reused = result["addresses"] < count / 2
    return not wrong and right > 0 and (incomplete == 0 or may_be_incomplete) and reused


def check_replaced(rig):
    built = rig.build / "tests" / "stack_sites"
    libraries = [built / "replaced_first.so", built / "replaced_second.so"]
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
        result, stacks = record(rig, pathlib.Path(folder), [built / "replaced", *libraries])
    wrong = []
    for size, of_size in sorted(stacks.items()):
        number = size // 4096
        function = "AllocatesInTheFirst" if number % 2 == 0 else "AllocatesInTheSecond"
        module = str(libraries[number % 2])
        for stack in of_size:
            have = [(f.get("function"), f.get("module")) for f in stack["frames"]]
            names = [name.partition("(")[0] if name else name for name, _ in have]
            good = names[:3] == [function, "Allocate", "main"] and have[0][1] == module
            if not good or stack.get("truncated"):
                wrong.append(f"  allocation {number}, in {function}: {have}")
    print(f"replaced library: {len(stacks)} stacks, {len(wrong)} wrong", *wrong[:5], sep="\n")
    assert result["addresses"] == 1, "the libraries were not loaded at the same address"
    return len(stacks) == 20 and not wrong


def main():
    options = sites_check.options(__doc__)
    options.add_argument("--count", type=int, default=20000)
    arguments = options.parse_args()
    rig = sites_check.rigs.Rig(arguments.build.resolve(), sys.executable)
    results = [check_replaced(rig)]
    for python in sites_check.interpreters(arguments):
        results.append(check_churn(rig, python, arguments.count, names=98))
    results.append(check_churn(rig, python, arguments.count, names=arguments.count))
    sites_check.end(results)


if __name__ == "__main__":
    main()
