"""Allocates for a site: through ctypes, from the runtime in the process, a unique size per site.

With STACK_SITES_GIL=held in the environment, the call holds the GIL.
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
