#!/usr/bin/env python3
"""Records a long training run, accelerated, with bounded history, and runs the commands on the recording.

Usage: week_check.py --build DIR [--events N] [--max-size SIZE] [--keep]

build/dev/benchmark/long_run simulates the run, drains it with the collector's code, and checks memory, disk, live set and
totals. This check reads the recording: by its single name, with and without its older parts, info and report must cover the
whole time, and leaks must report the leaking line and no other. --keep keeps the directory.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LEAK = 0x7EAD00 - 0x400000  # collector/testing/long_training.h: kLeakAddress in its module
PARTS = 2  # minimum; otherwise the history was not bounded


class Week:
    def __init__(self, build, folder):
        self.program = build / "bin" / "gpumemtrace"
        self.recorder = build / "benchmark" / "long_run"
        self.folder = folder
        self.file = folder / "week.gmt"
        self.reported = {}

    def record(self, events, max_size):
        done = subprocess.run([self.recorder, "week", str(events), max_size, self.folder],
                              stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, end="")
        if done.returncode != 0:
            sys.exit("week_check: the recording differs from the run")
        for name, number in re.findall(r"^(.{44}) +(\d+)", done.stdout, re.MULTILINE):
            self.reported[name.strip()] = int(number)

    def parts(self):
        return sorted(self.folder.glob("week.part-*.gmt"))

    def ask(self, *words):
        done = subprocess.run([self.program, *words, "--json"], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)


def check(holds, what):
    print(("ok    " if holds else "WRONG ") + what)
    return 0 if holds else 1


def check_reading(week, parts):
    """Checks the output of the commands for a recording with that many files."""
    info, report = week.ask("info", week.file), week.ask("report", week.file)
    history, sums = info["history"], report["all_time"]
    wrong = check(info["complete"], "info: complete")
    wrong += check(history["files"] == parts, f"info: {history['files']} files of {parts}")
    wrong += check(history["events_before"] > 0, f"info: {history['events_before']:,} events before the details")
    wrong += check(history["ended_by"] == "exit", "info: ended by exit")
    wrong += check(sums["details_from_t_ns"] == history["details_from_t_ns"], "report: details from then on")
    heap = next(heap for heap in sums["heaps"] if heap["heap"] == "pytorch")
    wrong += check(heap["allocations"] == week.reported["allocations since the start"], "report: allocations of all time")
    wrong += check(heap["peak_bytes"] == week.reported["peak since the start"], "report: peak of all time")
    held = sum(heap["live_bytes"] for device in week.ask("report", week.file, "--at", "snapshot:exit")["devices"]
               for heap in device["heaps"])
    wrong += check(held == week.reported["bytes held"], "report: bytes held at the end")
    if heap["peak_is_before"]:
        total = sum(row["bytes_at_peak"] for row in heap["rows"])
        wrong += check(total == heap["peak_bytes"], "report: rows of the peak add up")
    return wrong


def check_leaks(week):
    answer = week.ask("leaks", week.file)
    sure = [suspect for suspect in answer["suspects"] if suspect["tier"] in ("leak", "likely")]
    inner = {suspect["stacks"][0]["frames"][0]["function"] for suspect in sure}
    is_right = len(sure) == 1 and all(name.endswith(f"+{LEAK:#x}") for name in inner)
    return check(is_right, f"leaks: the line that leaks and no other ({len(sure)}: {inner})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--events", type=int, default=6_000_000)
    parser.add_argument("--max-size", default="16MiB")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gmt-week-"))
    week = Week(arguments.build.resolve(), folder)
    week.record(arguments.events, arguments.max_size)
    parts = week.parts()
    wrong = check(len(parts) >= PARTS, f"{len(parts)} older parts are kept")
    wrong += check(not (folder / "week.part-000000.gmt").exists(), "the oldest part is gone")
    wrong += check_reading(week, len(parts) + 1)
    wrong += check_leaks(week)
    for part in parts:
        part.unlink()
    print("without the older parts:")
    wrong += check_reading(week, 1)
    if arguments.keep:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
