"""A Python program that calls the runtime through ctypes.

Usage: by_ctypes.py [--process]
  --process  uses the libraries already in the process instead of opening libcudart.so.13
Prints its calls in the format of tests/programs/truth_log.h.
"""

import ctypes
import json
import sys


def main():
    library = ctypes.CDLL(None if "--process" in sys.argv else "libcudart.so.13")
    calls = []

    def call(name, *arguments, expected=0):
        result = getattr(library, name)(*arguments)
        calls.append({"api": name, "result": result})
        if result != expected:
            sys.exit(f"{name}: {result} instead of {expected}")

    first, second, none = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cudaMalloc", ctypes.byref(first), ctypes.c_size_t(1000003))
    if hasattr(ctypes.CDLL(None), "AtMoment"):  # tests/programs/linkage/starter.cc
        ctypes.CDLL(None).AtMoment()
    call("cudaMallocAsync", ctypes.byref(second), ctypes.c_size_t(70001), ctypes.c_void_p())
    call("cudaMalloc", ctypes.byref(none), ctypes.c_size_t(1 << 50), expected=2)
    call("cudaFree", first)
    call("cudaFreeAsync", second, ctypes.c_void_p())
    print(json.dumps({"calls": calls}))


if __name__ == "__main__":
    main()
