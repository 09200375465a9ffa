"""Makes an allocation of 1 MiB (or BYTES) every few milliseconds and keeps all of them, for checks
that observe a running process.

Usage: growing.py LIBRARY SECONDS [BYTES]
  LIBRARY  the CUDA runtime's path
  SECONDS  how long; `input`: until standard input ends
Prints the number of allocations after each one.
"""

import ctypes
import select
import sys
import time

runtime = ctypes.CDLL(sys.argv[1])
runtime.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]


def grow(size):
    pointer = ctypes.c_void_p()
    code = runtime.cudaMalloc(ctypes.byref(pointer), size)
    assert code == 0, code


def is_over(end):
    if end == "input":
        return bool(select.select([sys.stdin], [], [], 0)[0])
    return time.monotonic() >= end


def main():
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 20
    end = sys.argv[2] if sys.argv[2] == "input" else time.monotonic() + float(sys.argv[2])
    count = 0
    while not is_over(end):
        grow(size)
        count += 1
        print(count, flush=True)
        time.sleep(0.02)


main()
