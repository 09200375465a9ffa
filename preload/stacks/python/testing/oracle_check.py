#!/usr/bin/env python3
"""Compares the walk of this interpreter's frames with what the interpreter reports, in every known way of calling.

Runs in the interpreter that is to be checked (3.8 and later).

Usage: oracle_check.py python_oracle.so
"""

import asyncio
import atexit
import os
import sys

import calls
import circumstances
import code_objects
import oracle
import random_programs
from oracle import FREE_THREADED, GIL, NO_GIL, check_all, expect, failed


def main():
    NO_GIL.lib.oracle_find()
    check_all("first walk")
    expect("status", NO_GIL.lib.oracle_status(), b"on")
    expect("comparison", GIL.lib.oracle_compare(), 1)
    calls.calls()
    calls.temporaries()
    calls.exceptions()
    calls.native_callbacks()
    asyncio.run(calls.tasks())
    asyncio.run(calls.coroutine(3))
    code_objects.made_code()
    random_programs.run()
    circumstances.deep()
    circumstances.threads()
    circumstances.watched()
    circumstances.signals()
    circumstances.interrupted()
    circumstances.profiled()
    circumstances.interpreters()
    circumstances.in_child("fork child", lambda: (check_all("fork child"), circumstances.threads()))
    reused = code_objects.churn()
    circumstances.undisturbed()
    circumstances.wrong_layouts()
    expect("status at the end", NO_GIL.lib.oracle_status(), b"on")
    print(f"{sys.version.split()[0]}{'t' if FREE_THREADED else ''}: {reused} addresses reused, "
          + ", ".join(f"{compared} known {what} compared ({left} not known)"
                      for what, (compared, left) in oracle.known.items()))
    expect_most_are_known()


def expect_most_are_known():
    """Up to 3.10 each Python frame belongs to a native one, so that no stack with both is known."""
    for what, (compared, left) in oracle.known.items():
        if oracle.MINOR >= 11 or what == "Python stacks":
            oracle.note(f"known {what}", None if compared > 10 * left else f"{compared}, and {left} not known")


def report():
    check_all("atexit")
    for line in failed[:20]:
        print("FAILED", line)
    print(f"{oracle.passed} passed, {len(failed)} failed", flush=True)
    if failed:
        os._exit(1)


class AtTeardown:
    """Is destroyed with its module."""

    def __del__(self):
        if failed is None:  # the module's names may go first
            return
        before = len(failed)
        check_all("module teardown")
        if len(failed) != before:
            os.write(1, f"FAILED {failed[-1]}\n".encode())
            os._exit(1)


kept = AtTeardown()
atexit.register(report)
main()
