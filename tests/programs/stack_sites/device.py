"""How a site allocates: by ctypes, from the runtime that the process has, a size of its own each.

Beside the allocation the interpreter's own view of the stack is noted, sys._getframe() outwards, as
a line of JSON in the file $STACK_SITES_NOTES. $STACK_SITES_GIL=held makes the call with the GIL.
"""

import ctypes
import json
import os
import sys

_held = os.environ.get("STACK_SITES_GIL") == "held"
_malloc = (ctypes.PyDLL if _held else ctypes.CDLL)(None).cudaMalloc
_notes = os.open(os.environ["STACK_SITES_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def size_of(site):
    """Between 1 and 2 MiB, another one for each name, the same in every process."""
    value = 0
    for letter in site:
        value = (value * 131 + ord(letter)) % 65521
    return (1 << 20) + 16 * value


def note(site, frame):
    """Notes the stack whose innermost frame is `frame`. Its own line is where it is now."""
    chain = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        chain.append((name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    line = {"site": site, "size": size_of(site), "pid": os.getpid(), "frames": chain}
    os.write(_notes, json.dumps(line).encode() + b"\n")


def take(site):
    pointer = ctypes.c_void_p()
    note(site, sys._getframe())
    if _malloc(ctypes.byref(pointer), ctypes.c_size_t(size_of(site))) != 0:  # @take
        raise MemoryError(site)
    return pointer.value
