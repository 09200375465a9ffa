"""Frees stream-ordered memory and then proves in various ways that the device has completed the free.

Usage: stream_life.py [PROGRAM]
  PROGRAM  a Python file with calls of this module's functions, which is run instead of main()
Prints for each piece its size, `freed` (the begin and end of the free) and `proved` (the begin and end
of the call that proves that its stream has completed, or null if no call does), in nanoseconds of
CLOCK_MONOTONIC.
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
    """Allocates a piece of a unique size and frees it, both on the stream."""
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
    """Runs a PROGRAM. In `streams`, 0 is the legacy default stream, 1 and 2 are blocking streams,
    3 and 4 non-blocking ones."""
    first = ctypes.c_void_p()
    call("cudaMalloc", ctypes.byref(first), ctypes.c_size_t(1 << 20))
    streams = [None, stream(0), stream(0), stream(NON_BLOCKING), stream(NON_BLOCKING)]
    names = {**globals(), "streams": streams, "events": [event() for _ in range(6)]}
    with open(program) as text:
        exec(compile(text.read(), program, "exec"), names)


def main():
    first = ctypes.c_void_p()
    call("cudaMalloc", ctypes.byref(first), ctypes.c_size_t(1 << 20))  # the recording begins
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
