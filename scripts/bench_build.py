"""Measures the benefit of each build option: CPU time to build the tests of one directory and all their dependencies.

Usage: bench_build.py [VARIANT...]
Builds the target below in a separate directory for each variant, without ccache, and prints a table. The variants are those
of CONTRIBUTING.md, "Build times".
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "analysis_test"

ALONE = {"GMT_JOINED_UNITS": "OFF", "GMT_PRECOMPILED_HEADERS": "OFF", "GMT_TEST_OPTIMIZATION": "-O2"}
JOINED = {**ALONE, "GMT_JOINED_UNITS": "ON"}
DEV = {**JOINED, "GMT_PRECOMPILED_HEADERS": "ON", "GMT_TEST_OPTIMIZATION": "-O0"}
VARIANTS = {
    "alone": ("each source alone", ALONE),
    "precompiled": ("precompiled headers", {**ALONE, "GMT_PRECOMPILED_HEADERS": "ON"}),
    "joined": ("joined units", JOINED),
    "both": ("joined units, precompiled headers", {**JOINED, "GMT_PRECOMPILED_HEADERS": "ON"}),
    "dev": ("the same, and tests without optimisation: the preset `dev`", DEV),
    "o1": ("`dev`, everything else at -O1", {**DEV, "CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O1 -g1 -DNDEBUG"}),
    "gold": ("`dev`, linked by gold", {**DEV, "CMAKE_EXE_LINKER_FLAGS": "-fuse-ld=gold"}),
}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build(options, folder):
    """Returns the seconds of CPU time and of wall-clock time of a build."""
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    subprocess.run(["cmake", "--preset", "dev", "-B", folder, "--log-level=ERROR"]
                   + [f"-D{name}={value}" for name, value in options.items()],
                   cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    processor, clock = processor_seconds(), time.monotonic()
    done = subprocess.run(["cmake", "--build", folder, "--target", TARGET], cwd=ROOT, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(done.stdout[-5000:])
    return processor_seconds() - processor, time.monotonic() - clock


def main():
    names = sys.argv[1:] or list(VARIANTS)
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        sys.exit(f"bench_build.py: unknown variant {unknown[0]}; known: {', '.join(VARIANTS)}")
    print(f"| {TARGET} and its dependencies, on {os.cpu_count()} cores | CPU time | wall-clock time |\n|---|---|---|")
    for name in names:
        text, options = VARIANTS[name]
        with tempfile.TemporaryDirectory(prefix="bench-build-", dir=ROOT / "build") as folder:
            processor, clock = build(options, folder)
        print(f"| {text} | {processor:.0f} s | {clock:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
