"""Shared by the checks of attach: a rig that ends the processes it has started, and a runner for cases.
"""

import argparse
import pathlib
import os
import signal
import subprocess
import tempfile
import traceback


class Skipped(Exception):
    """This machine or user cannot create such a process."""


class Rig:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.program = str(build / "bin" / "gpumemtrace")
        self.started = []

    def start(self, *command, **more):
        """Starts a process in its own process group. Its first line of output is in `output`."""
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, text=True, start_new_session=True, **more
        )
        self.started.append(process)
        process.output = process.stdout.readline()
        assert process.output.startswith("ready"), process.output
        return process

    def end(self):
        for process in self.started:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def run_case(rig, case):
    """Returns (outcome, additional text)."""
    try:
        case(rig)
        return "ok", ""
    except Skipped as why:
        return "skipped", f": {why}"
    except Exception:  # noqa: BLE001  one failing case must not hide the others
        return "FAILED", f"\n{traceback.format_exc()}"
    finally:
        rig.end()


def main(description, cases, make_rig, place):
    """Runs the named cases, or all, each with its own rig in a new directory below `place`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    for case in cases:
        if args.names and case.__name__ not in args.names:
            continue
        with tempfile.TemporaryDirectory(dir=place, prefix="gmt-attach.") as folder:
            outcome, more = run_case(make_rig(args.build.resolve(), pathlib.Path(folder)), case)
        counts[outcome] += 1
        print(f"{outcome:7} {case.__name__}{more}", flush=True)
    print("{ok} passed, {FAILED} failed, {skipped} skipped".format(**counts))
    return 1 if counts["FAILED"] or not counts["ok"] else 0
