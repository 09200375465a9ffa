"""Shared by the checks of recordings: runs programs under the profiler on the simulated device, and gives access to the
results.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import schemas  # noqa: E402
import truth  # noqa: E402  imported by checks in other directories
from waiting import HANG_S, wait_for  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "programs"
MIB = 1 << 20


class Recording:
    """The results of one traced run: its exit code and output, the device's log, the recording."""

    def __init__(self, rig, folder, done):
        self.rig, self.folder, self.done = rig, folder, done
        self.path = folder / "run.gmt"

    def verb(self, *words):
        done = subprocess.run(
            [self.rig.program, *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
        return done.stdout

    def info(self, path=None):
        return json.loads(self.verb("info", "--json", path or self.path))

    def report(self, *options):
        return json.loads(self.verb("report", "--json", self.path, *options))

    def events(self, path=None):
        text = self.verb("cat", "--json", path or self.path)
        return [json.loads(line) for line in text.splitlines()]

    def events_so_far(self):
        """Returns the events of a recording that is being written."""
        done = subprocess.run([self.rig.program, "cat", "--json", str(self.path)], capture_output=True, text=True,
                              check=False)
        return [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []

    def result(self):
        assert self.done.returncode == 0, f"{self.done.returncode}: {self.done.stderr[-2000:]}"
        return json.loads(self.done.stdout.strip().splitlines()[-1])

    def peak(self, heap="driver", device=0):
        for row in self.report()["devices"]:
            if row["index"] == device:
                for h in row["heaps"]:
                    if h["heap"] == heap:
                        return h["peak_live_bytes"]
        return 0

    def check_against_the_device(self):
        pid = self.info()["target"]["pid"]
        difference = truth.compare(
            truth.expected(self.folder / "log", pid), truth.recorded(self.events())
        )
        assert difference is None, difference

    def check_whole(self):
        info = self.info()
        assert info["complete"], info
        losses = info["losses"]
        assert losses["written"] == sum(
            losses[k] for k in ("delivered", "overrun", "holes", "abandoned", "backlog")
        ), losses
        assert losses["written"] == losses["delivered"], losses
        return info


class Rig:
    def __init__(self, build, python):
        self.build, self.python = build, python
        self.program = str(build / "bin" / "gpumemtrace")

    def simulated(self, command):
        return [str(self.build / "simcuda" / "with-simcuda"), *map(str, command)]

    def environment(self, folder, more):
        return {
            **os.environ,
            "SIMCUDA_LOG": str(folder / "log"),
            "GPUMEMTRACE_DIR": str(folder / "sessions"),
            **more,
        }

    def run(self, folder, command, options=(), simulated=True, **environment):
        """Runs it with `gpumemtrace run`. Not simulated: the program finds a device itself, or none."""
        done = subprocess.run(
            [self.program, "run", "-o", str(folder / "run.gmt"), *options, "--"]
            + (self.simulated(command) if simulated else list(map(str, command))),
            env=self.environment(folder, environment),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return Recording(self, folder, done)

    @contextlib.contextmanager
    def running(self, folder, command, options=(), **environment):
        """Runs it with `gpumemtrace run` until the block ends, which also ends the program's input. The recording's
        `reported` is the program's first line of output; its `done` is available afterwards."""
        process = subprocess.Popen(
            [self.program, "run", "-o", str(folder / "run.gmt"), *options, "--", *self.simulated(command)],
            env=self.environment(folder, environment), cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        recording = Recording(self, folder, None)
        try:
            recording.reported = json.loads(process.stdout.readline())
            yield recording
            stdout, stderr = process.communicate(timeout=HANG_S)
            recording.done = subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
        finally:
            process.kill()

    def library(self):
        """Returns the value for LD_PRELOAD."""
        return subprocess.run(
            [self.program, "preload-path"], capture_output=True, text=True, check=True
        ).stdout.strip()

    def preload(self, folder, command, simulated=True, **environment):
        """Runs it with LD_PRELOAD only; returns when the collector has finished."""
        more = {
            "LD_PRELOAD": self.library(),
            "GPUMEMTRACE": f"output={folder}/run.gmt",
            **environment,
        }
        done = subprocess.run(
            self.simulated(command) if simulated else list(map(str, command)),
            env=self.environment(folder, more),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        wait_for("the collector to end", lambda: not list((folder / "sessions").glob("*.session")))
        return Recording(self, folder, done)

    def built(self, name, *options):
        """Returns the command of a compiled program of tests/programs."""
        return [self.build / "tests" / "programs" / name, *options]

    def driver_alloc(self, *options):
        return self.built("driver_alloc", *options)

    def torch(self, program, *options):
        return [self.python, PROGRAMS / program, *options]


def find_python(given):
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    installed = cache / "gpumemtrace/torch/bin/python"
    for python in (given, os.environ.get("GMT_TORCH_PYTHON"), installed):
        if python and pathlib.Path(python).exists():
            return str(python)
    return None


@contextlib.contextmanager
def folder_of_a_case():
    """Removed at the end, repeatedly if necessary: a process left by a failed case may write into it meanwhile."""
    folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm", prefix="gmt-e2e."))
    try:
        yield folder
    finally:
        deadline = time.monotonic() + HANG_S
        while folder.exists():
            shutil.rmtree(folder, ignore_errors=time.monotonic() < deadline)


def check_schemas(rig, folder):
    """The output of the commands for the recordings in the directory of a case must conform to docs/schemas/."""
    for path in sorted(folder.rglob("*.gmt")):
        problems = list(schemas.problems_of_file(rig.program, path))
        assert not problems, "\n".join(problems)


def run_cases(rig, cases):
    """Runs each (name, case) in its own directory. Returns the exit code: 1 if a case failed."""
    failed = 0
    for name, case in cases:
        with folder_of_a_case() as folder:
            (folder / "sessions").mkdir(mode=0o700)
            started = time.monotonic()
            try:
                case(rig, folder)
                check_schemas(rig, folder)
                print(f"ok     {name} ({time.monotonic() - started:.1f} s)", flush=True)
            except Exception:  # noqa: BLE001  one failing case must not hide the others
                failed += 1
                print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main_of_cases(cases, description, torch=True):
    """The main function of a check: runs each (name, case), or the named ones. `torch`: whether they need PyTorch."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    if torch:
        parser.add_argument("--python")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    python = find_python(args.python) if torch else None
    if torch and python is None:
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
    chosen = [(name, case) for name, case in cases if not args.names or name in args.names]
    return run_cases(Rig(args.build.resolve(), python), chosen)
