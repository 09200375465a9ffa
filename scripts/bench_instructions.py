"""Counts the instructions that recording adds to a call, and those that a report takes for an event: a part of
scripts/bench. Unlike times, they hardly vary on a shared machine, so that `scripts/bench --instructions --check` can
refuse a change that makes a hook, a stack walk or the reading of a recording more expensive.

Each figure is the difference between a long and a short run, which leaves out the start of the program, with the
library less without it (valgrind --tool=callgrind). A report is that of a long recording less that of a short one.
"""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What the figures were when they were last accepted, and the compiler and C library of that time.
KEPT = ROOT / "scripts" / "instructions.json"
MAX_RATIO = 1.03
HOOKS = [("passing through (heap=host)", "heap=host"), ("dormant", "dormant"), ("recording, no stack", "stacks=none"),
         ("recording, native stack", "stacks=native"), ("recording, native stack by libunwind", "stacks=native:libunwind"),
         ("recording, native stack by libgcc", "stacks=native:libgcc")]
# Other projects' unwinders are measured for comparison and not judged.
NOT_JUDGED = ("libunwind", "libgcc")
DEPTH, BATCH = 20, 64  # frames and calls in a batch of call_cost
NATIVE, PYTHON = 50, 20  # frames below Python, each of a different function
PYTHON_PROGRAM = "/usr/bin/python3"
KINDS, IN_ONE = 3, 32  # kinds of nodes in fake_training, and nodes of a kind in one batch
REPORTED = (400_000, 800_000)  # events


def tools():
    """Returns what instruction counts depend on beside the code."""
    compiler, python = (subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
                        for command in (["g++", "-dumpfullversion"], [PYTHON_PROGRAM, "--version"]))
    return f"g++ {compiler}, {' '.join(platform.libc_ver())}, {python}, {platform.machine()}"


class InstructionsBench:
    """Measures and adds rows to `bench` (scripts/bench.py)."""

    def __init__(self, bench):
        self.bench = bench
        self.added = {}  # row -> instructions

    def count(self, command, options, more=None, seconds=300):
        """Returns the instructions of the whole program. `options`: of the recording; None: without the library."""
        environment = {**self.bench.environment(options is not None, options or ""), **(more or {})}
        environment["GPUMEMTRACE_DIR"] = str(self.bench.folder / "sessions")
        environment["PYTHONHASHSEED"] = "0"  # dictionaries are then searched equally in all runs
        environment["OMP_NUM_THREADS"] = environment["OPENBLAS_NUM_THREADS"] = "1"  # idle threads spin
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, command)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        output = process.communicate(timeout=seconds)[1]
        # Child processes report under pids of their own.
        found = re.search(rf"=={process.pid}== Collected : (\d+)", output)
        if process.returncode != 0 or not found:
            sys.exit(f"bench: {' '.join(command)}: exit code {process.returncode}\n{output[-2000:]}")
        return int(found[1])

    def per_call(self, command_of, options, batches, calls_of_a_batch, more_of=lambda options: None):
        short, long = (self.count(command_of(count), options, more_of(options)) for count in batches)
        return (long - short) / (batches[1] - batches[0]) / calls_of_a_batch

    def row(self, what, instructions, yardstick):
        self.added[what] = instructions
        self.bench.add(f"instructions added to {what}", f"{instructions:.0f}", f"{yardstick}; valgrind --tool=callgrind")

    def hooks(self):
        command_of = lambda count: [self.bench.build / "bench" / "call_cost", count, DEPTH, 1]  # noqa: E731
        direct = self.per_call(command_of, None, (100, 300), 2 * BATCH)
        for name, options in HOOKS:
            added = self.per_call(command_of, options, (100, 300), 2 * BATCH) - direct
            self.row(f"a call: {name}", added, "mean of cudaMalloc and cudaFree")

    def below_python(self):
        def measure(options):
            return self.per_call(lambda count: self.bench.command_below_python(PYTHON_PROGRAM, "call_cost", count, NATIVE, 1),
                                 options, (100, 300), 2 * BATCH, self.bench.environment_below_python)
        direct = measure(None)
        for name, options in (("native stack", "stacks=native"), ("native and Python stack", "")):
            self.row(f"a call below {NATIVE} native and {PYTHON} Python frames: recording, {name}", measure(options) - direct,
                     "mean of cudaMalloc and cudaFree")

    def nodes(self):
        tests = self.bench.build / "test"
        command_of = lambda count: [  # noqa: E731
            tests / "preload_programs" / "fake_training", tests / "fake_torch" / "libtorch_cpu.so", "cost", count]
        direct = self.per_call(command_of, None, (100, 300), KINDS * IN_ONE)
        for name, options in (("with roles", ""), ("without roles", "roles=off")):
            added = self.per_call(command_of, options, (100, 300), KINDS * IN_ONE) - direct
            self.row(f"a node of autograd and its block, {name}", added,
                     "mean of one that saves nothing, one that saves two tensors, one that also releases them")

    def report(self):
        """An event is decoded, becomes part of the trace, and is visited by the analyses."""
        def count(events):
            recording = self.bench.folder / f"{events}.gmt"
            subprocess.run([self.bench.build / "benchmark" / "recording_benchmark", str(events), recording], check=True,
                           stdout=subprocess.DEVNULL)
            return self.count([self.bench.build / "bin" / "gpumemtrace", "report", recording], None)
        short, long = map(count, REPORTED)
        what = "report, for each event of a recording"
        self.added[what] = (long - short) / (REPORTED[1] - REPORTED[0])
        self.bench.add(f"instructions of {what}", f"{self.added[what]:.0f}",
                       f"{REPORTED[1]:,} events less {REPORTED[0]:,}; valgrind --tool=callgrind")

    def start_up(self, what, command):
        """The start of a program that makes no GPU call: mostly one more library in which the loader looks up symbols."""
        direct, preloaded = (self.count(command, options, seconds=900) for options in (None, ""))
        self.bench.add(f"{what}, preloaded, no GPU call: instructions", f"{(preloaded - direct) / 1e6:+.1f} million",
                       f"x{preloaded / direct:.4f}; valgrind --tool=callgrind")

    def run(self):
        self.hooks()
        self.below_python()
        self.nodes()
        self.report()

    def keep(self):
        KEPT.write_text(json.dumps({"tools": tools(), "instructions": {k: round(v) for k, v in self.added.items()}}, indent=2)
                        + "\n", encoding="utf-8")
        print(f"\nWritten to {KEPT.relative_to(ROOT)}")

    def check(self):
        """Compares with KEPT. Returns the number of figures that are higher than accepted."""
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        if kept["tools"] != tools():
            print(f"\nNot compared: the accepted figures are those of {kept['tools']}; here is {tools()}")
            return 0
        higher = 0
        print(f"\n{'instructions':<90} {'accepted':>9} {'now':>9}")
        for what, accepted in kept["instructions"].items():
            now = self.added[what]
            judged = not any(name in what for name in NOT_JUDGED)
            is_higher = judged and now > accepted * MAX_RATIO + 1
            higher += is_higher
            print(f"{what:<90} {accepted:>9} {now:>9.0f} x{now / accepted if accepted else 1:.3f}{'  HIGHER' if is_higher else ''}")
        return higher
