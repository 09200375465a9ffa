#!/usr/bin/env python3
"""Prints what recordings take in each form that a fleet keeps: the file itself, its digest, Parquet, a profile of one moment. For the
sizes in docs/fleet.md.

Usage: bench_fleet.py --build DIR FILE...

Needs pyarrow: ~/.cache/gpumemtrace/tables/bin/python scripts/bench_fleet.py ...
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
import gpumemtrace  # noqa: E402

FEW = ["recordings", "categories", "steps", "failures"]


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    program = str(arguments.build.resolve() / "bin/gpumemtrace")
    print("| recording | events | `.gmt` | digest | all tables, Parquet | few tables | pprof of the peak |")
    print("|---|---|---|---|---|---|---|")
    for path in arguments.files:
        events = json.loads(subprocess.run([program, "info", "--json", path], capture_output=True, check=True).stdout)["events"]
        count = events["alloc"] + events["free"]
        with tempfile.TemporaryDirectory(prefix="gmt-bench.") as name:
            folder = pathlib.Path(name)
            copy = folder / "run.gmt"
            copy.write_bytes(path.read_bytes())
            subprocess.run([program, "ranks", "--digest-only", copy], check=True)
            gpumemtrace.to_parquet(copy, folder / "all", program=program)
            gpumemtrace.to_parquet(copy, folder / "few", tables=FEW, program=program)
            subprocess.run([program, "export", "--format", "pprof", copy, "-o", folder / "peak.pb.gz"], check=True, capture_output=True)
            sizes = [copy.stat().st_size, (folder / "run.gmt.digest").stat().st_size, size_of(folder / "all"), size_of(folder / "few"),
                     (folder / "peak.pb.gz").stat().st_size]
        words = [f"{sizes[0] / 1e6:.2f} MB, {sizes[0] / count:.1f} B per event", f"{sizes[1] / 1e3:.1f} KB",
                 f"{sizes[2] / 1e6:.2f} MB, {sizes[2] / count:.1f} B per event", f"{sizes[3] / 1e3:.1f} KB", f"{sizes[4] / 1e3:.1f} KB"]
        print(f"| {path.name} | {count:,} | {' | '.join(words)} |")


if __name__ == "__main__":
    main()
