"""The body of scripts/bench, which says how to call it and builds what this measures."""

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

import gpu_check

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "overhead.md"
BEGIN, END = "<!-- scripts/bench writes from here -->", "<!-- to here -->"
DEPTH = 20


class Bench:
    def __init__(self, build, quick):
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

    def call_cost(self, preload, options=""):
        command = [str(self.build / "simcuda" / "with-simcuda"), str(self.build / "bench" / "call_cost"),
                   "100", str(DEPTH)]
        done = subprocess.run(command, env=self.environment(preload, options), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def hooks(self):
        """Each variant against the direct call of the same round, so that both see the same machine."""
        variants = [("passing through (heap=host)", "heap=host"), ("recording, no stack", "stacks=none"),
                    ("recording, stack by libunwind", "stacks=native:libunwind"),
                    ("recording, stack by libgcc", "stacks=native:libgcc")]
        added = {name: [] for name, _ in variants}
        clocks, direct = [], []
        for _ in range(3 if self.quick else 11):
            plain = self.call_cost(False)
            direct.append(plain["pair_ns"])
            clocks.append(plain["clock_ns"])
            for name, options in variants:
                added[name].append(self.call_cost(True, options)["pair_ns"] - plain["pair_ns"])
        clock, call = statistics.median(clocks), statistics.median(direct)
        self.add("clock_gettime", f"{clock:.0f} ns", "x1")
        self.add("cudaMalloc + cudaFree of the simulated device", f"{call:.0f} ns", f"x{call / clock:.1f} clock_gettime")
        for name, _ in variants:
            value = statistics.median(added[name])
            self.add(f"added to the pair: {name}", f"{value:.0f} ns",
                     f"x{value / clock:.1f} clock_gettime, x{value / call:.1f} the pair")
        return clock

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
            elif row.get("run_type") == "iteration" and row["time_unit"] == "ns" and "error_message" not in row:
                self.add(f"session: {row['name'].removeprefix('BM_').replace('/real_time', '')}",
                         f"{row['cpu_time']:.0f} ns", f"x{row['cpu_time'] / clock:.1f} clock_gettime")

    def training(self):
        arguments = type("Arguments", (), {"python": os.environ["GMT_TORCH_PYTHON"], "simulated": self.build,
                                           "quick": self.quick})
        rig = gpu_check.Rig(arguments)
        steps, pairs = (3, 1) if self.quick else (20, 9)
        ratios = []
        for pair in range(pairs + 1):
            plain = rig.run(None, False, steps)["processor_seconds"]
            traced = rig.run(self.folder / f"train-{pair}.gmt", False, steps)["processor_seconds"]
            if pair > 0:
                ratios.append(traced / plain)
        self.add("train_gpt.py, recorded / not: processor time", f"x{statistics.median(ratios):.3f}",
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
        self.add(f"{what}, preloaded, no GPU call: processor time",
                 f"{statistics.median(d for d, _ in differences) * 1e3:+.2f} ms",
                 f"x{statistics.median(r for _, r in differences):.3f}, median of {len(differences)} pairs")

    def count_instructions(self, preload, pairs):
        """Instructions of the whole program, or None where valgrind is missing or cannot load it."""
        environment = self.environment(preload, "stacks=none")
        libraries = [self.library] if preload else []
        libraries += [str(self.build / "simcuda" / "libcuda.so.1"), str(self.build / "simcuda" / "libcudart.so.13")]
        environment["LD_PRELOAD"] = ":".join(libraries)
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                   str(self.build / "bench" / "call_cost"), str(pairs), str(DEPTH)]
        try:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       text=True)
        except OSError:
            return None
        try:
            output = process.communicate(timeout=120)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            return None
        # What the process starts reports under pids of its own.
        found = re.search(rf"=={process.pid}== Collected : (\d+)", output)
        return int(found.group(1)) if found and process.returncode == 0 else None

    def instructions(self):
        """What a shared machine cannot blur; the difference of two lengths leaves out the start of the session."""
        rounds = 302  # of call_cost, the first unmeasured one included
        counts = [self.count_instructions(preload, pairs) for preload in (False, True) for pairs in (10, 30)]
        if None in counts:
            self.add("instructions added to the pair: recording, no stack", "not available here",
                     "valgrind --tool=callgrind")
            return
        direct, recorded = (counts[1] - counts[0]) / (20 * rounds), (counts[3] - counts[2]) / (20 * rounds)
        self.add("instructions added to the pair: recording, no stack", f"{recorded - direct:.0f}",
                 f"{direct:.0f} of the simulated device; valgrind --tool=callgrind")

    def run(self):
        with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") as folder:
            self.folder = pathlib.Path(folder)
            clock = self.hooks()
            self.session(clock)
            self.instructions()
            self.training()
            self.start_up("true", ["true"], 300)
            self.start_up("import torch", [os.environ["GMT_TORCH_PYTHON"], "-c", "import torch"], 9)

    def markdown(self):
        model = "unknown processor"
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    model = line.split(":", 1)[1].strip()
                    break
        lines = [f"`scripts/bench`, {datetime.date.today().isoformat()}, {model}, {os.cpu_count()} cores, "
                 f"load {os.getloadavg()[0]:.1f}, Linux {platform.release()}, preset dev.", "",
                 "| what | median | against |", "|---|---|---|"]
        lines += [f"| {what} | {result} | {yardstick} |" for what, result, yardstick in self.rows]
        return "\n".join(lines)


def main():
    bench = Bench(pathlib.Path(sys.argv[1]), "--quick" in sys.argv)
    bench.run()
    text = bench.markdown()
    if "--write" in sys.argv:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
        print(f"\nWritten to {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
