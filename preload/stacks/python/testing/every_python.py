#!/usr/bin/env python3
"""Runs oracle_check.py in several interpreters: those of `scripts/pythons --list`, or the ones given.

Usage: every_python.py [--all] python_oracle.so [PYTHON...]
  --all  also those that only `scripts/pythons --all` fetches, if present
"""

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]


def known(every):
    """Returns (name, program) of the available interpreters."""
    words = ["--all"] if every else []
    listed = subprocess.run([ROOT / "scripts" / "pythons", *words, "--list"], stdout=subprocess.PIPE, text=True)
    return [line.split(None, 1) for line in listed.stdout.splitlines()] or [("this", sys.executable)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("oracle")
    parser.add_argument("python", nargs="*")
    args = parser.parse_args()

    failed = []
    for name, program in [(p, p) for p in args.python] or known(args.all):
        command = [program, "-B", HERE / "oracle_check.py", args.oracle]
        # Only a guard against hanging; no result depends on timing.
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
        print(f"{name}:", done.stdout.strip().replace("\n", "\n  "), flush=True)
        if done.returncode != 0 or " passed, 0 failed" not in done.stdout:
            print(f"  exit code {done.returncode}; alone: {' '.join(map(str, command))}")
            failed.append(name)
    print("all agree" if not failed else f"FAILED in {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
