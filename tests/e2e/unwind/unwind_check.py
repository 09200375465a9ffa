#!/usr/bin/env python3
"""Compares the profiler's unwinder for native frames with libgcc's, in whole programs.

Usage: unwind_check.py --build DIR [--part plain|torch] [--rounds N] [--python PYTHON]

Programs run with libunwind_oracle.so (unwind_oracle.cc), which compares the two at every stack that
it unwinds: address, CFA and kind of every frame, to the outermost. --rounds N multiplies the work
of every program. The last line of the output is "N passed, N failed". """

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as recordings  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "programs"

KINDS = [
    "compared", "libgcc fell", "different", "slow differs", "after last differs", "truncated", "further", "too deep",
    "distinct", "deepest", "exact",
]  # fmt: skip
LINE = re.compile("^.*: " + ", ".join(rf"{kind} (\d+)" for kind in KINDS) + "$", re.MULTILINE)

# Python code that has many kinds of callers of malloc on its stack.
PYTHON = """
import functools, json, re, threading, xml.etree.ElementTree as tree
def deep(n):
    return sorted(map(lambda i: json.loads(json.dumps({"i": [i] * n})), range(n)), key=lambda d: -len(str(d)))
def nested(n):
    return deep(3) if n == 0 else functools.reduce(lambda a, b: a + b, [nested(n - 1)])
for n in range(ROUNDS * 12):
    nested(n % 6); re.sub("(a+)|b", lambda m: str(deep(2)), "aabab"); tree.fromstring("<a><b/></a>")
threads = [threading.Thread(target=nested, args=(3,)) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
"""


class Rig:
    def __init__(self, build, rounds, python):
        self.build, self.rounds, self.python = build, rounds, python
        self.folder = build / "tests" / "unwind"
        self.totals = dict.fromkeys(KINDS, 0)

    def run(self, command, every=0, wrapper=(), **settings):
        """Returns the counts of all processes that the command ran, its output, and the oracle's
        log."""
        with tempfile.TemporaryDirectory(prefix="unwind-") as scratch:
            log = pathlib.Path(scratch) / "log"
            environment = {
                **os.environ,
                "LD_PRELOAD": str(self.folder / "libunwind_oracle.so"),
                "UNWIND_ORACLE_LOG": str(log),
                "UNWIND_ORACLE_EVERY": str(every),
                **settings,
            }
            done = subprocess.run(
                [*map(str, wrapper), *map(str, command)],
                env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            text = log.read_text(errors="replace") if log.exists() else ""
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr[-2000:]}\n{text}"
        counts = dict.fromkeys(KINDS, 0)
        for line in LINE.findall(text):
            for kind, number in zip(KINDS, map(int, line)):
                known = counts[kind]
                counts[kind] = max(known, number) if kind == "deepest" else known + number
        summary = ", ".join(f"{kind} {number}" for kind, number in counts.items())
        print(f"  {pathlib.Path(command[0]).name}: {summary}", flush=True)
        return counts, done.stdout, text

    def check(self, command, at_least, truncated=0, further=0, **more):
        counts, _, text = self.run(command, **more)
        assert counts["compared"] >= at_least, counts
        assert counts["different"] == counts["slow differs"] == counts["after last differs"] == 0, text
        assert counts["truncated"] <= truncated, text
        assert counts["further"] <= further * counts["compared"], text
        for kind in KINDS:
            self.totals[kind] += counts[kind]
        return counts


def frames_programs(rig):
    programs = sorted(p for p in rig.folder.glob("frames_*") if p.is_file())
    assert len(programs) >= 5, programs
    return programs


def check_every_instruction(rig):
    """Some functions' last instructions are described wrongly: libgcc crashes there, or goes
    astray."""
    for program in frames_programs(rig):
        command = [program, rig.rounds + 1]
        counts = rig.check(command, 8000, truncated=20, UNWIND_ORACLE_FALLS="1")
        assert counts["exact"] >= 5000 and counts["libgcc fell"] <= 20, counts


def check_calls(rig):
    """If nothing was interrupted between two instructions, nothing is truncated."""
    for program in frames_programs(rig):
        rig.check([program, rig.rounds + 1, "calls"], 150)


def check_python(rig):
    command = [sys.executable, "-c", PYTHON.replace("ROUNDS", str(rig.rounds))]
    counts = rig.check(command, 5000, every=7, PYTHONMALLOC="malloc")
    assert counts["deepest"] > 60, counts


def check_small_programs(rig):
    for command in ("ls -laR /usr/include/linux", "sort /etc/passwd", "git --version"):
        rig.check(command.split(), 1, every=3)


def check_reloaded_library(rig):
    plugins = [rig.folder / f"libreloaded_{size}.so" for size in (528, 1040)]
    command = [rig.folder / "reloaded", *plugins, 50 * rig.rounds]
    counts, text, _ = rig.run(command)
    assert "same place 0" not in text, text
    assert counts["compared"] >= 300 and counts["different"] + counts["truncated"] == 0, counts
    stale, _, _ = rig.run(command, UNWIND_ORACLE_STALE="1")
    assert stale["different"] + stale["truncated"] > 0, f"stale rules were not noticed: {stale}"


def check_recording_of_reloaded_library(rig):
    """Tests the profiler itself: each stack goes through the library that was loaded then, to
    main."""
    rounds = 4
    names = [f"libreloaded_{size}.so" for size in (528, 1040)]
    command = [rig.folder / "reloaded", *(rig.folder / n for n in names), rounds]
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="unwind-") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "sessions").mkdir(mode=0o700)
        recording = recordings.Rig(rig.build, rig.python).run(folder, command)
        assert recording.done.returncode == 0, recording.done.stderr
        assert f"same place {rounds}" in recording.done.stdout, recording.done.stdout
        events = recording.events()
    stacks = {e["id"]: e for e in events if e["kind"] == "stack"}
    met = []
    for event in events:
        if event["kind"] != "alloc":
            continue
        stack = stacks[event["stack"]]
        assert not stack.get("truncated"), stack
        functions = [frame.get("function") for frame in stack["frames"]]
        assert "main" in functions and "CallFromPlugin" in functions, functions
        plugin = stack["frames"][functions.index("CallFromPlugin")]
        met.append(pathlib.Path(plugin["module"]).name)
    assert met == [name for _ in range(rounds) for name in names for _ in range(3)], met


def check_nothing_is_taken_over(rig):
    """The program's exceptions and its backtrace() still use its own libraries."""
    plugins = [rig.folder / f"libreloaded_{size}.so" for size in (528, 1040)]
    environment = {
        **os.environ,
        "LD_PRELOAD": str(rig.build / "lib" / "libgpumemtrace.so"),
        "GPUMEMTRACE": "quiet,heap=host",
        "LD_DEBUG": "bindings",
        "LD_BIND_NOW": "1",
    }
    taken, others = set(), set()
    for command in ([rig.folder / "frames_o2", 1], [rig.folder / "reloaded", *plugins, 1]):
        with tempfile.TemporaryDirectory(prefix="unwind-") as scratch:
            environment["GPUMEMTRACE_DIR"] = scratch
            done = subprocess.run(
                [*map(str, command)],
                env=environment, cwd=scratch, capture_output=True, text=True, check=True,
            )  # fmt: skip
        for line in done.stderr.splitlines():
            bound = re.search(r"binding file (\S+) .* to (\S+) \[.*symbol `(\w+)'", line)
            if bound and bound[2].endswith("libgpumemtrace.so") and bound[1] != bound[2]:
                taken.add(bound[3])
            elif bound:
                others.add(bound[3])
    assert "_Unwind_Resume" in others, others
    assert taken == {"dlclose", "dlsym", "cudaMalloc", "cudaFree"}, taken


def check_training(rig):
    """NVIDIA's compilers start with code that has no tables: the frame pointer is used there."""
    for name in ("train_mlp.py", "train_gpt.py"):
        counts = rig.check(
            [rig.python, PROGRAMS / name], 1000, truncated=20, further=0.01, every=max(1, 400 // rig.rounds),
            wrapper=[rig.build / "simcuda" / "with-simcuda"],
            UNWIND_ORACLE_TIMER="1000", UNWIND_ORACLE_FALLS="1",
        )  # fmt: skip
        assert counts["exact"] > 300, counts
        assert counts["deepest"] > 60 and counts["distinct"] > 500, counts


PARTS = {
    "plain": [
        check_every_instruction,
        check_calls,
        check_python,
        check_small_programs,
        check_reloaded_library,
        check_recording_of_reloaded_library,
        check_nothing_is_taken_over,
    ],
    "torch": [check_training],
}


def check_totals(rig):
    assert rig.totals["compared"] >= 20000 * rig.rounds, rig.totals
    assert rig.totals["distinct"] >= 20000, rig.totals


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--python", help="a python that has torch")
    arguments = parser.parse_args()
    rig = Rig(arguments.build.resolve(), arguments.rounds, recordings.find_python(arguments.python))
    checks = [c for part in PARTS if arguments.part in (None, part) for c in PARTS[part]]
    if rig.python is None and check_training in checks:
        print("no Python with PyTorch: that part is skipped (scripts/setup installs one)")
        checks.remove(check_training)
    if arguments.part != "torch":
        checks.append(check_totals)
    failed = 0
    for check in checks:
        print(check.__name__, flush=True)
        try:
            check(rig)
        except Exception:  # noqa: BLE001  one check must not hide the others
            traceback.print_exc()
            failed += 1
    print(f"compared {rig.totals['compared']} stacks, {rig.totals['distinct']} of them distinct")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
