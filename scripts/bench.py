"""The implementation of scripts/bench, which documents the usage and builds what is measured here."""

import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import bench_answers
import bench_instructions
import bench_torch
from bench_instructions import DEPTH, HOOKS, NATIVE, PYTHON, PYTHON_PROGRAM
from gpu_check import training_checks
from gpu_check.rig import Rig

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "overhead.md"
BEGIN, END = "<!-- scripts/bench writes from here -->", "<!-- to here -->"
ANSWERS_BEGIN, ANSWERS_END = "<!-- scripts/bench --answers writes from here -->", "<!-- answers to here -->"
TORCH_BEGIN, TORCH_END = "<!-- scripts/bench --torch writes from here -->", "<!-- PyTorch's to here -->"
PYTHON_VARIANTS = [("recording, no stack", "stacks=none"), ("recording, native stack", "stacks=native"),
                   ("recording, native and Python stack", "stacks=native+python"),
                   ("recording, native stack by libunwind", "stacks=native:libunwind")]
NESTED = """
import ctypes, sys
def level0():
    getattr(ctypes.PyDLL(sys.argv[1]), sys.argv[2])(*map(int, sys.argv[4:]))
for n in range(1, int(sys.argv[3]) - 1):
    exec(f"def level{n}():\\n    level{n - 1}()")
globals()[f"level{n}"]()
"""


def pythons():
    """Returns the system's interpreter and the newest of the interpreters for stack tests."""
    listed = subprocess.run([str(ROOT / "scripts" / "pythons"), "--list"], capture_output=True, text=True)
    newest = [line.split()[-1] for line in listed.stdout.splitlines() if "3.14" in line.split()[0]]
    return [PYTHON_PROGRAM, *newest[-1:]]


class Bench:
    def __init__(self, build, quick, command):
        self.command = command
        self.build = build.resolve()
        self.quick = quick
        self.rows = []
        self.library = str(self.build / "lib" / "libgpumemtrace.so")
        self.folder = None

    def add(self, what, result, yardstick):
        self.rows.append((what, result, yardstick))
        print(f"{what:<58} {result:<22} {yardstick}", flush=True)

    def environment(self, preload, options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE", "LD_PRELOAD"))}
        if preload:
            environment["LD_PRELOAD"] = self.library
            environment["GPUMEMTRACE"] = f"quiet,output={self.folder}/%p.gmt,{options}".rstrip(",")
        return environment

    def call_cost(self, preload, options="", threads=1, calls=()):
        command = [str(self.build / "bench" / "call_cost"), "200" if self.quick else "3000", str(DEPTH), str(threads),
                   *calls]
        environment = self.environment(preload, options)
        environment["GPUMEMTRACE_DIR"] = str(self.folder / "sessions")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def hooks(self, threads):
        """Compares each variant with the direct call of the same round, so that both run under the same conditions."""
        added = {name: [] for name, _ in HOOKS}
        direct, clocks = [], []
        for _ in range(3 if self.quick else 11):
            plain = self.call_cost(False, threads=threads)
            direct.append(plain)
            clocks.append(plain["clock"]["p50"])
            for name, options in HOOKS:
                cost = self.call_cost(True, options, threads)
                added[name].append([cost[call][part] - plain[call][part]
                                    for call in ("allocate", "free") for part in ("p50", "p99")])
        clock = statistics.median(clocks)
        where = f"{threads} thread{'s' if threads > 1 else ''}"
        call = statistics.median((d["allocate"]["p50"] + d["free"]["p50"]) / 2 for d in direct)
        self.add(f"clock_gettime, {where}", f"{clock:.0f} ns", "x1")
        self.add(f"call of a runtime that does nothing, {where}", f"{call:.1f} ns",
                 f"x{call / clock:.1f} clock_gettime")
        for name, _ in HOOKS:
            allocate, late_allocate, free, late_free = (statistics.median(column) for column in zip(*added[name]))
            self.add(f"added to a call: {name}, {where}", f"{allocate:.1f} / {free:.1f} ns",
                     f"x{allocate / clock:.1f} / x{free / clock:.1f} clock_gettime; p99 of 64 calls "
                     f"{late_allocate:.0f} / {late_free:.0f} ns")
        if threads == 1:
            traced = self.call_cost(True)
            self.add("session when created, shared memory", f"{traced['session_kib'] / 1024:.1f} MiB",
                     "allocated blocks of its file")
            self.add("anonymous memory added to the process",
                     f"{(traced['anonymous_kib'] - direct[-1]['anonymous_kib']) / 1024:.2f} MiB", "by default")
        return clock

    def streams(self, clock):
        """Like hooks(), for calls that order streams: one that programs make often, and one that waits."""
        added = []
        for _ in range(3 if self.quick else 11):
            plain, traced = (self.call_cost(preload, calls=["streams"]) for preload in (False, True))
            added.append([traced[call]["p50"] - plain[call]["p50"] for call in ("record", "synchronize")])
        record, synchronize = (statistics.median(column) for column in zip(*added))
        self.add("added to cudaEventRecord", f"{record:.1f} ns", f"x{record / clock:.1f} clock_gettime")
        self.add("added to cudaStreamSynchronize: duration and native stack", f"{synchronize:.1f} ns",
                 f"x{synchronize / clock:.1f} clock_gettime")

    def command_below_python(self, python, function, *arguments):
        """Calls a function of the library of the same name below PYTHON Python functions."""
        return [python, "-c", NESTED, str(self.build / "bench" / f"{function}.so"), function, str(PYTHON),
                *map(str, arguments)]

    def environment_below_python(self, options):
        environment = self.environment(options is not None, options or "")
        environment["GPUMEMTRACE_DIR"] = str(self.folder / "sessions")
        # Loaded with global scope, like the driver's library in a process that uses it.
        runtime = self.build / "null_runtime" / "libcudart.so.13"
        environment["LD_PRELOAD"] = f"{environment.get('LD_PRELOAD', '')} {runtime}"
        return environment

    def below_python(self, python, options, function, *arguments):
        """Returns the JSON output of such a call."""
        done = subprocess.run(self.command_below_python(python, function, *arguments),
                              env=self.environment_below_python(options), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def call_cost_below_python(self, python, options):
        return self.below_python(python, options, "call_cost", 200 if self.quick else 2000, NATIVE, 1)["allocate"]["p50"]

    def hooks_below_python(self, python):
        """Like hooks() below Python. The cost of a frame is the difference between two kinds of stack."""
        version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"],
                                 capture_output=True, text=True, check=True).stdout.strip()
        added = {name: [] for name, _ in PYTHON_VARIANTS}
        for _ in range(3 if self.quick else 11):
            plain = self.call_cost_below_python(python, None)
            for name, options in PYTHON_VARIANTS:
                added[name].append(self.call_cost_below_python(python, options) - plain)
        none, native, both, libunwind = (statistics.median(added[name]) for name, _ in PYTHON_VARIANTS)
        where = f"{NATIVE} native and {PYTHON} Python {version} frames"
        for (name, _), cost in zip(PYTHON_VARIANTS, (none, native, both, libunwind)):
            self.add(f"added to cudaMalloc below {where}: {name}", f"{cost:.0f} ns", f"x{cost / libunwind:.2f} libunwind")
        self.add(f"per native frame, unwound and interned", f"{(native - none) / NATIVE:.1f} ns",
                 f"x{(native - none) / (libunwind - none):.2f} libunwind")
        self.add(f"per Python {version} frame, unwound and interned", f"{(both - native) / PYTHON:.1f} ns",
                 f"x{(both - native) / PYTHON / ((native - none) / NATIVE):.2f} native")
        new = self.below_python(python, "", "new_stacks", 2_000 if self.quick else 20_000, NATIVE)
        self.add(f"cudaMalloc below {where}, seen for the first time", f"{new['p50'] / 1e3:.1f} µs",
                 f"p99 {new['p99'] / 1e3:.1f} µs")

    def session(self, clock):
        program = self.build / "benchmark" / "session_benchmark"
        if not program.exists():
            self.add("ring and table alone", "not measured", "session_benchmark is not built")
            return
        done = subprocess.run([str(program), "--benchmark_format=json",
                               f"--benchmark_min_time={0.01 if self.quick else 0.2}"],
                              capture_output=True, text=True, check=True)
        for row in json.loads(done.stdout)["benchmarks"]:
            if row["name"] == "BM_ClockGettime":
                clock = row["cpu_time"]
            elif row["name"].startswith("BM_NewStack"):
                self.add("session: 100,000 different stacks of 70 frames", f"{row['arena_bytes'] / 2**20:.1f} MiB",
                         f"{row['stacks_kept']:,.0f} kept, {1e9 / row['items_per_second']:.0f} ns each")
            elif row.get("run_type") == "iteration" and row["time_unit"] == "ns" and "error_message" not in row:
                self.add(f"session: {row['name'].removeprefix('BM_').replace('/real_time', '')}",
                         f"{row['cpu_time']:.0f} ns", f"x{row['cpu_time'] / clock:.1f} clock_gettime")

    def walks(self):
        """Native stack walks alone, by the library's own unwinder and by others."""
        program = self.build / "benchmark" / "unwind_benchmark"
        done = subprocess.run([str(program), "--benchmark_format=json", "--benchmark_repetitions=5",
                               f"--benchmark_min_time={0.02 if self.quick else 0.3}"],
                              capture_output=True, text=True, check=True)
        rows = {row["run_name"]: row for row in json.loads(done.stdout)["benchmarks"]
                if row.get("aggregate_name") == "median"}
        for name, row in rows.items():
            frames, walk = name.split("/")
            own = rows[f"{frames}/WalkOwn"]["cpu_time"]
            walk = re.sub("(?<!^)([A-Z])", r" \1", walk.removeprefix("Walk")).lower()
            self.add(f"walk: {walk}, {frames.removeprefix('Frames')} frames",
                     f"{row['cpu_time']:.0f} ns, {row['cpu_time'] / row['frames']:.1f} a frame",
                     f"x{row['cpu_time'] / own:.2f} own")

    def drain(self):
        """Events per second that one core can process from a session."""
        done = subprocess.run([str(self.build / "benchmark" / "collector_benchmark"), "--benchmark_format=json",
                               "--benchmark_repetitions=3", f"--benchmark_min_time={0.05 if self.quick else 0.5}"],
                              capture_output=True, text=True, check=True)
        names = {"BM_DrainToRecords": "ring to records", "BM_DrainToLiveSet": "ring to live set",
                 "BM_DrainToRecording": "ring to recording in tmpfs"}
        for row in json.loads(done.stdout)["benchmarks"]:
            name = row["run_name"].split("/")[0]
            if row.get("aggregate_name") == "median" and name in names:
                rate = row["items_per_second"]
                self.add(f"drained on one core: {names[name]}", f"{rate / 1e6:.1f} M events/s",
                         f"{1e9 / rate:.0f} ns each")

    def beside(self):
        """The CPU time of the collector next to a program with a steady rate of events."""
        for rate in (10_000, 200_000):
            runs = []
            for _ in range(1 if self.quick else 3):
                done = subprocess.run([str(self.build / "benchmark" / "long_run"), "cost", str(rate),
                                       "2" if self.quick else "20", str(self.build / "bin" / "gpumemtrace-collector")],
                                      capture_output=True, text=True, check=True)
                runs.append(json.loads(done.stdout))
            run = sorted(runs, key=lambda run: run["share"])[len(runs) // 2]
            self.add(f"collector at {rate:,} events/s", f"{100 * run['share']:.1f} % of a core",
                     f"{run['rate']:,.0f} events/s generated, at most {run['memory'] / 2**20:.0f} MiB")

    def recording(self):
        """Bytes per event of a training loop, and the cost of a report on it."""
        events = 200_000 if self.quick else 10_000_000
        path = self.folder / "loop.gmt"
        done = subprocess.run([str(self.build / "benchmark" / "recording_benchmark"), str(events), str(path)],
                              capture_output=True, text=True, check=True)
        cost = json.loads(done.stdout)
        self.add(f"recording of {events:,} events", f"{cost['bytes']:.2f} B/event",
                 f"{cost['file_bytes'] / 2**20:.0f} MiB")
        for group in cost["groups"]:
            self.add(f"columns: {group['name']}", f"{group['packed']:.2f} B/event", f"{group['raw']:.2f} uncompressed")
        command = [str(self.build / "bin" / "gpumemtrace"), "report", str(path)]
        runs = []
        for _ in range(3):
            start = time.monotonic()
            pid = os.posix_spawn(command[0], command, self.environment(False, ""),
                                 file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
            _, status, usage = os.wait4(pid, 0)
            if status != 0:
                sys.exit("bench: the report failed")
            runs.append((time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**10))
        seconds, processor, peak = (statistics.median(column) for column in zip(*runs))
        self.add(f"report on {events:,} events", f"{seconds:.2f} s",
                 f"{processor:.2f} s of CPU time, at most {peak:.0f} MiB")

    def training(self):
        rig = Rig(os.environ["GMT_TORCH_PYTHON"], self.build, self.quick)
        rig.folder = self.folder
        steps, pairs = (3, 1) if self.quick else (20, 9)
        command = training_checks.command(rig, False, steps)
        ratios = []
        for pair in range(pairs + 1):
            plain = json.loads(rig.plain(command, seconds=600).stdout)["processor_seconds"]
            traced = rig.record("train", command, seconds=600).last_line()["processor_seconds"]
            if pair > 0:
                ratios.append(traced / plain)
        self.add("train_gpt.py, recorded / not recorded: CPU time", f"x{statistics.median(ratios):.3f}",
                 f"median of {pairs} pairs, x{min(ratios):.3f} to x{max(ratios):.3f}")

    def start_up(self, what, command, times):
        differences = []
        for _ in range(2 if self.quick else times):
            seconds = []
            for preload in (False, True):
                pid = os.posix_spawnp(command[0], command, self.environment(preload, ""))
                _, status, usage = os.wait4(pid, 0)
                if status != 0:
                    sys.exit(f"bench: {command[0]} failed")
                seconds.append(usage.ru_utime + usage.ru_stime)
            differences.append((seconds[1] - seconds[0], seconds[1] / seconds[0]))
        self.add(f"{what}, preloaded, no GPU call: CPU time",
                 f"{statistics.median(d for d, _ in differences) * 1e3:+.2f} ms",
                 f"x{statistics.median(r for _, r in differences):.3f}, median of {len(differences)} pairs")

    def instructions(self):
        bench_instructions.InstructionsBench(self).run()

    def run_torch(self):
        with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") as folder:
            self.folder = pathlib.Path(folder)
            (self.folder / "sessions").mkdir(mode=0o700)
            bench_torch.TorchBench(self).run()

    def run_instructions(self, write, check):
        """Returns the exit code."""
        with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") as folder:
            self.folder = pathlib.Path(folder)
            (self.folder / "sessions").mkdir(mode=0o700)
            counts = bench_instructions.InstructionsBench(self)
            counts.run()
        if write:
            counts.keep()
        return 1 if check and counts.check() else 0

    def run_answers(self, with_many):
        with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") as folder:
            self.folder = pathlib.Path(folder)
            bench_answers.AnswersBench(self).run(with_many)

    def run(self):
        with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") as folder:
            self.folder = pathlib.Path(folder)
            (self.folder / "sessions").mkdir(mode=0o700)
            clock = self.hooks(1)
            self.hooks(4)
            self.streams(clock)
            for python in pythons():
                self.hooks_below_python(python)
            self.walks()
            self.session(clock)
            self.instructions()
            self.drain()
            self.beside()
            self.recording()
            self.training()
            self.start_up("true", ["true"], 300)
            # Its time varies by more than what the library adds.
            bench_instructions.InstructionsBench(self).start_up(
                "import torch", [os.environ["GMT_TORCH_PYTHON"], "-c", "import torch"])

    def markdown(self, figure):
        model = "unknown processor"
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    model = line.split(":", 1)[1].strip()
                    break
        lines = [f"`{self.command}`, {datetime.date.today().isoformat()}, {model}, {os.cpu_count()} cores, "
                 f"load {os.getloadavg()[0]:.1f}, Linux {platform.release()}, preset dev.", "",
                 f"| what | {figure} | compared with |", "|---|---|---|"]
        lines += [f"| {what} | {result} | {yardstick} |" for what, result, yardstick in self.rows]
        return "\n".join(lines)


def write(text, begin, end):
    before, rest = PAGE.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
    print(f"\nWritten to {PAGE.relative_to(ROOT)}")


def main():
    build, quick = pathlib.Path(sys.argv[1]), "--quick" in sys.argv
    if "--instructions" in sys.argv:
        bench = Bench(build, quick, "scripts/bench --instructions")
        sys.exit(bench.run_instructions("--write" in sys.argv, "--check" in sys.argv))
    if "--torch" not in sys.argv:
        answers = Bench(build, quick, "scripts/bench --answers")
        answers.run_answers(not quick)
        if "--write" in sys.argv:
            write(answers.markdown("median"), ANSWERS_BEGIN, ANSWERS_END)
    if "--answers" in sys.argv:
        return
    if "--torch" not in sys.argv:
        bench = Bench(build, quick, "scripts/bench")
        bench.run()
        if "--write" in sys.argv:
            write(bench.markdown("median"), BEGIN, END)
    torch = Bench(build, quick, "scripts/bench --torch")
    torch.run_torch()
    if "--write" in sys.argv:
        write(torch.markdown("least"), TORCH_BEGIN, TORCH_END)


if __name__ == "__main__":
    main()
