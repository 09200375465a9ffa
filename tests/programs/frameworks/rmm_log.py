"""Allocates memory through RMM, whose logging adaptor writes a log.

Usage: rmm_log.py LOG [--kill]

RMM's CUDA runtime is linked into it and cannot use the simulated device (docs/frameworks.md).
Therefore a callback allocates, by the simulated runtime, and the number of the device is answered
here; the adaptors and the log are RMM's. RMM inserts the device into the name of the log. Prints one
JSON line: {"log", "peak_bytes", "failed_bytes"}, as RMM counts them. With --kill, the process then
kills itself, and the end of the log is lost.
"""

import argparse
import ctypes
import json
import os
import random
import signal
import threading

import rmm
import rmm.pylibrmm.memory_resource._memory_resource as memory_resource

TOO_MUCH = 1 << 44
cudart = ctypes.CDLL("libcudart.so.13")


def allocate(size, stream):
    address = ctypes.c_void_p()
    result = cudart.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
    if result != 0:
        raise MemoryError(f"cudaMalloc returns {result}")
    return address.value


def free(address, size, stream):
    cudart.cudaFree(ctypes.c_void_p(address))


def use(resource, seed, calls):
    """Leaves some memory allocated."""
    random_of_thread = random.Random(seed)
    held = []
    for _ in range(calls):
        if held and random_of_thread.random() < 0.45:
            resource.deallocate(*held.pop(random_of_thread.randrange(len(held))))
        else:
            size = random_of_thread.randrange(1, 1 << 20)
            held.append((resource.allocate(size), size))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log")
    parser.add_argument("--kill", action="store_true")
    args = parser.parse_args()
    memory_resource.getDevice = lambda: 0
    counting = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CallbackMemoryResource(allocate, free))
    logging = rmm.mr.LoggingResourceAdaptor(counting, log_file_name=args.log)

    use(logging, 1, 200)
    # One after the other, so that the order of events is known.
    other = threading.Thread(target=use, args=(logging, 2, 100))
    other.start()
    other.join()
    try:
        logging.allocate(TOO_MUCH)
    except MemoryError:
        pass
    if not args.kill:
        logging.flush()
    print(
        json.dumps(
            {
                "log": logging.get_file_name(),
                "peak_bytes": counting.allocation_counts.peak_bytes,
                "failed_bytes": TOO_MUCH,
            }
        ),
        flush=True,
    )
    if args.kill:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
