#!/usr/bin/env python3
"""Runs every program of tests/programs with and without the profiler and compares what it did.

Usage: transparency_check.py --build DIR [--part plain|torch] [--python PYTHON] [NAME...]
NAME is a case as it is printed: a program with its arguments.

A program runs on the simulated device in three ways: alone (twice), preloaded, and under
`gpumemtrace run`. Output, exit code or signal, stderr except for the profiler's own lines, and the
files left in the working directory must be the same. What differs between the two runs alone (a
time, an address) is compared without its digits. A new program in tests/programs is tested without
arguments until CASES has some for it. The last line of the output is "N passed, N failed". """

import argparse
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import find_python  # noqa: E402
from waiting import wait_for  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "programs"

ENDS = ("return", "exit", "_exit", "abort", "segv", "kill", "term", "throw")
CASES = {
    "driver_alloc": [
        ["--threads", "3", "--count", "50", "--handover"],
        ["--async", "--leak", "2"],
        ["--host"],
        ["--unknown"],
    ],
    "observer": [[end] for end in ENDS],
    "every_call": [[], ["--leak"]],
    "frees": [[], ["--refused"]],
    "entry_point": [[], ["--by-version"]],
    "looked_up": [[], ["--default"], ["--version", "libcudart.so.13"]],
    "driver_only": [[way] for way in ("dlsym", "five", "four", "old", "runtime", "per_thread")],
    "plugin_host": [
        ["{programs}/libplugin_13.so"],
        ["--local", "{programs}/libplugin_13.so"],
        ["--deepbind", "{programs}/libplugin_13.so"],
        ["{programs}/libplugin_12.so", "{programs}/libplugin_13.so"],
    ],
    "plugin_host_fixed": [["{programs}/libplugin_address.so"]],
    "crowded": [["0.2", "{programs}/libplugin_12.so", "{programs}/libplugin_13.so"]],
    "train_mlp.py": [["--json"]],
    "train_gpt.py": [["--json"]],
    "oom.py": [["--catch", "--json"], []],
}
# Programs that cannot be compared in this way, and why.
EXEMPT = {
    "call_cost": "prints what calls cost, which is what recording changes",
    "no_driver": "its weak references find the profiler's functions; e2e/linkage checks what they return",
}


class Outcome:
    def __init__(self, done, files):
        self.code, self.files = done.returncode, files
        self.out, self.err = done.stdout.splitlines(), done.stderr.splitlines()


class Rig:
    def __init__(self, build, python):
        self.build, self.python = build, python
        self.program = str(build / "bin" / "gpumemtrace")
        self.library = subprocess.run(
            [self.program, "preload-path"], capture_output=True, text=True, check=True
        ).stdout.strip()

    def command(self, name, arguments):
        """Compiled programs find the simulated device by themselves; PyTorch needs with-simcuda."""
        built = self.build / "tests" / "programs"
        if name.endswith(".py"):
            led = str(self.build / "simcuda" / "with-simcuda")
            return [led, self.python, str(PROGRAMS / name), *arguments]
        assert (built / name).exists(), f"{built / name} was not built"
        return [str(built / name), *(word.format(programs=built) for word in arguments)]

    def run(self, folder, way, command, options=""):
        work, sessions = folder / "work", folder / "sessions"
        for made in (work, sessions):
            made.mkdir(mode=0o700, exist_ok=True)
        environment = {**os.environ, "GPUMEMTRACE_DIR": str(sessions), "SIMCUDA_MEMORY": "6G"}
        output = folder / "run.gmt"
        if way == "preload":
            environment |= {"LD_PRELOAD": self.library, "GPUMEMTRACE": f"output={output}{options}"}
        if way == "run":
            command = [self.program, "run", "--quiet", "-o", str(output), "--", *command]
        with open(os.devnull, "rb") as nothing:
            # A descriptor that the program did not open itself: it must neither vanish nor move.
            os.dup2(nothing.fileno(), 57)
            done = subprocess.run(
                command, env=environment, cwd=work, pass_fds=(57,), stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", timeout=300, check=False,
            )
            os.close(57)
        outcome = Outcome(done, sorted(p.name for p in work.iterdir()))
        outcome.recordings = list(folder.glob("run*.gmt"))
        wait_for_collectors(sessions)
        for made in [*work.iterdir(), *outcome.recordings]:
            made.unlink()
        return outcome


def wait_for_collectors(sessions):
    wait_for("the end of every collector", lambda: not list(sessions.glob("*.session")))


def without_digits(lines):
    return [re.sub(r"(0x)?[0-9a-f]*[0-9][0-9a-f.]*", "#", line) for line in lines]


def check_lines(what, alone, again, traced):
    """Checks lines on which two runs alone agree; of the others, everything except the digits."""
    if alone == again:
        pairs = [(alone, traced)]
    else:
        assert without_digits(alone) == without_digits(again), f"{what} differs between two runs alone"
        pairs = [(without_digits(alone), without_digits(traced))]
        if len(alone) == len(traced):
            pairs += [([a], [t]) for a, b, t in zip(alone, again, traced) if a == b]
    for want, have in pairs:
        for a, t in zip(want, have):
            assert a == t, f"{what}:\n  alone  {a}\n  traced {t}"
        lines = f"{len(want)} lines alone, {len(have)} traced"
        assert len(want) == len(have), f"{what}: {lines}: {have}"


def shell_code(code):
    return 128 - code if code < 0 else code


def check(rig, name, arguments):
    command = rig.command(name, arguments)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-transparency.") as place:
        folder = pathlib.Path(place)
        alone, again = (rig.run(folder, "alone", command) for _ in range(2))
        assert alone.code == again.code, (alone.code, again.code)
        for way in ("preload", "run"):
            traced = rig.run(folder, way, command)
            want = shell_code(alone.code) if way == "run" else alone.code
            assert traced.code == want, f"{way}: exit code {traced.code}, alone {want}"
            check_lines(f"{way}: stdout", alone.out, again.out, traced.out)
            own = [line for line in traced.err if not line.startswith("gpumemtrace: ")]
            check_lines(f"{way}: stderr", alone.err, again.err, own)
            assert traced.files == alone.files, f"{way}: {traced.files}, alone {alone.files}"
            reported = any(": recording " in line for line in traced.err)
            assert way == "run" or reported == bool(traced.recordings), traced.err
            if name == "observer":
                assert traced.recordings, "nothing was recorded, so nothing was tested"
    return alone.code


def check_that_it_notices(rig):
    """libunwind keeps a pipe open: with it, descriptors differ, and the check must notice."""
    command = rig.command("observer", ["return"])
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-transparency.") as place:
        folder = pathlib.Path(place)
        alone = rig.run(folder, "alone", command)
        traced = rig.run(folder, "preload", command, ",stacks=native:libunwind")
        try:
            check_lines("stdout", alone.out, alone.out, traced.out)
        except AssertionError as difference:
            assert '"descriptors"' in str(difference), difference
            return
        raise AssertionError("two additional descriptors were not noticed")


def has_libunwind():
    try:
        ctypes.CDLL("libunwind.so.8")
    except OSError:
        return False
    return True


def compiled_programs(build):
    """Returns the programs that have been built, and those that should have been."""
    built = {p.name for p in (build / "tests" / "programs").iterdir() if is_program(p)}
    return sorted((built | {source.stem for source in PROGRAMS.glob("*.cc")}) - set(EXEMPT))


def is_program(path):
    return path.is_file() and os.access(path, os.X_OK) and ".so" not in path.name


def cases_of(part, build):
    if part in (None, "plain"):
        for name in compiled_programs(build):
            for arguments in CASES.get(name, [[]]):
                yield name, arguments
    if part in (None, "torch"):
        for source in sorted(PROGRAMS.glob("*.py")):
            for arguments in CASES.get(source.name, [[]]):
                yield source.name, arguments


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=("plain", "torch"))
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    rig = Rig(args.build.resolve(), find_python(args.python))
    if rig.python is None and args.part != "plain":
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
    cases = [
        (" ".join([name, *arguments]), lambda n=name, a=arguments: check(rig, n, a))
        for name, arguments in cases_of(args.part, rig.build)
        if not args.names or " ".join([name, *arguments]) in args.names
    ]
    if args.part != "torch" and not args.names and has_libunwind():
        cases.append(("a difference is noticed", lambda: check_that_it_notices(rig)))
    passed = failed = 0
    for name, case in cases:
        try:
            code = case() or 0
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            passed += 1
            print(f"ok     {name} ({how})", flush=True)
        except Exception:  # noqa: BLE001  one failing case must not hide the others
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc(limit=1)}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
