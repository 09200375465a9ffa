"""A Python program that frees stream-ordered memory and then makes sure, in one way or another, that
the device is done with it.

Usage: stream_life.py [PROGRAM]
Prints, for each piece, its size, when it was freed and when the call began and ended that proves that
its stream is done: nanoseconds of CLOCK_MONOTONIC. `proved` is null where nothing does. PROGRAM: a
Python file of calls of this module that is run instead.
"""

import ctypes
import json
import sys
import time

NON_BLOCKING = 1
NOT_READY = 600
library = ctypes.CDLL("libcudart.so.13")
pieces = []


def call(name, *arguments, expected=(0,)):
    result = getattr(library, name)(*arguments)
    if result not in expected:
        sys.exit(f"{name}: {result}")


def stream(flags, priority=0):
    made = ctypes.c_void_p()
    call("cudaStreamCreateWithPriority", ctypes.byref(made), flags, priority)
    return made


def event():
    made = ctypes.c_void_p()
    call("cudaEventCreate", ctypes.byref(made))
    return made


def free_on(used, name):
    """Allocates a piece that has a size of its own and frees it, both on the stream."""
    size = (len(pieces) + 1) * 4096
    piece = ctypes.c_void_p()
    call("cudaMallocAsync", ctypes.byref(piece), ctypes.c_size_t(size), used)
    call("cudaMemsetAsync", piece, 0, ctypes.c_size_t(size), used)
    begin = time.monotonic_ns()
    call("cudaFreeAsync", piece, used)
    end = time.monotonic_ns()
    pieces.append({"name": name, "size": size, "freed": [begin, end], "proved": None})
    return pieces[-1]


def prove(piece, *what):
    begin = time.monotonic_ns()
    call(*what)
    piece["proved"] = [begin, time.monotonic_ns()]


def query(what, asked):
    call(what, asked, expected=(0, NOT_READY))


def run(program):
    """Streams: 0 is the legacy default stream, 1 and 2 are blocking, 3 and 4 are not."""
    first = ctypes.c_void_p()
    call("cudaMalloc", ctypes.byref(first), ctypes.c_size_t(1 << 20))
    streams = [None, stream(0), stream(0), stream(NON_BLOCKING), stream(NON_BLOCKING)]
    names = {**globals(), "streams": streams, "events": [event() for _ in range(6)]}
    with open(program) as text:
        exec(compile(text.read(), program, "exec"), names)


def main():
    first = ctypes.c_void_p()
    call("cudaMalloc", ctypes.byref(first), ctypes.c_size_t(1 << 20))  # from here on it is recorded
    blocking, plain, urgent = stream(0), stream(NON_BLOCKING), stream(NON_BLOCKING, -1)
    one, two = event(), event()

    piece = free_on(plain, "stream")
    prove(piece, "cudaStreamSynchronize", plain)

    piece = free_on(plain, "event")
    call("cudaEventRecord", one, plain)
    prove(piece, "cudaEventSynchronize", one)

    piece = free_on(plain, "query")
    call("cudaEventRecord", one, plain)
    prove(piece, "cudaEventQuery", one)

    piece = free_on(plain, "over another stream")
    call("cudaEventRecord", one, plain)
    call("cudaStreamWaitEvent", urgent, one, 0)
    call("cudaEventRecord", two, urgent)
    call("cudaEventRecord", one, urgent)  # recorded anew
    prove(piece, "cudaEventSynchronize", two)

    piece = free_on(blocking, "legacy stream")
    call("cudaEventRecord", one, None)
    prove(piece, "cudaEventSynchronize", one)

    piece = free_on(plain, "cudaFree")
    prove(piece, "cudaFree", first)

    piece = free_on(plain, "not by the legacy stream")
    call("cudaEventRecord", one, None)
    call("cudaEventSynchronize", one)
    call("cudaStreamSynchronize", urgent)
    prove(piece, "cudaDeviceSynchronize")

    piece = free_on(urgent, "destroyed stream")
    call("cudaStreamDestroy", urgent)
    prove(piece, "cudaDeviceSynchronize")

    free_on(plain, "nothing")


if __name__ == "__main__":
    run(sys.argv[1]) if len(sys.argv) > 1 else main()
    print(json.dumps({"pieces": pieces}))
