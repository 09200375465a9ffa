#!/usr/bin/env python3
"""Imports files that RMM and JAX themselves write while their programs are recorded on the simulated device, and compares
them with those recordings.

Usage: imports_check.py --build DIR [NAME...]

Needs the RMM and the JAX that scripts/setup installs, or GMT_RMM_PYTHON and GMT_JAX_PYTHON; a case without its framework
is skipped, and if none is there, it exits with 77. NAMEs select cases.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from jax_check import find_framework, jax_environment  # noqa: E402
from rig import PROGRAMS, Rig, run_cases  # noqa: E402

SKIPPED = 77
PROGRAMS_OF_FRAMEWORKS = PROGRAMS / "frameworks"
KINDS = ("alloc", "free", "alloc_failed")


def imported(recording, name):
    """Imports the file and returns the path of the new recording and what the command noted."""
    path = recording.folder / f"{name}.gmt"
    done = subprocess.run([recording.rig.program, "import", str(recording.folder / name), "-o", str(path)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path, done.stderr


def calls(lines, heap):
    """Returns (kind, thread, address, size) of each call, in order."""
    return [
        (line["kind"], line["thread"], line.get("address"), line["size"])
        for line in lines
        if line["kind"] in KINDS and line.get("heap") == heap
    ]


def peak(recording, path, heap):
    report = json.loads(recording.verb("report", "--json", path))
    return {h["heap"]: h["peak_live_bytes"] for row in report["devices"] for h in row["heaps"]}[heap]


def log_of_rmm(rig, folder, *options):
    command = [rig.python, PROGRAMS_OF_FRAMEWORKS / "rmm_log.py", folder / "rmm.csv", *options]
    return rig.run(folder, command, ("--quiet",), PYTHONDONTWRITEBYTECODE="1")


def rmm(rig, folder):
    """The log has the same calls as the recording, and the peak that RMM counts."""
    recording = log_of_rmm(rig, folder)
    result = recording.result()
    path, noted = imported(recording, pathlib.Path(result["log"]).name)
    assert not noted, noted
    ours, of_rmm = calls(recording.events(), "driver"), calls(recording.events(path), "rmm")
    counts = collections.Counter(kind for kind, *_ in of_rmm)
    assert counts["alloc"] > counts["free"] > 50 and counts["alloc_failed"] == 1, counts
    assert len({thread for _, thread, *_ in of_rmm}) == 2
    # A failed call has no address in the log.
    failed = [call[3] for call in of_rmm if call[0] == "alloc_failed"]
    assert failed == [result["failed_bytes"]], failed
    without_failed = [[call for call in all_calls if call[0] != "alloc_failed"] for all_calls in (ours, of_rmm)]
    assert without_failed[0] == without_failed[1], "the calls differ"
    peaks = peak(recording, recording.path, "driver"), peak(recording, path, "rmm"), result["peak_bytes"]
    assert len(set(peaks)) == 1, peaks
    # The commands that read recordings read the log itself too.
    assert peak(recording, result["log"], "rmm") == peaks[0]


def rmm_killed(rig, folder):
    """Of the log of a process that was killed, all complete lines are read."""
    recording = log_of_rmm(rig, folder, "--kill")
    result = json.loads(recording.done.stdout.strip().splitlines()[-1])
    log = pathlib.Path(result["log"])
    path, noted = imported(recording, log.name)
    text = log.read_text()
    whole, rest = text.count("\n"), text.rsplit("\n", 1)[1]
    assert whole > 10 and rest, f"{whole} lines are complete, then {rest!r}"
    assert f"line {whole + 1} is incomplete and was left out" in noted, noted
    of_rmm = calls(recording.events(path), "rmm")
    assert len(of_rmm) == whole - 1, (len(of_rmm), whole)
    assert calls(recording.events(), "driver")[: len(of_rmm)] == of_rmm, "the calls differ"


def jax(rig, folder):
    """The profile has the arrays that the program holds, and what JAX and the recording count."""
    recording = rig.run(folder, [rig.python, PROGRAMS_OF_FRAMEWORKS / "jax_profile.py", folder / "memory.prof"],
                        ("--quiet",), XLA_PYTHON_CLIENT_ALLOCATOR="cuda_async", **jax_environment(folder / "cache"))
    result = recording.result()
    path, noted = imported(recording, "memory.prof")
    assert not noted, noted
    (live_set,) = [line for line in recording.events(path) if line["kind"] == "live_set"]
    stacks = {line["id"]: line["frames"] for line in recording.events(path) if line["kind"] == "stack"}

    held = collections.defaultdict(list)
    for block in live_set["live"]:
        assert block["heap"] == "jax" and "address" not in block and "t_ns" not in block, block
        assert block["name"] in ("buffer", "executable"), block
        if block["name"] == "executable":
            continue
        assert block["device"] == 0, block
        names = [frame["function"] for frame in stacks[block["stack"]] if frame["file"].endswith("jax_profile.py")]
        held[next(name for name in names if name in result["held"])].append(block["size"])
    assert {name: sorted(sizes) for name, sizes in held.items()} == result["held"], held

    total = sum(block["size"] for block in live_set["live"])
    recorded, at_mark = {}, None
    for line in recording.events():
        if line["kind"] == "mark":
            at_mark = sum(recorded.values())
        elif line.get("heap") == "driver" and line["kind"] == "alloc":
            recorded[line["address"]] = line["size"]
        elif line.get("heap") == "driver" and line["kind"] == "free":
            recorded.pop(line["address"])
    assert total == at_mark == result["bytes_in_use"], (total, at_mark, result["bytes_in_use"])
    assert peak(recording, path, "jax") == peak(recording, folder / "memory.prof", "jax") == total
    assert recording.verb("report", path).startswith("peak "), recording.verb("report", path)
    for moment in (path, folder / "memory.prof"):
        assert recording.verb("leaks", moment).startswith("No history: "), recording.verb("leaks", moment)


# Name -> the framework it needs, the case.
CASES = {"rmm": ("rmm", rmm), "rmm_killed": ("rmm", rmm_killed), "jax": ("jax", jax)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    ran, failed = 0, 0
    for framework in ("rmm", "jax"):
        python = find_framework(framework)
        cases = [(name, case) for name, (needs, case) in CASES.items()
                 if needs == framework and name in (args.names or CASES)]
        if python is None:
            print(f"skipped: no Python with {framework}: run scripts/setup, or set GMT_{framework.upper()}_PYTHON")
        elif cases:
            ran += len(cases)
            failed |= run_cases(Rig(args.build.resolve(), python), cases)
    sys.exit(failed if ran else SKIPPED)


if __name__ == "__main__":
    main()
