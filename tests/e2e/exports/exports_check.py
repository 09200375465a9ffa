#!/usr/bin/env python3
"""Checks exported files with the programs and libraries that read them, and their sums with `report` and `query`.

Usage: exports_check.py --build DIR [CASE...]
"""

import argparse
import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(HERE.parent / "memory_viz"))
import write_events  # noqa: E402

SCENARIOS = ("raw_cuda", "pytorch", "two_devices", "out_of_memory", "empty")


class Exporter:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.logs = []
        for name in SCENARIOS:
            self.logs.append(folder / f"{name}.jsonl")
            write_events.SCENARIOS[name]().write(self.logs[-1])
        self.logs.append(ROOT / "tests/golden/v1.gmt")

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=False)

    def json(self, *words):
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def export(self, file_format, log, *options):
        """Returns the path of the exported file."""
        out = self.folder / f"exported.{file_format}"
        done = self.run("export", "--format", file_format, log, "-o", out, "--force", *options)
        assert done.returncode == 0, done.stderr
        return out

    def report(self, log, *options):
        return self.json("report", log, *options)


def layer_of(device):
    """Returns the heap that profiles show of a device: a framework's blocks if it has any."""
    heaps = {heap["heap"]: heap for heap in device["heaps"]}
    return heaps.get("pytorch") or heaps.get("driver")


def folded_stacks_add_up_to_the_report(exporter):
    for log in exporter.logs:
        for at in ("peak", "end"):
            held = collections.Counter()
            for line in exporter.export("folded", log, "--at", at).read_text(encoding="utf-8").splitlines():
                stack, held_bytes = line.rsplit(" ", 1)
                device, heap = stack.split(";")[:2]
                held[device, heap] += int(held_bytes)
            wanted = {(f"cuda:{d['index']}", layer_of(d)["heap"]): layer_of(d)["live_bytes"]
                      for d in exporter.report(log, "--at", at)["devices"] if d["index"] is not None and layer_of(d)}
            assert held == {k: v for k, v in wanted.items() if v > 0}, (log, at, held, wanted)


def speedscope_files_follow_its_schema(exporter):
    import jsonschema
    schema = HERE / "node_modules/speedscope/dist/release/file-format-schema.json"
    if not schema.exists():
        return "skipped: its npm packages are not installed: run scripts/setup --test"
    schema = json.loads(schema.read_text(encoding="utf-8"))
    for log in exporter.logs:
        exported = json.loads(exporter.export("speedscope", log).read_text(encoding="utf-8"))
        jsonschema.validate(exported, schema)
    return None


def as_numbers(row):
    """Returns a row of CSV with numbers and nulls as in JSON."""
    return {k: None if v == "" else int(v) if v.lstrip("-").isdigit() else v for k, v in row.items()}


def check_sums(exporter, log, rows):
    """Compares allocations, their bytes at the end, and their number with the report, by GPU and heap."""
    held, births = collections.Counter(), collections.Counter()
    for row in rows:
        where = row["device"], row["heap"]
        births[where] += row["alloc_event"] is not None
        held[where] += row["bytes"] if row["free_ns"] is None else 0
    for device in exporter.report(log, "--at", "end")["devices"]:
        for heap in device["heaps"]:
            where = device["index"], heap["heap"]
            assert (held[where], births[where]) == (heap["live_bytes"], heap["allocations"]), (log, where, held, heap)


def rows_of_csv_and_jsonl_are_those_of_query_and_report(exporter):
    for log in exporter.logs:
        with exporter.export("csv", log).open(encoding="utf-8", newline="") as exported:
            rows = [as_numbers(row) for row in csv.DictReader(exported)]
        lines = exporter.export("jsonl", log).read_text(encoding="utf-8").splitlines()
        objects = [json.loads(line) for line in lines]
        queried = exporter.json("query", log, "SELECT *, stack_text(stack) AS stack_text FROM memory")
        wanted = [dict(zip(queried["columns"], row)) for row in queried["rows"]]
        assert objects == wanted, (log, objects[:2], wanted[:2])
        assert rows == [as_numbers({k: "" if v is None else str(v) for k, v in row.items()}) for row in wanted], log
        check_sums(exporter, log, objects)
        assert not objects or any(row["stack_text"] for row in objects), log


def allocations_of_one_heap_or_device_can_be_selected(exporter):
    log = exporter.folder / "two_devices.jsonl"
    everything = [json.loads(line) for line in exporter.export("jsonl", log).read_text(encoding="utf-8").splitlines()]
    for options, key, value in ((["--device", "1"], "device", 1), (["--heap", "pytorch"], "heap", "pytorch")):
        lines = exporter.export("jsonl", log, *options).read_text(encoding="utf-8").splitlines()
        wanted = [row for row in everything if row[key] == value]
        assert 0 < len(wanted) < len(everything), options
        assert [json.loads(line) for line in lines] == wanted, options
    for options in (["--heap", "x' OR '1"], ["--device", "7"]):
        done = exporter.run("export", "--format", "csv", log, "-o", exporter.folder / "none", *options)
        assert done.returncode == 1 and not (exporter.folder / "none").exists(), (options, done)


def options_that_a_format_does_not_take_are_refused(exporter):
    log = exporter.logs[0]
    for words in (["folded", "--max-mb", "3"], ["torch", "--at", "end"], ["html", "--raw-frames"], ["pprof", "--from", "1"],
                  ["sqlite", "--device", "0"], ["speedscope", "--keep", "largest"]):
        out = exporter.folder / "refused"
        done = exporter.run("export", "--format", *words, log, "-o", out)
        assert done.returncode == 2 and not out.exists(), (words, done)
        assert f"--format {words[0]} does not take" in done.stderr, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    cases = [folded_stacks_add_up_to_the_report, speedscope_files_follow_its_schema,
             rows_of_csv_and_jsonl_are_those_of_query_and_report, allocations_of_one_heap_or_device_can_be_selected,
             options_that_a_format_does_not_take_are_refused]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gmt-exports.") as folder:
        exporter = Exporter(str(arguments.build.resolve() / "bin/gpumemtrace"), pathlib.Path(folder))
        for case in cases:
            if arguments.cases and case.__name__ not in arguments.cases:
                continue
            name = case.__name__.replace("_", " ")
            try:
                print(f"ok   {name}: {case(exporter) or ''}".rstrip(": "))
            except Exception:  # pylint: disable=broad-exception-caught
                failed += 1
                print(f"FAIL {name}")
                traceback.print_exc()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
