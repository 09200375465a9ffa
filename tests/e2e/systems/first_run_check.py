#!/usr/bin/env python3
"""Does in new systems what a new user does: makes an environment, installs the wheel, records a program, reads the report.
Prints how long that took. Also compares there the unwinder with libgcc's, and uninstalls the wheel without a rest.

Usage: first_run_check.py --build BUILD --wheel WHEEL [--archives FOLDER] [SYSTEM...]
  BUILD   build directory whose programs run on old systems: scripts/oldest-glibc makes it
  WHEEL   what scripts/wheel has built
  FOLDER  keeps the new systems for the next run
  SYSTEM  code name of a release; default: all
Needs root, mmdebstrap and the package sources of Debian and Ubuntu.
"""

import argparse
import ensurepip
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/e2e/unwind")]
import unwind_check  # noqa: E402
from systems import System, make_archive  # noqa: E402

# The oldest releases that their archives still have, and those that new users have.
SYSTEMS = {"bullseye": "Debian 11", "focal": "Ubuntu 20.04", "bookworm": "Debian 12", "noble": "Ubuntu 24.04", "trixie": "Debian 13"}
TRAIN = """
import ctypes
runtime = ctypes.CDLL("libcudart.so.13")
def allocate(mib):
    assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20)) == 0
def train():
    for step in range(3):
        allocate(2)
train()
"""


class Stopwatch:
    """Runs commands in a system, as a user types them, and measures each."""

    def __init__(self, system):
        self.system, self.seconds = system, {}

    def run(self, name, line):
        started = time.monotonic()
        output = self.system.shell(line)
        self.seconds[name] = time.monotonic() - started
        return output


def update_pip(system):
    """Does what `pip install --upgrade pip` does, without a network, if the system's pip does not know names of wheels by the
    version of glibc: before 20.3."""
    version = system.shell("env/bin/pip --version").split()[1]
    if tuple(map(int, version.split(".")[:2])) >= (20, 3):
        return
    (newer,) = (pathlib.Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    shutil.copy(newer, system.root / "opt/work")
    system.shell("env/bin/pip install -q pip-*.whl")


def check_first_run(system, wheel):
    """Returns the seconds of each step."""
    (system.root / "opt/work/train.py").write_text(TRAIN)
    shutil.copy(wheel, system.root / "opt/work")
    watch = Stopwatch(system)
    watch.run("environment", "python3 -m venv env")
    update_pip(system)
    before = sorted(path.name for path in (system.root / "opt/work/env").rglob("*"))
    watch.run("install", "env/bin/pip install gpumemtrace-*.whl")
    report = watch.run("record and report", "/opt/simcuda/with-simcuda env/bin/gpumemtrace run -o run.gmt -- env/bin/python train.py")
    assert "peak 6.00 MiB on GPU 0" in report, report
    assert report.rstrip().splitlines()[-1] == "Recording: /opt/work/run.gmt", report

    answer = json.loads(system.shell("env/bin/gpumemtrace report --json run.gmt"))
    frames = [frame for row in answer["rows"] for frame in row["frames"]]
    lines = {(frame["function"], frame["line"]) for frame in frames if (frame["file"] or "").endswith("train.py")}
    assert lines == {("allocate", 5), ("train", 8), ("<module>", 9)}, lines
    health = system.shell("PATH=/opt/work/env/bin:$PATH; /opt/simcuda/with-simcuda gpumemtrace doctor")
    assert health.splitlines()[-1] == "Next: gpumemtrace run -- python train.py", health
    # The command that doctor suggests works as it is.
    suggested = system.shell("PATH=/opt/work/env/bin:$PATH; /opt/simcuda/with-simcuda gpumemtrace run -- python train.py")
    assert "peak 6.00 MiB on GPU 0" in suggested, suggested
    system.shell("env/bin/pip uninstall -q -y gpumemtrace")
    after = sorted(path.name for path in (system.root / "opt/work/env").rglob("*"))
    assert after == before, set(after) ^ set(before)
    return watch.seconds


def oracle_counts(system, command, **settings):
    """Returns what the oracle counted in all processes of a command."""
    log = system.root / "tmp/oracle.log"
    log.unlink(missing_ok=True)
    system.run(*command, LD_PRELOAD="/opt/unwind/libunwind_oracle.so", UNWIND_ORACLE_LOG="/tmp/oracle.log", **settings)
    text = log.read_text(errors="replace")
    counts = dict.fromkeys(unwind_check.KINDS, 0)
    for line in unwind_check.LINE.findall(text):
        for kind, number in zip(unwind_check.KINDS, map(int, line)):
            counts[kind] += number
    assert counts["different"] == counts["slow differs"] == counts["after last differs"] == 0, text
    return counts


def check_unwinder(system, glibc):
    """Returns how many stacks were compared."""
    compared = 0
    programs = sorted(path.name for path in (system.root / "opt/unwind").glob("frames_*"))
    assert len(programs) >= 4, programs
    for name in programs:
        # At calls. Old releases of libgcc take a lock, so that it cannot unwind between any two instructions.
        counts = oracle_counts(system, [f"/opt/unwind/{name}", "20", "calls"])
        assert counts["compared"] >= 1500 and counts["truncated"] == 0, (name, counts)
        compared += counts["compared"]
    counts = oracle_counts(system, ["python3", "-c", unwind_check.PYTHON.replace("ROUNDS", "1")], UNWIND_ORACLE_EVERY="7",
                           PYTHONMALLOC="malloc")
    assert counts["compared"] >= 5000 and counts["deepest"] > 60, counts
    # Before glibc 2.35, the tables of a library that was just loaded may not be known yet (docs/unwinding.md).
    limit = 0 if tuple(map(int, glibc.split("."))) >= (2, 35) else counts["compared"] * 0.1
    assert counts["truncated"] <= limit, counts
    return compared + counts["compared"]


def check(release, arguments, folder):
    """Returns the row of a table."""
    archives = arguments.archives or folder
    archive = archives / f"{release}.tar"
    if not archive.exists():
        make_archive(release, ["python3", "python3-venv", "libstdc++6"], archive, folder)
    system = System(folder / release, archive)
    shutil.copytree(arguments.build / "simcuda", system.root / "opt/simcuda")
    shutil.copytree(arguments.build / "tests/unwind", system.root / "opt/unwind")
    seconds = check_first_run(system, arguments.wheel)
    glibc = system.shell("ldd --version").splitlines()[0].split()[-1]
    compared = check_unwinder(system, glibc)
    python = system.shell("python3 --version").split()[-1]
    return [SYSTEMS[release], glibc, python, *(f"{s:.1f} s" for s in seconds.values()), f"{sum(seconds.values()):.1f} s", f"{compared:,}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--wheel", type=pathlib.Path, required=True)
    parser.add_argument("--archives", type=pathlib.Path)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: it needs root")
        return 77
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as name:
        for release in arguments.systems or SYSTEMS:
            try:
                rows.append(check(release, arguments, pathlib.Path(name)))
            except Exception:  # noqa: BLE001  all systems are tried, and each failure is printed
                failed += 1
                print(f"FAILED  {SYSTEMS[release]}")
                traceback.print_exc()
    print("| system | glibc | Python | environment | install | record and report | all of it | stacks compared |\n|" + "---|" * 8)
    for row in rows:
        print("|", " | ".join(row), "|")
    print(f"{len(rows)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
