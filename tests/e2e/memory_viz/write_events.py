"""The recordings that the readers are tried with, as event logs: raw CUDA, and PyTorch with both kinds of segments."""

import json

MIB = 1 << 20
BASE = 0x7F0000000000


class Log:
    def __init__(self):
        self.lines = []
        self.t_ns = 0
        self.header()

    def header(self):
        device = {"index": 0, "name": "Test GPU", "total_bytes": 1 << 34}
        self.lines.append({"kind": "header", "schema": "gpumemtrace.events/1",
                           "start_unix_ns": 1_700_000_000_000_000_000, "devices": [device]})

    def stack(self, stack_id, *functions):
        frames = [{"function": name, "file": f"/src/{name}.py", "line": 10 + i, "language": "python"}
                  for i, name in enumerate(functions)]
        self.lines.append({"kind": "stack", "id": stack_id, "frames": frames})

    def event(self, kind, **fields):
        self.t_ns += 1_000_000
        defaults = {"heap": "driver", "device": 0, "thread": 1}
        self.lines.append({"kind": kind, "t_ns": self.t_ns, **defaults, **fields})

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            for line in self.lines:
                out.write(json.dumps(line) + "\n")


def raw_cuda():
    """Plain allocations, some freed, pinned memory, mapped physical memory, a failed allocation."""
    log = Log()
    log.stack(1, "load_weights", "main")
    log.stack(2, "step", "train", "main")
    for i in range(40):
        log.event("alloc", memory="device", address=BASE + i * 64 * MIB, size=(i % 5 + 1) * MIB, stack=1 + i % 2,
                  stream=i % 3, api="cudaMalloc")
    for i in range(0, 40, 4):
        log.event("free", memory="device", address=BASE + i * 64 * MIB)
    log.event("alloc", heap="host", memory="pinned", address=0x5000, size=MIB, stack=1)
    log.event("create", memory="vmm", address=7, size=2 * MIB, stack=2)
    log.event("map", memory="vmm", address=BASE + (1 << 40), size=2 * MIB, handle=7)
    log.event("alloc_failed", memory="device", size=1 << 40, stack=2, result=2, api="cudaMalloc")
    return log


def pytorch():
    """Blocks in a cudaMalloc segment and in an expandable one, some freed."""
    log = Log()
    log.stack(1, "segment", "malloc")
    log.stack(2, "forward", "train", "main")
    log.stack(3, "backward", "train", "main")
    log.event("alloc", memory="device", address=BASE, size=20 * MIB, stack=1)
    expandable = BASE + (1 << 40)
    log.event("reserve", memory="vmm", address=expandable, size=1 << 30)
    for i in range(4):
        log.event("create", memory="vmm", address=7 + i, size=2 * MIB, stack=1)
        log.event("map", memory="vmm", address=expandable + i * 2 * MIB, size=2 * MIB, handle=7 + i)
    for i in range(10):
        log.event("alloc", heap="pytorch", memory="block", address=BASE + i * 2 * MIB, size=2 * MIB - 512 * i, stack=2)
    log.event("alloc", heap="pytorch", memory="block", address=expandable, size=5 * MIB, stack=3)
    for i in range(0, 10, 3):
        log.event("free", heap="pytorch", memory="block", address=BASE + i * 2 * MIB)
    return log


SCENARIOS = {"raw_cuda": raw_cuda, "pytorch": pytorch}

if __name__ == "__main__":
    import sys
    for name, scenario in SCENARIOS.items():
        scenario().write(f"{sys.argv[1]}/{name}.jsonl")
