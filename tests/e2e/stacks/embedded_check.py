#!/usr/bin/env python3
"""Records a C++ program that embeds Python twice in succession, and compares every stack.

Usage: embedded_check.py --build DIR [--all] [--python PATH]... [--notes-only]

Uses the interpreters of sites_check.py that have a shared library. It is opened both with
RTLD_LOCAL and with RTLD_GLOBAL.
"""

import pathlib
import subprocess
import sys
import tempfile

import sites_check
from comparison import Comparison
from expectations import PROGRAMS, Expectations, size_of

FIND_LIBRARY = """
import glob, os, sys, sysconfig
version = sysconfig.get_config_var("LDVERSION")
real = os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))
# A launcher script is not in the folder of its library.
folders = [f"{p}/{sub}" for p in (real, sys.base_prefix) for sub in ("lib", ".")]
folders += ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
for folder in folders:
    path = os.path.realpath(f"{folder}/libpython{version}.so.1.0")
    if os.path.exists(path):
        print(path, sys.base_prefix)
        break
"""


def libraries(arguments):
    """Yields (name, version, library, its home) of each library once."""
    seen = set()
    for python in sites_check.interpreters(arguments):
        done = subprocess.run(
            [python.path, "-c", FIND_LIBRARY], stdout=subprocess.PIPE, text=True, check=True
        )
        library, _, home = done.stdout.strip().partition(" ")
        if library and library not in seen:
            seen.add(library)
            yield python.name, python.version, library, home


def check(rig, name, version, library, home, scope, record):
    expectations = Expectations([PROGRAMS / "embedded.py", PROGRAMS / "embedded.cc"], version)
    program = rig.build / "tests" / "stack_sites" / "embedded"
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
        run = sites_check.Run(
            rig,
            pathlib.Path(folder),
            [program, library, scope, PROGRAMS / "embedded.py"],
            record,
            PYTHONHOME=home,
            PYTHONPATH=str(PROGRAMS),
            PYTHONDONTWRITEBYTECODE="1",
        )
        for site in expectations.sites.values():
            if site.suffix == ".cc":  # no Python can be asked there
                run.notes.append({"site": site.name, "size": size_of(site.name), "frames": []})
        title = f"{name}, RTLD_{scope.upper()}"
        return sites_check.report(title, Comparison(expectations), run, record)


def main():
    arguments = sites_check.options(__doc__).parse_args()
    rig = sites_check.rigs.Rig(arguments.build.resolve(), sys.executable)
    results = [
        check(rig, *library, scope, not arguments.notes_only)
        for library in libraries(arguments)
        for scope in ("local", "global")
    ]
    if not results:
        print("No interpreter here has a shared library (Debian: libpython3-dev).")
    sites_check.end(results)


if __name__ == "__main__":
    main()
