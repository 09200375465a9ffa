#!/usr/bin/env python3
"""Records PyTorch on the simulated device and compares the recording with PyTorch's own
allocator: its blocks, segments and counters at every moment of the program, to the byte, and
the order and the Python stacks of all events, using PyTorch's own history.

Usage: oracle_check.py --build DIR [--short] [--python PYTHON] [--history python|all|none] [NAME...]

PYTHON (default: $GMT_TORCH_PYTHON, else the one that scripts/setup installed) has a CUDA build of
PyTorch. NAMEs select scenarios (tests/programs/torch/scenarios.py), --short those that every run of
the tests includes. Prints a table; the exit code is 1 if anything differs.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "recording"), str(HERE.parents[1] / "programs" / "torch")]
import agreement  # noqa: E402
import exports  # noqa: E402
import frames  # noqa: E402
import reported  # noqa: E402
import verbs  # noqa: E402
from driver_memory import Difference  # noqa: E402
from replay import Replay  # noqa: E402
from rig import Recording, Rig, check_schemas, find_python  # noqa: E402
from scenarios import SCENARIOS as ALL  # noqa: E402

# Without blocks there is nothing to compare: processes_check.py.
SCENARIOS = [scenario for scenario in ALL if scenario.caching]
PROGRAMS = HERE.parents[1] / "programs" / "torch"
STACKS_THAT_AGREE = 0.999
COLUMNS = (
    "processes moments events blocks segments sums order stacks explained other exported".split()
)


class Scene:
    """A scenario that has run: its recordings, and what PyTorch reported."""

    def __init__(self, rig, folder, scenario, history="python"):
        self.rig, self.folder, self.scenario = rig, folder, scenario
        for name in ("sessions", "moments"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        environment = scenario.environment_for(rig.build)
        environment["GMT_MOMENTS"] = str(folder / "moments")
        if history != "none":
            environment["GMT_HISTORY"] = history
        options = ("--quiet", "--exit-wait", "100s")  # all names, however busy the machine is
        self.recording = rig.run(folder, scenario.command(rig.python), options, **environment)
        done = self.recording.done  # the last lines of several ranks may be joined
        assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
        self.reported = reported.read(folder / "moments")

    def files(self):
        """Returns process id -> its recording."""
        files = {}
        for path in sorted(self.folder.glob("*.gmt")):
            recording = Recording(self.rig, self.folder, self.recording.done)
            recording.path = path
            files[recording.info()["target"]["pid"]] = recording
        return files


def compare_process(said_of, recording, row):
    recording.check_whole()
    replay = Replay(recording.events())
    blocks, segments = agreement.compare_moments(said_of, replay)
    row["moments"] += len(said_of)
    row["events"] += len(replay.lines)
    row["blocks"] += blocks
    row["segments"] += segments
    row["sums"] += replay.sums_compared
    row["order"] += agreement.compare_order(said_of, replay)
    stacks = frames.compare_stacks(said_of, replay)
    row["stacks"] += stacks.compared
    row["explained"] += stacks.explained
    row["other"] += stacks.differing
    print(*stacks.in_words(), sep="\n", end="\n" if stacks.examples else "")
    stacks.require(STACKS_THAT_AGREE)
    verbs.compare(recording, replay)
    row["exported"] += exports.compare(recording, said_of, replay)


def compare_scene(scene):
    """Returns the row of the table."""
    row = dict.fromkeys(COLUMNS, 0)
    files = scene.files()
    agreement.same_lists(
        "processes", [(pid,) for pid in scene.reported], [(pid,) for pid in files], lambda p: str(p[0])
    )
    if len(scene.reported) != scene.scenario.ranks:
        raise Difference(f"{len(scene.reported)} processes, {scene.scenario.ranks} expected")
    for pid, moments in scene.reported.items():
        row["processes"] += 1
        compare_process(moments, files[pid], row)
    return row


def check(rig, scenarios, history):
    failed = 0
    width = max(len(s.name) for s in scenarios) + 2
    print("scenario".ljust(width), *(c.rjust(9) for c in COLUMNS), "  seconds")
    for scenario in scenarios:
        missing = scenario.missing()
        if missing:
            print(scenario.name.ljust(width), f"skipped: {missing}", flush=True)
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-oracle.") as folder:
            try:
                row = compare_scene(Scene(rig, pathlib.Path(folder), scenario, history))
                check_schemas(rig, pathlib.Path(folder))
                print(
                    scenario.name.ljust(width),
                    *(str(row[c]).rjust(9) for c in COLUMNS),
                    f"{time.monotonic() - started:9.1f}",
                    flush=True,
                )
            except (Difference, AssertionError, subprocess.SubprocessError) as difference:
                failed += 1
                print(scenario.name.ljust(width), f"DIFFERS\n  {difference}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--history", choices=("python", "all", "none"), default="python")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    python = find_python(args.python)
    if python is None:
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
    unknown = set(args.names) - {s.name for s in SCENARIOS}
    if unknown:
        sys.exit(f"no such scenario: {', '.join(sorted(unknown))}")
    chosen = [
        s
        for s in SCENARIOS
        if (not args.names or s.name in args.names) and (s.short or not args.short)
    ]
    failed = check(Rig(args.build.resolve(), python), chosen, args.history)
    print(f"{len(chosen) - failed} scenarios agree, {failed} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
