"""Measures the cost of starting late, in a process with PyTorch: prints the table of
docs/routes.md.

Usage: GPUMEMTRACE_LIBRARY=... with-simcuda python cost_of_start.py
"""

import ctypes
import pathlib
import sys
import time
import timeit

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))
import torch  # noqa: E402, F401

import gpumemtrace  # noqa: E402


def look_up():
    ctypes.CDLL("libm.so.6").cos  # noqa: B018


def microseconds():
    return min(timeit.repeat(look_up, number=500, repeat=9)) / 500 * 1e6


def main():
    modules = len({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
    before = microseconds()
    begun = time.perf_counter()
    output = gpumemtrace.start()
    took = time.perf_counter() - begun
    print(f"{modules} libraries; {output}")
    print("| | |\n|---|---|")
    print(f"| `start()` | {took * 1e3:.0f} ms |")
    print(f"| `dlopen` and `dlsym` of what is loaded, before | {before:.1f} µs |")
    print(f"| the same afterwards | {microseconds():.1f} µs |")


if __name__ == "__main__":
    main()
