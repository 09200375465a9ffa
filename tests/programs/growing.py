"""A program that keeps one allocation of a mebibyte every few milliseconds, for checks that look at a
process while it runs: what it holds is told by its own count.

Usage: growing.py LIBRARY SECONDS [BYTES]
  LIBRARY  the CUDA runtime's path
Prints "N" for each allocation that it has made, when it has made it.
"""

import ctypes
import sys
import time

runtime = ctypes.CDLL(sys.argv[1])
runtime.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]


def grow(size):
    pointer = ctypes.c_void_p()
    code = runtime.cudaMalloc(ctypes.byref(pointer), size)
    assert code == 0, code


def main():
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 20
    end = time.monotonic() + float(sys.argv[2])
    count = 0
    while time.monotonic() < end:
        grow(size)
        count += 1
        print(count, flush=True)
        time.sleep(0.02)


main()
