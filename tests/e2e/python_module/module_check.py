#!/usr/bin/env python3
"""Programs that use the Python package, under the profiler on the simulated device. Their calls must be in the recordings,
in order among their allocations.

Usage: module_check.py [--build DIR] [NAME...]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import ROOT, Rig, run_cases  # noqa: E402

# Allocates and frees memory without PyTorch.
GPU = """
import ctypes, os, threading, gpumemtrace
cuda = ctypes.CDLL("libcudart.so.13")
def malloc(size):
    address = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address
def free(address): assert cuda.cudaFree(address) == 0
"""


def run(rig, folder, program, output="run.gmt"):
    script = folder / "program.py"
    script.write_text(GPU + textwrap.dedent(program), encoding="utf-8")
    recording = rig.run(folder, [sys.executable, script], PYTHONPATH=str(ROOT / "python"),
                        PYTHONDONTWRITEBYTECODE="1")
    assert recording.done.returncode == 0, recording.done.stderr
    return recording


def summarize(recording, path=None):
    """Returns [(kind, name or size, index or range)] of the program's calls and allocations, in order."""
    found, ranges = [], {}
    for event in recording.events(path):
        kind = event["kind"]
        if kind == "mark":
            found.append((kind, event["name"], event.get("index")))
        elif kind in ("range_begin", "range_end"):
            # Numbered in order of appearance.
            found.append((kind, event["name"], ranges.setdefault(event["range"], len(ranges))))
        elif kind == "alloc":
            found.append((kind, event["size"], None))
        elif kind == "live_set" and event["name"] != "exit":
            found.append((kind, event["name"], len(event["live"])))
    return found


def check(recording, *wanted, path=None):
    found = summarize(recording, path)
    assert found == list(wanted), f"recorded {found}, not {list(wanted)}"


def steps_and_marks_stand_among_allocations(rig, folder):
    recording = run(rig, folder, """
        for _ in range(3):
            block = malloc(4096)
            gpumemtrace.step()
            free(block)
        gpumemtrace.step(500); gpumemtrace.mark("best", 7); gpumemtrace.mark("no index")
        gpumemtrace.mark("größe 重", 2**64 - 2)
        """)
    steps = [entry for n in range(3) for entry in (("alloc", 4096, None), ("mark", "step", n))]
    check(recording, *steps, ("mark", "step", 500), ("mark", "best", 7), ("mark", "no index", None),
          ("mark", "größe 重", 2**64 - 2))


def calls_before_the_first_gpu_call_are_not_recorded(rig, folder):
    recording = run(rig, folder, """
        assert not gpumemtrace.recording() and not gpumemtrace.snapshot("early")
        gpumemtrace.mark("early")
        with gpumemtrace.region("begun early"):
            block = malloc(4096)
            assert gpumemtrace.recording()
        gpumemtrace.mark("late")
        """)
    check(recording, ("alloc", 4096, None), ("mark", "late", None))


def regions_pair_by_their_numbers_whatever_happens_inside(rig, folder):
    recording = run(rig, folder, """
        malloc(4096)
        @gpumemtrace.region("function")
        def function(n):
            if n == 0: raise KeyError
            function(n - 1)
        try:
            with gpumemtrace.region("outer"): function(1)
        except KeyError: gpumemtrace.mark("caught")
        """)
    check(recording, ("alloc", 4096, None), ("range_begin", "outer", 0), ("range_begin", "function", 1),
          ("range_begin", "function", 2), ("range_end", "function", 2), ("range_end", "function", 1),
          ("range_end", "outer", 0), ("mark", "caught", None))


def regions_of_threads_overlap(rig, folder):
    recording = run(rig, folder, """
        malloc(4096)
        barrier = threading.Barrier(3)
        def work(n):
            with gpumemtrace.region(f"thread {n}"):
                barrier.wait()
                malloc(8192 * (n + 1))
                barrier.wait()
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """)
    threads = {}
    for event in recording.events():
        if event["kind"] in ("range_begin", "range_end", "alloc"):
            threads.setdefault(event["thread"], []).append((event["kind"], event.get("name", event.get("size"))))
    works = sorted(entries for entries in threads.values() if len(entries) == 3)
    assert works == [[("range_begin", f"thread {n}"), ("alloc", 8192 * (n + 1)), ("range_end", f"thread {n}")]
                     for n in range(3)], threads


def snapshot_has_its_name_and_what_lives(rig, folder):
    recording = run(rig, folder, """
        kept = [malloc(4096 * (n + 1)) for n in range(5)]
        free(kept.pop())
        assert gpumemtrace.snapshot("warmed up")
        malloc(65536)
        """)
    snapshots = {s["name"]: s for s in recording.info()["snapshots"]}
    assert snapshots["warmed up"]["reason"] == "request", snapshots
    # It is taken by another process a moment later.
    assert snapshots["warmed up"]["allocations"] in (4, 5), snapshots


def child_of_a_fork_speaks_of_its_own_recording(rig, folder):
    recording = run(rig, folder, """
        with gpumemtrace.region("before any recording"):
            child = os.fork()
            if child == 0:
                malloc(8192); gpumemtrace.mark("child", 1)
            else:
                assert os.waitpid(child, 0)[1] == 0
                malloc(4096); gpumemtrace.mark("parent", 2)
        """)
    paths = sorted(folder.glob("*.gmt"))
    assert len(paths) == 2, paths
    found = sorted(summarize(recording, path) for path in paths)
    assert found == [[("alloc", 4096, None), ("mark", "parent", 2)], [("alloc", 8192, None), ("mark", "child", 1)]], found


def mark_shows_the_line_that_made_it(rig, folder):
    recording = run(rig, folder, """
        malloc(4096)
        def epoch_end():
            gpumemtrace.mark("here")
        epoch_end()
        """)
    stacks = {}
    for event in recording.events():
        if event["kind"] == "stack":
            stacks[event["id"]] = [frame.get("function") for frame in event["frames"]]
        elif event["kind"] == "mark":
            functions = stacks[event["stack"]]
    assert "epoch_end" in functions, functions


def long_names_are_cut_and_not_lost(rig, folder):
    recording = run(rig, folder, """
        malloc(4096)
        gpumemtrace.mark("x" * 100_000, 1)
        gpumemtrace.mark("short", 2)
        """)
    found = [entry for entry in summarize(recording) if entry[0] == "mark"]
    assert len(found) == 2 and found[1] == ("mark", "short", 2), found
    assert found[0][1].startswith("x" * 1000) and found[0][2] == 1, found[0]


def program_without_the_profiler_prints_nothing_and_continues(rig, folder):
    script = folder / "program.py"
    script.write_text("import gpumemtrace\nwith gpumemtrace.region('r'): gpumemtrace.step()\n", encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "LD_PRELOAD": ""})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


CASES = [steps_and_marks_stand_among_allocations, calls_before_the_first_gpu_call_are_not_recorded,
         regions_pair_by_their_numbers_whatever_happens_inside, regions_of_threads_overlap,
         snapshot_has_its_name_and_what_lives, child_of_a_fork_speaks_of_its_own_recording,
         mark_shows_the_line_that_made_it, long_names_are_cut_and_not_lost,
         program_without_the_profiler_prints_nothing_and_continues]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("names", nargs="*", help="cases to run; default: all")
    arguments = parser.parse_args()
    chosen = [(case.__name__, case) for case in CASES if not arguments.names or case.__name__ in arguments.names]
    if not chosen:
        sys.exit(f"module_check: no such case: {' '.join(arguments.names)}")
    return run_cases(Rig(arguments.build.resolve(), None), chosen)


if __name__ == "__main__":
    sys.exit(main())
