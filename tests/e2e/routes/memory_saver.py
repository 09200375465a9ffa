"""A program that uses torch_memory_saver: paused memory is given back to the GPU, and allocated
again at the same addresses when it is resumed.

Usage: memory_saver.py   (torch_memory_saver's library is preloaded)
Prints the address before and after.
"""

import torch
import torch_memory_saver

saver = torch_memory_saver.torch_memory_saver
outside = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
with saver.region():
    inside = torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
before = inside.data_ptr()
saver.pause()
saver.resume()
print(before == inside.data_ptr())
