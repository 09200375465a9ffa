#!/usr/bin/env python3
"""Prints the cost of a CUPTI callback for a wait that no hook sees, as described in docs/cupti.md.

Usage: callback_cost.py --build DIR
The difference of two runs excludes the simulated device: one with a subscriber that does nothing, one with ours.
Nanoseconds are the best of nine rounds; instructions are from valgrind --tool=callgrind.
"""

import argparse
import os
import pathlib
import re
import subprocess
import tempfile

WAITS = 20000
RUNS = (
    ("no subscriber", None, ()),
    ("an empty subscriber", None, ("--empty",)),
    ("ours, no stacks", "stacks=none", ()),
    ("ours, native stacks", "stacks=native", ()),
)


def environment(build, folder, options):
    more = {"GPUMEMTRACE_DIR": str(folder / "sessions")}
    if options is not None:
        more["LD_PRELOAD"] = str(build / "lib" / "libgpumemtrace.so")
        more["GPUMEMTRACE"] = f"output={folder}/%p.gmt,quiet,{options}"
    return {**os.environ, **more}


def nanoseconds(program, env, arguments):
    done = subprocess.run(
        [program, str(WAITS), *arguments], env=env, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def instructions(program, env, arguments):
    """Returns instructions per wait; the difference of two run lengths excludes start-up."""
    counts = []
    for waits in (1000, 3000):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program]
        process = subprocess.Popen(
            [*command, str(waits), *arguments],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        output = process.communicate()[1]
        # Child processes report under pids of their own.
        counts.append(int(re.search(rf"=={process.pid}== Collected : (\d+)", output).group(1)))
    return (counts[1] - counts[0]) / (9 * 2000)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    program = str(build / "tests" / "programs" / "cupti_callback_cost")
    print("| a wait that no hook sees | ns | instructions |\n|---|---|---|")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-cost.") as folder:
        folder = pathlib.Path(folder)
        (folder / "sessions").mkdir(mode=0o700)
        for name, options, arguments in RUNS:
            env = environment(build, folder, options)
            ns = nanoseconds(program, env, arguments)
            print(f"| {name} | {ns} | {instructions(program, env, arguments):.0f} |")


if __name__ == "__main__":
    main()
