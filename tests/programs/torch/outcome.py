"""Prints the last line of every program in this folder: one JSON object."""

import json
import os
import sys

import torch


def print_outcome(**more):
    """Prints PyTorch's counters of all devices, and `more`, as one line of JSON.

    With a pluggable allocator, which has no counters, there are no devices.
    """
    devices = []
    counts = torch.cuda.get_allocator_backend() != "pluggable"
    for device in range(torch.cuda.device_count() if counts else 0):
        stats = torch.cuda.memory_stats(device)
        devices.append(
            {
                "max_memory_allocated": torch.cuda.max_memory_allocated(device),
                "max_memory_reserved": torch.cuda.max_memory_reserved(device),
                **{
                    name: stats.get(name)
                    for name in (
                        "allocation.all.allocated",
                        "allocation.all.freed",
                        "num_alloc_retries",
                        "num_ooms",
                        "num_device_alloc",
                        "num_device_free",
                    )
                },
            }
        )
    sys.stdout.flush()
    # In one call, because ranks share the pipe, and print() may write the line end separately.
    os.write(sys.stdout.fileno(), f"{json.dumps({'devices': devices, **more})}\n".encode())
