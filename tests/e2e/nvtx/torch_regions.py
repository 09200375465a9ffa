"""A cache that manages one big tensor itself and registers its pieces with NVTX; then a line whose operators PyTorch
annotates with NVTX.  usage: torch_regions.py LIBRARY
"""

import ctypes
import sys

import torch

library = ctypes.CDLL(sys.argv[1])
library.RegisterRegion.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]

cache = torch.zeros(4 << 20, dtype=torch.uint8, device="cuda")
for page in range(3):
    start = cache.data_ptr() + page * (1 << 20)
    library.RegisterRegion(start, 1 << 20, f"page {page}".encode())

with torch.autograd.profiler.emit_nvtx():
    held = torch.ones(256, device="cuda") + 1
