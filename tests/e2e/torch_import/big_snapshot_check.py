#!/usr/bin/env python3
"""big_snapshot_check.py --build BUILD [--bytes N]: importing a 1 GB snapshot needs at most 3 times
its size in memory.

The snapshot is of a training loop, in PyTorch's format (interop/big_snapshot.cc). The speed is
printed; that by processor time does not depend on other work on the machine.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

MAX_MEMORY = 3.0  # times the file


def measure(command):
    """Returns seconds, seconds of processor time, peak bytes of memory."""
    start = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{command} failed")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, out = f"{folder}/big.pickle", f"{folder}/big.gmt"
        made = subprocess.run([arguments.build / "benchmark" / "big_snapshot", str(arguments.bytes), path], check=True,
                              capture_output=True, text=True)
        size = os.path.getsize(path)
        seconds, processor, memory = measure([str(arguments.build / "bin" / "gpumemtrace"), "import", path, "-o", out])
        rate, times = size / processor, memory / size
        print(json.dumps(json.loads(made.stdout) | {
            "seconds": round(seconds, 2), "processor_seconds": round(processor, 2), "MB_per_second": round(rate / 1e6, 1),
            "peak_bytes": memory, "times_its_size": round(times, 2), "recording_bytes": os.path.getsize(out)}))
    sys.exit(0 if times <= MAX_MEMORY else 1)


if __name__ == "__main__":
    main()
