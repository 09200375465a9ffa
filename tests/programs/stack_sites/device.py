"""How a site allocates: by ctypes, from the runtime that the process has, a size of its own each.

$STACK_SITES_GIL=held makes the call with the GIL.
"""

import ctypes
import os
import sys

from notes import note, size_of

_held = os.environ.get("STACK_SITES_GIL") == "held"
_malloc = (ctypes.PyDLL if _held else ctypes.CDLL)(None).cudaMalloc


def take(site):
    pointer = ctypes.c_void_p()
    note(site, sys._getframe())
    if _malloc(ctypes.byref(pointer), ctypes.c_size_t(size_of(site))) != 0:  # @take
        raise MemoryError(site)
    return pointer.value
