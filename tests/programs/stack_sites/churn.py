"""Defines functions with exec, calls each once to allocate, and drops it, so that addresses of code
objects are reused with other names, files and lines.

Usage: churn.py COUNT NAMES

Function n is named made_M, M = n % NAMES, in the file <churn N>, N = n % (NAMES - 1), and allocates
4096 + 16 n bytes on its line 2 + M % 7.
"""

import ctypes
import json
import sys

runtime = ctypes.CDLL(None)


def take(size):
    pointer = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) != 0:
        raise MemoryError(size)
    runtime.cudaFree(pointer)


def main():
    count, names = map(int, sys.argv[1:])
    addresses = set()
    for n in range(count):
        name = f"made_{n % names}"
        empty_lines = "\n" * (n % names % 7)
        # A fixed number of digits, because columns are part of a code object.
        source = f"def {name}(take):\n{empty_lines}    take({4096 + 16 * n:#010x})\n"
        scope = {}
        exec(compile(source, f"<churn {n % (names - 1)}>", "exec"), scope)
        addresses.add(id(scope[name].__code__))
        scope[name](take)
        scope.clear()  # drops the function
    print(json.dumps({"functions": count, "addresses": len(addresses)}))


main()
