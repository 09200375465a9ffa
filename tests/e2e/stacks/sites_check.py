#!/usr/bin/env python3
"""Records a Python program with many known sites on several interpreters and compares every stack.

Usage: sites_check.py --build DIR [--all] [--python PATH]... [--notes-only]

Each site states its stack in the program's source (tests/programs/stack_sites/sites.py). The
program runs twice: its calls keep or release the GIL. Interpreters: those that scripts/pythons
has fetched; with --all, those of scripts/pythons --all; with --python, only the given ones.
--notes-only compares the comments with what the interpreters report, and records nothing.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as rigs  # noqa: E402
from comparison import Comparison  # noqa: E402
from expectations import PROGRAMS, Expectations  # noqa: E402
from recorded import WITH_ALL_NAMES, stacks_by_size  # noqa: E402

OTHER_PROGRAMS = ("churn.py", "embedded.py", "greenlets.py", "interrupted.py", "torch_sites.py")

Interpreter = collections.namedtuple("Interpreter", "name path version")


def interpreters(arguments):
    """Yields the requested interpreters; one that does not start is an error."""
    if arguments.python:
        named = [(pathlib.Path(p).name, p) for p in arguments.python]
    else:
        command = [rigs.ROOT / "scripts" / "pythons", "--list", *(["--all"] * arguments.all)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        named = [line.split(" ", 1) for line in done.stdout.splitlines()]
    ask = "import sys; print(*sys.version_info[:2])"
    for name, path in named:
        words = subprocess.run([path, "-c", ask], stdout=subprocess.PIPE, text=True, check=True)
        yield Interpreter(name, path, tuple(map(int, words.stdout.split())))


class Run:
    """What a run of the program noted, and the stacks recorded of it, by the size allocated."""

    def __init__(self, rig, folder, command, record, **environment):
        (folder / "sessions").mkdir(mode=0o700)
        environment["STACK_SITES_NOTES"] = str(folder / "notes")
        if record:
            recording = rig.run(folder, command, WITH_ALL_NAMES, **environment)
            done = recording.done
        else:
            done = subprocess.run(
                rig.simulated(command),
                env=rig.environment(folder, environment),
                capture_output=True,
                text=True,
            )
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-3000:]}"
        self.notes = [json.loads(line) for line in open(folder / "notes")]
        files = sorted(folder.glob("run*.gmt"))
        self.stacks = stacks_by_size(recording, *files) if record else {}


def wrong_sites(comparison, run, record):
    """Yields (site, its differences) of each site that is not right."""
    expectations, notes = comparison.expectations, {}
    for note in run.notes:
        assert note["site"] not in notes, f"{note['site']} was reached twice"
        notes[note["site"]] = note
    assert len({note["size"] for note in run.notes}) == len(notes), "two sites have the same size"
    for name in notes:
        assert name in expectations.sites, f"no comment states the stack of {name}"
    for site in expectations.sites.values():
        note = notes.get(site.name)
        if note is None:
            yield site, ["it was not reached"]
            continue
        differences = comparison.differences_of_note(site, note)
        if record:
            stacks = run.stacks[note["size"]]
            if len(stacks) != 1:
                differences.append(f"{len(stacks)} allocations were recorded instead of one")
            for stack in stacks:
                differences += comparison.differences(site, note, stack)
        if differences:
            yield site, differences


def files():
    """Returns the files whose comments state the stacks."""
    programs = [p for p in PROGRAMS.glob("*.py") if p.name not in OTHER_PROGRAMS]
    return [*sorted(programs), PROGRAMS / "extension.cc"]


def run_sites(rig, folder, python, gil, record):
    return Run(
        rig,
        folder,
        [python, "-B", "-X", "utf8", PROGRAMS / "sites.py"],
        record,
        STACK_SITES_GIL=gil,
        STACK_SITES_EXTENSION=str(rig.build / "tests" / "stack_sites" / "extension.abi3.so"),
    )


def report(name, comparison, run, record):
    """Prints how many sites are right, and what is wrong with the others. Returns whether all are
    right."""
    sites, wrong = len(comparison.expectations.sites), list(wrong_sites(comparison, run, record))
    print(f"{name}: {sites} sites, {sites - len(wrong)} right", flush=True)
    for site, differences in wrong:
        for text in differences:
            print(f"  {site.name} ({site.where}): {text}")
    return not wrong


def check(rig, python, gil, record):
    """Returns whether all sites are right with one interpreter."""
    expectations = Expectations(files(), python.version, [gil])
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
        run = run_sites(rig, pathlib.Path(folder), python.path, gil, record)
        return report(f"{python.name}, GIL {gil}", Comparison(expectations), run, record)


def options(documentation):
    parser = argparse.ArgumentParser(description=documentation.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", action="append")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--notes-only", action="store_true")
    return parser


def end(results):
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(not results or not all(results))


def main():
    arguments = options(__doc__).parse_args()
    rig = rigs.Rig(arguments.build.resolve(), sys.executable)
    end(
        [
            check(rig, python, gil, not arguments.notes_only)
            for python in interpreters(arguments)
            for gil in ("released", "held")
        ]
    )


if __name__ == "__main__":
    main()
