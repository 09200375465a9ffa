"""Measures the cost of recording a PyTorch program, compared with PyTorch's own recorder: a part of scripts/bench.

Every figure comes from a separate process on the simulated device. Processes of all variants alternate, so that
changes of the machine affect all of them. The minimum over all rounds counts for each variant, because other load
only makes a program slower, by far more than the differences to be measured.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "tests" / "programs" / "torch_cost.py"
ALLOCATOR_THREADS = ROOT / "tests" / "programs" / "torch" / "allocator_threads.cc"
BARE, OURS, ALL = "not recorded", "gpumemtrace", "PyTorch's history, stacks=all"
WITHOUT_ROLES = "gpumemtrace, roles=off"
# Name -> (options of gpumemtrace, or None; options of torch_cost.py).
VARIANTS = {
    BARE: (None, []),
    OURS: ("", []),
    WITHOUT_ROLES: ("roles=off", []),
    "gpumemtrace, stacks=none": ("stacks=none", []),
    "PyTorch's history, stacks=python": (None, ["--history", "python"]),
    ALL: (None, ["--history", "all"]),
}
MAX_SHARE_OF_ALL = 0.15  # goal: fraction of the cost that PyTorch's full history adds
MAX_NS_PER_SAVE = 60  # goal for the hook of a saved tensor, and for that of its release
MAX_SHARE_OF_ROLES = 0.04  # goal for roles: fraction of the cost of recording without roles


class TorchBench:
    """Measures and adds rows to `bench` (scripts/bench.py)."""

    def __init__(self, bench):
        self.bench = bench
        self.command = [str(bench.build / "simcuda" / "with-simcuda"), os.environ["GMT_TORCH_PYTHON"], str(PROGRAM)]

    def measure(self, variant, part, *more):
        ours, options = VARIANTS[variant]
        environment = self.bench.environment(ours is not None, ours or "")
        environment["GPUMEMTRACE_DIR"] = str(self.bench.folder / "sessions")
        environment["OMP_NUM_THREADS"] = "1"
        command = [*self.command, part, *options, *map(str, more), *(["--quick"] if self.bench.quick else [])]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        # The recording is not needed and occupies memory.
        for recording in self.bench.folder.glob("*.gmt"):
            recording.unlink()
        if done.returncode != 0:
            sys.exit(f"bench: {' '.join(command)}: exit code {done.returncode}\n{done.stderr[-3000:]}")
        return json.loads(done.stdout)

    def times(self, part, rounds, variants=VARIANTS):
        """Returns {figure: minimum ns over the rounds} for each variant."""
        least = {variant: {} for variant in variants}
        for _ in range(rounds):
            for variant, kept in least.items():
                for figure, value in self.measure(variant, part).items():
                    kept[figure] = min(value, kept.get(figure, value))
        return least

    def compare(self, what, results, figure):
        bare = results[BARE][figure]
        self.bench.add(f"{what}: {BARE}", f"{bare / 1e3:.2f} µs", "x1")
        added = {variant: kept[figure] - bare for variant, kept in results.items()}
        for variant in VARIANTS:
            if variant != BARE:
                self.bench.add(f"{what}: {variant}", f"{added[variant] / 1e3:+.2f} µs",
                               f"x{1 + added[variant] / bare:.2f}; {added[variant] / added[ALL]:.2f} of what PyTorch's "
                               "full history adds")
        share = added[OURS] / added[ALL]
        self.bench.add(f"{what}: added by gpumemtrace, relative to stacks=all", f"{share:.2f}",
                       f"goal: at most {MAX_SHARE_OF_ALL}, {'met' if share <= MAX_SHARE_OF_ALL else 'MISSED'}")

    def compare_roles(self, what, results, figure):
        without, all_of_it = (results[variant][figure] - results[BARE][figure] for variant in (WITHOUT_ROLES, OURS))
        share = all_of_it / without - 1
        self.bench.add(f"{what}: added by roles, relative to recording without", f"{100 * share:+.1f} %",
                       f"goal: at most {100 * MAX_SHARE_OF_ROLES:.0f} %, {'met' if share <= MAX_SHARE_OF_ROLES else 'MISSED'}")

    def saved_tensor(self, results):
        """The cost of a tensor that a node saves and releases: a product saves two more than a sum."""
        more = {variant: results[variant]["product"] - results[variant]["sum"] for variant in (OURS, WITHOUT_ROLES)}
        cost = (more[OURS] - more[WITHOUT_ROLES]) / 2
        self.bench.add("a tensor that a node saves and releases: added by roles", f"{cost:.0f} ns",
                       f"two hooks; goal: at most {2 * MAX_NS_PER_SAVE} ns, "
                       f"{'met' if cost <= 2 * MAX_NS_PER_SAVE else 'MISSED'}")

    def hooks_of_a_saved_tensor(self, rounds):
        """Like saved_tensor(), without PyTorch, whose own cost is larger and varies more than the measured one."""
        programs, libraries = self.bench.build / "test" / "preload_programs", self.bench.build / "test" / "fake_torch"
        command = [str(programs / "fake_training"), str(libraries / "libtorch_cpu.so"), "cost"]
        parts = {"saved": [], "released": [], "clock": []}
        for _ in range(rounds):
            ours, without = (self.cost(command, variant) for variant in (OURS, WITHOUT_ROLES))
            for part in ("saved", "released"):
                more = [(kept[part] - kept["plain"]) / 2 for kept in (ours, without)]  # per tensor, of two
                parts[part].append(more[0] - more[1])
            parts["clock"].append(ours["clock"])
        saved, released, clock = (statistics.median(values) for values in parts.values())
        self.bench.add("the same, the hooks alone", f"{released:.0f} ns",
                       f"median of {rounds} processes; reading the clock: {clock:.0f} ns")
        self.bench.add("of these, when a node saves the tensor", f"{saved:.0f} ns",
                       f"goal: at most {MAX_NS_PER_SAVE} ns, {'met' if saved <= MAX_NS_PER_SAVE else 'MISSED'}")

    def cost(self, command, variant):
        options = VARIANTS[variant][0]
        environment = self.bench.environment(options is not None, options or "")
        environment["GPUMEMTRACE_DIR"] = str(self.bench.folder / "sessions")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        for recording in self.bench.folder.glob("*.gmt"):
            recording.unlink()
        return json.loads(done.stdout.splitlines()[0])

    def threads(self):
        """The caching allocator, called by several threads at once: it holds its lock while it reports a block."""
        python = os.environ["GMT_TORCH_PYTHON"]
        torch = subprocess.run([python, "-c", "import torch; print(torch.__path__[0])"], capture_output=True, text=True,
                               check=True).stdout.strip()
        program = self.bench.folder / "allocator_threads"
        subprocess.run(["c++", "-O2", "-std=c++17", "-pthread", ALLOCATOR_THREADS, f"-I{torch}/include", f"-L{torch}/lib",
                        "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-ltorch_cuda", "-lc10", "-Wl,--allow-shlib-undefined",
                        f"-Wl,-rpath,{torch}/lib", "-o", program], check=True)
        count = 1
        while count <= max(2, os.cpu_count() or 1):
            command = [self.command[0], str(program), str(count), "1000" if self.bench.quick else "20000"]
            bare, ours = ([], [])
            for _ in range(2 if self.bench.quick else 5):
                bare.append(self.cost(command, BARE))
                ours.append(self.cost(command, OURS))
            what = f"a block and its release by {count} thread{'s' if count > 1 else ''} at once"
            self.bench.add(f"{what}: {BARE}", f"{min(bare) / 1e3:.2f} µs", "x1")
            self.bench.add(f"{what}: {OURS}", f"{min(ours) / 1e3:.2f} µs", f"x{min(ours) / min(bare):.2f}")
            count *= 2

    def growth(self):
        """Memory growth. Ours is bounded and therefore measured over many more events; PyTorch's would not fit."""
        quick = self.bench.quick
        ours_events, their_events = (200_000, 50_000) if quick else (10_000_000, 1_000_000)
        plain = self.measure(BARE, "growth", "--events", ours_events)["bytes"]
        ours = self.measure(OURS, "growth", "--events", ours_events)["bytes"]
        self.bench.add(f"anonymous memory after {ours_events:,} events: {BARE}", f"{plain / 2**20:+.2f} MiB", "")
        self.bench.add(f"anonymous memory after {ours_events:,} events: {OURS}", f"{ours / 2**20:+.2f} MiB",
                       f"goal: at most 4 MiB, {'met' if ours <= 4 << 20 else 'MISSED'}")
        for variant in ("PyTorch's history, stacks=python", ALL):
            grown = self.measure(variant, "growth", "--events", their_events)["bytes"]
            self.bench.add(f"anonymous memory after {their_events:,} events: {variant}", f"{grown / 2**20:+.0f} MiB",
                           f"{grown / their_events:.0f} B/event")

    def pauses(self):
        events = 20_000 if self.bench.quick else 1_000_000
        for variant, asked in ((BARE, "none"), (OURS, "none"), (OURS, "gpumemtrace"), (ALL, "torch")):
            found = self.measure(variant, "pause", "--events", events, "--snapshot", asked)["milliseconds"]
            whose = "no snapshot" if asked == "none" else "a snapshot"
            self.bench.add(f"longest pause of an allocating loop after {events:,} events: {variant}, {whose}",
                           f"{found:.2f} ms", "best of three loops" if asked != "torch" else "one loop")

    def run(self):
        rounds = 2 if self.bench.quick else 7
        results = self.times("pair", rounds)
        for figure in results[BARE]:
            self.compare(f"torch.empty(1024) and its release, Python {figure}", results, figure)
        results = self.times("step", 2 * rounds)  # varies more from process to process
        allocations = results[BARE]["allocations"]
        step = f"training step of a small GPT, {allocations:.0f} allocations"
        self.compare(step, results, "step")
        self.compare_roles(step, results, "step")
        self.saved_tensor(self.times("saves", rounds, (OURS, WITHOUT_ROLES)))
        self.hooks_of_a_saved_tensor(rounds)
        self.threads()
        self.growth()
        self.pauses()
