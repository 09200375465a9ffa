#!/usr/bin/env python3
"""Checks exported files with the programs and libraries that read them, and their sums with `report` and `query`.

Usage: exports_check.py --build DIR [CASE...]
"""

import argparse
import collections
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
        out = self.folder / f"{log.stem}.{file_format}"
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
