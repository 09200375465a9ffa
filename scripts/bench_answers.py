"""Measures time and memory for loading a recording of ten million events and answering questions about it:
a part of scripts/bench. For comparison, PyTorch's own reader of its snapshots, on the largest snapshot that
it can process."""

import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
EVENTS, MANY_EVENTS = 10_000_000, 100_000_000
MAX_LOAD_S, MAX_ANSWER_S, MAX_QUERY_S, MAX_BYTES_PER_EVENT, MAX_BYTES_OF_MANY = 2, 1, 2, 28, 4 << 30
# Stricter limits for the statements that are executed most often.
MAX_QUERY_S_OF = {"SELECT category, sum(bytes) FROM memory GROUP BY category": 0.5}
MAX_QUICK_S, MAX_WHOLE_BYTES = 1, 2 << 30
# What needs only a small part of a recording. The range has 600,000 events, a minute of a program with 10,000 per second.
QUICK_COMMANDS = (("info",), ("report",), ("report", "--at", "end"), ("report", "--from", "200", "--to", "202.3"))
MAX_RANKS_S, MAX_RANKS_BYTES, RANKS = 10, 1 << 30, 10_000
MIN_REPLAYED_PER_S, MIN_EXPORTED_PER_S = 5e6, 3e6
# Limits for PyTorch's reader: a minute and 12 GiB.
TIMEOUT_S, MEMORY = 60, 12 << 30
SNAPSHOT_BYTES = (20_000_000, 100_000_000, 400_000_000, 1_600_000_000)


def goal(is_met):
    return "met" if is_met else "MISSED"


class AnswersBench:
    """Measures and adds rows to `bench` (scripts/bench.py)."""

    def __init__(self, bench):
        self.bench = bench

    def program(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"bench: {command[0]}: exit code {done.returncode}\n{done.stderr[-3000:]}")
        return done.stdout

    def recording(self, events):
        path = self.bench.folder / f"{events}.gmt"
        self.program(self.bench.build / "benchmark" / "recording_benchmark", events, path)
        return path

    def ask(self, path, rounds):
        rows = [json.loads(self.program(self.bench.build / "benchmark" / "answers_benchmark", path))
                for _ in range(rounds)]
        median = {key: statistics.median(row[key] for row in rows) for key in rows[0] if key != "answers_ns"}
        median["answers_ns"] = {name: statistics.median(row["answers_ns"][name] for row in rows)
                                for name in rows[0]["answers_ns"]}
        return median

    def answers(self):
        events = 200_000 if self.bench.quick else EVENTS
        path = self.recording(events)
        rounds = 1 if self.bench.quick else 5
        cost = self.ask(path, rounds)
        exported = {table: self.export(path, table, rounds) for table in ("events", "memory")}
        statements = self.queries(path, rounds)
        path.unlink()
        load_s = cost["load_ns"] / 1e9
        self.bench.add(f"load {events:,} events", f"{load_s:.2f} s",
                       f"goal: at most {MAX_LOAD_S} s, {goal(load_s <= MAX_LOAD_S)}")
        for what, key in (("held", "bytes"), ("while loading", "bytes_while_loading")):
            per_event = cost[key] / cost["events"]
            self.bench.add(f"memory of the loaded trace, {what}", f"{per_event:.1f} B/event",
                           f"goal: at most {MAX_BYTES_PER_EVENT} B, {goal(per_event <= MAX_BYTES_PER_EVENT)}")
        for name, ns in cost["answers_ns"].items():
            self.bench.add(f"{name} on {events:,} events, after loading", f"{ns / 1e9:.2f} s",
                           f"goal: at most {MAX_ANSWER_S} s, {goal(ns <= MAX_ANSWER_S * 1e9)}")
        for sql, (first_s, again_s) in statements.items():
            most_s = MAX_QUERY_S_OF.get(sql, MAX_QUERY_S)
            self.bench.add(f"`{sql}` on {events:,} events, after loading", f"{first_s:.2f} s",
                           f"{again_s:.2f} s the second time; goal: at most {most_s} s, {goal(first_s <= most_s)}")
        for table, seconds in exported.items():
            per_s = events / seconds
            self.bench.add(f"export --format arrow --table {table}, with loading: events per second", f"{per_s / 1e6:.1f} M",
                           f"goal: at least 3 M, {goal(per_s >= MIN_EXPORTED_PER_S)}")

    def queries(self, path, rounds):
        """Returns the seconds of the first and of another run of each statement, the medians of all rounds."""
        rows = [json.loads(self.program(self.bench.build / "benchmark" / "query_benchmark", path)) for _ in range(rounds)]
        return {sql: [statistics.median(row[sql][run] for row in rows) / 1e9 for run in ("first_ns", "again_ns")]
                for sql in rows[0]}

    def export(self, path, table, rounds):
        """Returns the seconds that the program takes, its start and the loading included."""
        times = []
        for _ in range(rounds):
            start = time.monotonic()
            self.program(self.bench.build / "bin" / "gpumemtrace", "export", "--format", "arrow", "--table", table, path,
                         "-o", "/dev/null")
            times.append(time.monotonic() - start)
        return statistics.median(times)

    def many(self):
        path = self.recording(MANY_EVENTS)
        cost = self.ask(path, 1)
        for command in QUICK_COMMANDS:
            seconds = statistics.median(self.cost_of(*command, path)[0] for _ in range(5))
            self.bench.add(f"gpumemtrace {' '.join(command)} on {MANY_EVENTS:,} events", f"{seconds:.2f} s",
                           f"goal: at most {MAX_QUICK_S} s, {goal(seconds <= MAX_QUICK_S)}")
        seconds, memory = self.cost_of("report", "--from", "0", path)  # reads everything
        self.bench.add(f"gpumemtrace report --from 0 on {MANY_EVENTS:,} events", f"{seconds:.1f} s, {memory / 2**30:.2f} GiB",
                       f"goal: at most {MAX_WHOLE_BYTES >> 30} GiB, {goal(memory <= MAX_WHOLE_BYTES)}")
        path.unlink()
        self.bench.add(f"load {MANY_EVENTS:,} events", f"{cost['load_ns'] / 1e9:.1f} s", "")
        self.bench.add(f"all answers on {MANY_EVENTS:,} events, maximum memory",
                       f"{cost['bytes_at_most'] / 2**30:.2f} GiB",
                       f"goal: at most {MAX_BYTES_OF_MANY >> 30} GiB, {goal(cost['bytes_at_most'] <= MAX_BYTES_OF_MANY)}")

    def ranks(self):
        """Compares the ranks of a large job from digests: those of a real recording, and the largest that there are."""
        count = 100 if self.bench.quick else RANKS
        path = self.recording(200_000)
        for what, recordings in (("digests", [path]), ("digests of the largest size", [])):
            with tempfile.TemporaryDirectory(dir=self.bench.folder) as job:
                size = json.loads(self.program(self.bench.build / "benchmark" / "ranks_benchmark", count, job,
                                               *recordings))["bytes_per_digest"]
                for option, form in ((), "text"), (("--json",), "JSON"):
                    seconds, most = self.cost_of("ranks", *option, job)
                    is_met = goal(seconds <= MAX_RANKS_S and most <= MAX_RANKS_BYTES)
                    self.bench.add(f"`ranks` on {count:,} {what} of {size:,.0f} bytes, {form}",
                                   f"{seconds:.1f} s, {most / 2**20:.0f} MiB",
                                   f"goal: at most {MAX_RANKS_S} s and {MAX_RANKS_BYTES >> 20} MiB, {is_met}")
        path.unlink()

    def cost_of(self, *words):
        """Runs the program. Returns its seconds and the most memory that it had, in bytes."""
        program = str(self.bench.build / "bin" / "gpumemtrace")
        start = time.monotonic()
        child = subprocess.Popen([program, *map(str, words)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"bench: {program} {words[0]}: status {status}")
        return time.monotonic() - start, usage.ru_maxrss * 1024

    def whatif(self):
        """Measures one replay of a training loop, and a scenario, which takes several replays."""
        found = json.loads(self.program(self.bench.build / "benchmark" / "whatif_benchmark", "--benchmark_format=json"))
        for row in found["benchmarks"]:
            name, expandable = row["name"].split("/")
            what = "replay" if name == "BM_Reproduce" else "whatif, one scenario"
            if expandable.endswith("1"):
                what += ", expandable segments"
            per_s = row["items_per_second"]
            is_met = goal(per_s >= MIN_REPLAYED_PER_S)
            self.bench.add(f"{what}: requests of the allocator per second", f"{per_s / 1e6:.1f} M", f"goal: at least 5 M, {is_met}")

    def timed(self, command):
        """Returns seconds, or None if the program does not finish within its limits."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        start = time.monotonic()
        try:
            done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=TIMEOUT_S, preexec_fn=limit)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - start if done.returncode == 0 else None

    def beside_pytorch(self):
        """Compares PyTorch's reader, which prints the events as text, with `report` on the same snapshot."""
        python = pathlib.Path(os.environ["GMT_TORCH_PYTHON"])
        reader = next(python.parent.parent.glob("lib/python3*/site-packages/torch/cuda/_memory_viz.py"))
        largest = None
        for size in SNAPSHOT_BYTES[:1] if self.bench.quick else SNAPSHOT_BYTES:
            path = self.bench.folder / f"{size}.pickle"
            properties = json.loads(self.program(self.bench.build / "benchmark" / "big_snapshot", size, path))
            theirs = self.timed([python, reader, "trace", path])
            if theirs is None:
                path.unlink()
                break
            ours = self.timed([self.bench.build / "bin" / "gpumemtrace", "report", path])
            largest = properties, theirs, ours
            path.unlink()
        if largest is None:
            self.bench.add("PyTorch's reader of snapshots", "does not finish", f"{SNAPSHOT_BYTES[0]:,} bytes")
            return
        properties, theirs, ours = largest
        self.bench.add(f"snapshot of {properties['events']:,} events, the largest that `_memory_viz.py trace` can process",
                       f"{theirs:.1f} s", f"in {TIMEOUT_S} s and {MEMORY >> 30} GiB")
        self.bench.add("gpumemtrace report on the same snapshot", f"{ours:.1f} s", f"x{ours / theirs:.2f}")

    def run(self, with_many):
        self.answers()
        self.ranks()
        self.whatif()
        if with_many:
            self.many()
        self.beside_pytorch()
