#!/usr/bin/env python3
"""Measures walks of Python frames: ours, with the fingerprint of the code objects, and one by the public functions.

Both in one run, the best of many short ones. "more" is the cost per frame; the rest finds the thread's state.
 Usage: walk_benchmark.py python_oracle.so
"""

import ctypes
import sys

ORACLE = ctypes.PyDLL(sys.argv[1])
ORACLE.oracle_time.restype = ctypes.c_double
ORACLE.oracle_status.restype = ctypes.c_char_p
KINDS = ("own walk", "public functions")


def measure(depth):
    """Returns the best nanoseconds of each kind for a stack of that many frames."""
    if depth > 1:
        return measure(depth - 1)
    best = [float("inf")] * len(KINDS)
    for _ in range(40):
        for kind in range(len(KINDS)):
            best[kind] = min(best[kind], ORACLE.oracle_time(kind, 500))
    return best


def main():
    ORACLE.oracle_find()
    ORACLE.oracle_time(0, 1)
    if ORACLE.oracle_status() != b"on":
        sys.exit(ORACLE.oracle_status().decode())
    version = sys.version.split()[0]
    outer = 2  # this function, and the module
    print(f"{'Python ' + version:20}{'frames':>8}{'ns':>10}{'ns/frame':>10}{'ratio':>8}")
    results = {frames: measure(frames - outer) for frames in (20, 60)}
    for kind, name in enumerate(KINDS):
        for frames, best in results.items():
            print(f"{name:20}{frames:8}{best[kind]:10.1f}{best[kind] / frames:10.2f}{best[kind] / best[0]:8.2f}")
        slope = (results[60][kind] - results[20][kind]) / 40
        print(f"{name:20}{'more':>8}{'':10}{slope:10.2f}")


main()
