"""Runs checks one by one. Each has a time limit, no failure ends the run, and all results are on disk after each check."""

import pathlib
import tempfile
import time
import traceback
import zipfile

from . import page
from .rig import Failed

MIN_SECONDS = 3  # minimum of seconds left to start a check
EVIDENCE_FILE, EVIDENCE_ALL = 4 << 20, 12 << 20


class Runner:
    def __init__(self, rig, table, budget, output=None):
        self.rig, self.table, self.output = rig, table, output
        self.began = time.monotonic()
        self.end = self.began + budget
        self.facts = {}
        self.runs = {}

    def run(self, checks):
        for check in checks:
            self.run_one(check)
            self.write(finished=False)
        self.write(finished=True)

    def run_one(self, check):
        table, began = self.table, time.monotonic()
        table.begin(check.title, check.name)
        left = self.end - began
        if left < min(MIN_SECONDS, check.seconds):
            table.no_time(check.name, f"{check.seconds} s are its limit")
            return
        self.rig.deadline = began + min(check.seconds, left)
        self.rig.runs = []
        first = len(table.rows)
        base = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None
        with tempfile.TemporaryDirectory(prefix="gpu-check-", dir=base, ignore_cleanup_errors=True) as folder:
            self.rig.folder = pathlib.Path(folder)
            try:
                check.function(self.rig, table)
            except Failed as failed:
                # A check that hangs has used its whole limit; one that began late may have needed
                # more time.
                cut_short = failed.done.timed_out and left < check.seconds
                (table.no_time if cut_short else table.fail)(check.name, str(failed))
                table.keep("failed", failed.done.reported())
            except Exception as error:  # an exception is a result too
                table.fail(check.name, f"{type(error).__name__}: {error}")
                table.keep("traceback", traceback.format_exc())
            if len(table.rows) == first:
                table.fail(check.name, "it added no rows", "a result")
            if table.failed(first):
                self.keep_evidence(check.name)
        self.rig.folder = None
        seconds = time.monotonic() - began
        for row in table.rows[first:]:
            row.seconds = round(seconds, 1)
        self.runs[check.name] = {"seconds": round(seconds, 1), "commands": self.rig.runs[-60:]}

    def keep_evidence(self, name):
        """Saves small files of a failed check next to the results."""
        if self.output is None:
            return
        path = self.output.with_name(self.output.stem + "-evidence.zip")
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as evidence:
            for file in sorted(self.rig.folder.rglob("*")):
                there = path.stat().st_size
                if file.is_file() and file.stat().st_size <= min(EVIDENCE_FILE, EVIDENCE_ALL - there):
                    evidence.write(file, f"{name}/{file.relative_to(self.rig.folder)}")

    def write(self, finished):
        if self.output is None:
            return
        self.facts["time"] = f"{time.monotonic() - self.began:.0f} s"
        page.write(self.output, self.table, self.facts, self.runs, finished)


def clear(output):
    """Deletes files that an earlier run left next to its page."""
    for path in (output.with_suffix(".json"), output.with_name(output.stem + "-evidence.zip")):
        path.unlink(missing_ok=True)
