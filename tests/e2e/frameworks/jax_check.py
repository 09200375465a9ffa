#!/usr/bin/env python3
"""Records JAX on the simulated device with each of its allocators. The recording must contain the calls that the device
logged, and at every moment the amount of memory that JAX reports.

Usage: jax_check.py --build DIR [--print] [NAME...]

Needs the JAX that scripts/setup --test installs, or GMT_JAX_PYTHON; otherwise exits with 77. NAMEs select allocators.
--print prints the table of docs/jax.md.
"""

import argparse
import collections
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import PROGRAMS, Rig, run_cases  # noqa: E402

SKIPPED = 77
PROGRAM = PROGRAMS / "frameworks" / "jax_train.py"

TAKES = ("alloc", "create")
GIVES_BACK = ("free", "release")

# Name -> JAX's settings; JAX's counter of the memory obtained from the driver; the call that
# allocates it. The pool of cuda_async belongs to the driver, so the arrays themselves are driver
# memory.
ALLOCATORS = {
    "preallocated": ({}, "pool_bytes", "cuMemCreate"),
    "growing": ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, "pool_bytes", "cuMemCreate"),
    "platform": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, "pool_bytes", "cuMemCreate"),
    "cuda_async": (
        {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
        "bytes_in_use",
        "cuMemAllocFromPoolAsync",
    ),
    "managed": ({"TF_FORCE_UNIFIED_MEMORY": "1"}, "pool_bytes", "cuMemAllocManaged"),
}


def find_framework(name):
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    given = os.environ.get(f"GMT_{name.upper()}_PYTHON")
    for python in (given, cache / "gpumemtrace" / name / "bin/python"):
        if python and pathlib.Path(python).exists():
            return str(python)
    return None


def held_over_time(lines):
    """Returns [(name of a mark or None, bytes of driver memory held at that moment)]."""
    live, held, found = {}, 0, []
    for line in lines:
        kind, key = line["kind"], (line.get("memory"), line.get("address"))
        if kind == "mark":
            found.append((line["name"], held))
        elif line.get("heap") == "driver" and kind in TAKES:
            live[key] = line["size"]
            held += line["size"]
            found.append((None, held))
        elif line.get("heap") == "driver" and kind in GIVES_BACK:
            held -= live.pop(key)
            found.append((None, held))
    return found


def logged_over_time(path):
    """Returns the bytes held after each line of the device log, for the same kinds of memory."""
    live, held, found = {}, 0, [0]
    takes = {call for _, _, call in ALLOCATORS.values()}
    for text in open(path, encoding="utf-8"):
        line = json.loads(text)
        physical = line["call"] in ("cuMemCreate", "cuMemRelease")
        key = ("handle", line["handle"]) if physical else ("address", line["address"])
        if line["result"] != 0:
            continue
        if line["call"] in takes:
            live[key] = line["size"]
            held += line["size"]
        elif line["call"] in ("cuMemRelease", "cuMemFree_v2", "cuMemFreeAsync"):
            held -= live.pop(key)
        found.append(held)
    return found


def compare_calls(recording, lines):
    """Checks that each call that allocates or frees memory is recorded as often as the device logged it."""
    logged = collections.Counter(
        json.loads(text)["call"] for text in open(recording.folder / "log", encoding="utf-8")
    )
    recorded = collections.Counter(
        line["api"]
        for line in lines
        if line["kind"] in (*TAKES, *GIVES_BACK, "reserve", "unreserve", "map", "unmap")
    )
    wanted = {call: count for call, count in logged.items() if call in recorded}
    assert recorded == wanted, f"recorded {recorded}, the device saw {logged}"
    unseen = set(logged) - set(recorded) - {"cuDevicePrimaryCtxRetain", "cuMemSetAccess"}
    unseen -= {"cuMemPoolSetAttribute", "cuMemPoolTrimTo"}
    assert not unseen, f"not recorded: {unseen}"
    return recorded


def compare(name, recording):
    """Returns the row of the table."""
    _, counter, takes = ALLOCATORS[name]
    reported = recording.result()["moments"]
    recording.check_whole()
    recording.check_against_the_device()
    lines = recording.events()
    calls = compare_calls(recording, lines)
    assert calls[takes] > 0, calls

    over_time = held_over_time(lines)
    at_marks = [(mark, held) for mark, held in over_time if mark]
    # A recording starts with the first memory call, which may be after the first moment.
    of_jax = [(moment["name"], moment["stats"][counter]) for moment in reported]
    begun = len(of_jax) - len(at_marks)
    assert begun in (0, 1) and all(held == 0 for _, held in of_jax[:begun]), (of_jax, at_marks)
    assert at_marks == of_jax[begun:], f"recorded {at_marks}, JAX reports {of_jax}"

    logged = logged_over_time(recording.folder / "log")
    peak, end = max(held for _, held in over_time), over_time[-1][1]
    assert (peak, end) == (max(logged), logged[-1]), f"{peak}, {end}; {max(logged)}, {logged[-1]}"
    assert recording.peak() == peak, f"the report shows {recording.peak()}, not {peak}"
    if counter == "pool_bytes":
        assert reported[-1]["stats"]["peak_pool_bytes"] == peak, reported[-1]
    return {
        "name": name,
        "call": takes,
        "calls": calls[takes],
        "model": dict(at_marks)["model made"],
        "peak": peak,
        "end": end,
        "in use": reported[-1]["stats"]["peak_bytes_in_use"],
    }


def jax_environment(cache):
    return {
        # JAX checks versions of libraries at its start, including those that the program never
        # uses.
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        # Kernels do nothing, so autotuning is pointless; the other runs compile nothing.
        "XLA_FLAGS": "--xla_gpu_autotune_level=0",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def record(rig, folder, name, cache):
    settings, _, _ = ALLOCATORS[name]
    return rig.run(folder, [rig.python, PROGRAM], ("--quiet",), **settings, **jax_environment(cache))


def case(name, cache, rows):
    def run(rig, folder):
        rows.append(compare(name, record(rig, folder, name, cache)))

    return run


def print_table(rows):
    print("\n| allocator | takes memory with | calls | model made", end="")
    print(" | peak | end | JAX's arrays, peak |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for row in rows:
        figures = (f"{row[key]:,}" for key in ("calls", "model", "peak", "end", "in use"))
        print(f"| {row['name']} | `{row['call']}` |", " | ".join(figures), "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--print", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    unknown = set(args.names) - set(ALLOCATORS)
    if unknown:
        parser.error(f"no such allocator: {', '.join(sorted(unknown))}")
    python = find_framework("jax")
    if python is None:
        print("skipped: no Python with JAX: run scripts/setup --test, or set GMT_JAX_PYTHON")
        sys.exit(SKIPPED)
    rows = []
    with tempfile.TemporaryDirectory(prefix="gmt-jax.") as cache:
        names = args.names or ALLOCATORS
        cases = [(name, case(name, cache, rows)) for name in names]
        failed = run_cases(Rig(args.build.resolve(), python), cases)
    if args.print:
        print_table(rows)
    sys.exit(failed)


if __name__ == "__main__":
    main()
