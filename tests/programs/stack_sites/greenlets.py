"""Allocates in greenlets that are resumed from elsewhere. Usage: greenlets.py SEED

Prints the size and the functions of each allocation's stack, innermost first.
"""

import ctypes
import json
import random
import sys

import greenlet

malloc = ctypes.CDLL(None).cudaMalloc
chance = random.Random(int(sys.argv[1]))
main = greenlet.getcurrent()
noted = []


def take():
    functions, frame = [], sys._getframe()
    while frame is not None:
        functions.append(frame.f_code.co_name)
        frame = frame.f_back
    noted.append((4096 * (1 + len(noted)), functions))
    pointer = ctypes.c_void_p()
    if malloc(ctypes.byref(pointer), ctypes.c_size_t(noted[-1][0])) != 0:
        raise MemoryError


def job():
    while True:
        deeper(chance.randrange(5))


def deeper(levels):
    if chance.randrange(2):
        main.switch()
    take()
    if levels:
        list(map(deeper, [levels - 1]))


def resume(levels, one):
    """Switches to the greenlet `one` from a stack that differs each time."""
    if levels > 0 and levels % 2:
        return max([levels], key=lambda _: resume(levels - 1, one))
    if levels > 0:
        return resume(levels - 1, one)
    one.switch()
    if not chance.randrange(3):
        take()
    return 0


jobs = [greenlet.greenlet(job) for _ in range(5)]
for _ in range(200):
    resume(chance.randrange(8), chance.choice(jobs))
print(json.dumps(noted))
