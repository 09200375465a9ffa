"""Is interrupted by interrupter.cc at arbitrary points. Usage: interrupted.py LIBRARY ALLOCATIONS

A comment at each function lists its callers. In every recorded stack, each frame's caller must be one
of them. `called FUNCTION: FUNCTION@MARK or FUNCTION@MARK ...`, with the marks of sites.py.
"""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
# Looked up before the first interruption, because ctypes does this in its own frames, which no
# comment below states.
start, allocations, stop = library.Start, library.Allocations, library.Stop
DATA = bytes(range(256)) * 2000
SAME = bytearray(DATA)


def work(depth):  # called work: main@main_works or plain@plain or in_lambda.<locals>.<lambda>@inner
    # or in_map@map or in_generator.<locals>.<genexpr>@generator or Method.__len__@method
    if depth == 0:
        return leaf()  # @leaf
    return WAYS[depth % len(WAYS)](depth)  # @way


def leaf():  # called leaf: work@leaf
    total = 0
    for n in range(50):
        total += sum([n, n + 1], n)
    # Spends time in the C library rather than in the interpreter.
    return total + (DATA == SAME)


def plain(depth):  # called plain: work@way
    return work(depth - 1)  # @plain


def in_lambda(depth):  # called in_lambda: work@way
    # called in_lambda.<locals>.<lambda>: in_lambda@lambda
    inner = lambda: work(depth - 1)  # noqa: E731  @inner
    return inner()  # @lambda


def in_map(depth):  # called in_map: work@way
    return list(map(work, [depth - 1]))[0]  # @map


def in_generator(depth):  # called in_generator: work@way
    # called in_generator.<locals>.<genexpr>: in_generator@generator
    return sum(work(depth - 1) for _ in (0,))  # @generator


class Method:
    def __init__(self, depth):  # called Method.__init__: in_method@init
        self.depth = depth

    def __len__(self):  # called Method.__len__: in_method@len
        return work(self.depth - 1) % 1000  # @method


def in_method(depth):  # called in_method: work@way
    method = Method(depth)  # @init
    return len(method)  # @len


WAYS = (plain, in_lambda, in_map, in_generator, in_method)


def main():  # called main: <module>@module
    wanted = int(sys.argv[2])
    start(ctypes.c_long(700))
    depth = 0
    while allocations() < wanted:
        depth = (depth + 1) % 12
        work(depth)  # @main_works
    stop()


if __name__ == "__main__":
    main()  # @module
