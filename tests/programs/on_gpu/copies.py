"""Makes copies and fills of known sizes through the runtime, for comparison with CUPTI's records.

Usage: copies.py
Prints one JSON line: {action: [bytes of each]}.
"""

import collections
import ctypes
import json
import sys
import time

TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
NAMES = {TO_DEVICE: "host_to_device", TO_HOST: "device_to_host", ON_DEVICE: "device_to_device"}
MIB = 1 << 20


def main():
    runtime = ctypes.CDLL("libcudart.so.13")
    made = collections.defaultdict(list)

    def call(name, *arguments):
        result = getattr(runtime, name)(*arguments)
        if result:
            sys.exit(f"{name}: {result}")

    first, second, pinned, stream = (ctypes.c_void_p() for _ in range(4))
    for pointer in (first, second):
        call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(16 * MIB))
    call("cudaHostAlloc", ctypes.byref(pinned), ctypes.c_size_t(16 * MIB), 0)
    call("cudaStreamCreate", ctypes.byref(stream))
    for kind, sizes in ((TO_DEVICE, (MIB, 3 * MIB, 500_009)), (TO_HOST, (2 * MIB, 700_001)), (ON_DEVICE, (5 * MIB,))):
        for size in sizes:
            target = pinned if kind == TO_HOST else first
            source = pinned if kind == TO_DEVICE else second
            call("cudaMemcpyAsync", target, source, ctypes.c_size_t(size), kind, stream)
            made[NAMES[kind]].append(size)
    for size in (4 * MIB, 900_007):
        call("cudaMemsetAsync", first, 0, ctypes.c_size_t(size), stream)
        made["memset"].append(size)
    call("cudaStreamSynchronize", stream)
    call("cudaDeviceSynchronize")
    time.sleep(1.5)  # CUPTI delivers records in buffers, some time after the copies
    call("cudaStreamDestroy", stream)
    call("cudaFree", second)
    call("cudaFree", first)
    call("cudaFreeHost", pinned)
    print(json.dumps(made))


if __name__ == "__main__":
    main()
