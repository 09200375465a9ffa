"""The recordings for testing the readers, as event logs: everything that memory_viz can show, one scenario each."""

import json

MIB = 1 << 20
BASE = 0x7F0000000000
EXPANDABLE = BASE + (1 << 40)
SIDE_STREAM = 0x5510


class Log:
    def __init__(self, devices=1):
        self.lines = []
        self.t_ns = 0
        self.header(devices)

    def header(self, devices):
        described = [{"index": i, "name": "Test GPU", "total_bytes": 1 << 34} for i in range(devices)]
        self.lines.append({"kind": "header", "schema": "gpumemtrace.events/1",
                           "start_unix_ns": 1_700_000_000_000_000_000, "devices": described,
                           "settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,backend:native"}})

    def stack(self, stack_id, *functions):
        frames = [{"function": name, "file": f"/src/{name}.py", "line": 10 + i, "language": "python"}
                  for i, name in enumerate(functions)]
        self.lines.append({"kind": "stack", "id": stack_id, "frames": frames})

    def event(self, kind, **fields):
        self.t_ns += 1_000_000
        defaults = {"heap": "driver", "device": 0, "thread": 1}
        self.lines.append({"kind": kind, "t_ns": self.t_ns, **defaults, **fields})

    def note(self, kind, **fields):
        self.t_ns += 1_000_000
        self.lines.append({"kind": kind, "t_ns": self.t_ns, "thread": 1, **fields})

    def segment(self, address, size, **fields):
        self.event("alloc", memory="device", address=address, size=size, stack=1, api="cudaMalloc", **fields)

    def block(self, address, size, **fields):
        self.event("alloc", heap="pytorch", memory="block", address=address, size=size, **fields)

    def free_block(self, address, **fields):
        self.event("free", heap="pytorch", memory="block", address=address, **fields)

    def map_pages(self, first, count):
        for i in range(first, first + count):
            self.event("create", memory="vmm", address=7 + i, size=2 * MIB, stack=1)
        for i in range(first, first + count):
            self.event("map", memory="vmm", address=EXPANDABLE + i * 2 * MIB, size=2 * MIB, handle=7 + i, stack=1)

    def unmap_pages(self, first, count):
        for i in range(first, first + count):
            self.event("unmap", memory="vmm", address=EXPANDABLE + i * 2 * MIB, size=2 * MIB)
            self.event("release", memory="vmm", address=7 + i)

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            for line in self.lines:
                out.write(json.dumps(line) + "\n")


def torch_log(devices=1):
    log = Log(devices)
    log.stack(1, "segment", "malloc")
    log.stack(2, "forward", "train", "main")
    log.stack(3, "backward", "train", "main")
    return log


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
    log.event("map", memory="vmm", address=EXPANDABLE, size=2 * MIB, handle=7)
    log.event("alloc_failed", memory="device", size=1 << 40, stack=2, result=2, api="cudaMalloc")
    return log


def pytorch():
    """Blocks in a cudaMalloc segment and in an expandable one, some freed."""
    log = torch_log()
    log.segment(BASE, 20 * MIB)
    log.event("reserve", memory="vmm", address=EXPANDABLE, size=1 << 30)
    log.map_pages(0, 4)
    for i in range(10):
        log.block(BASE + i * 2 * MIB, 2 * MIB - 512 * i, stack=2)
    log.block(EXPANDABLE, 5 * MIB, stack=3)
    for i in range(0, 10, 3):
        log.free_block(BASE + i * 2 * MIB)
    return log


def expandable():
    """An expandable segment that grows, loses a page in its middle, and grows again; a second one on a side stream."""
    log = torch_log()
    log.map_pages(0, 4)
    log.block(EXPANDABLE, 2 * MIB, stack=2, stream=0)
    log.block(EXPANDABLE + 2 * MIB, 4 * MIB, stack=2, stream=0)
    log.block(EXPANDABLE + 6 * MIB, 2 * MIB, stack=3, stream=0)
    log.free_block(EXPANDABLE + 2 * MIB)
    log.unmap_pages(1, 2)
    log.map_pages(64, 2)
    log.block(EXPANDABLE + 128 * MIB, 3 * MIB, stack=3, stream=SIDE_STREAM)
    log.map_pages(1, 2)
    log.block(EXPANDABLE + 2 * MIB, 3 * MIB, stack=2, stream=0)
    return log


def pending():
    """Frees that wait for a side stream: one has completed, one is still pending at the end."""
    log = torch_log()
    log.segment(BASE, 20 * MIB)

    def wait_for(event, address):
        log.event("event_record", object=event, stream=SIDE_STREAM, flags=1, value=0x1234)
        log.free_block(address)

    for i in range(4):
        log.block(BASE + i * MIB, MIB, stack=2, stream=0)
    wait_for(0x71, BASE)
    log.block(BASE + 4 * MIB, MIB, stack=3, stream=0)
    wait_for(0x72, BASE + MIB)
    log.event("sync", object=0x71, action="event", flags=1)
    log.block(BASE, 512, stack=2, stream=0)
    log.free_block(BASE + 2 * MIB)
    return log


def out_of_memory():
    """The driver refuses twice, the allocator gives up; then the program continues with less memory."""
    log = torch_log()
    log.segment(BASE, 20 * MIB)
    log.block(BASE, 12 * MIB, stack=2)
    log.note("sample", device=0, used_bytes=(1 << 34) - 64 * MIB, total_bytes=1 << 34, source="cudaMemGetInfo")
    for _ in range(2):
        log.event("alloc_failed", memory="device", size=1 << 30, result=2, api="cudaMalloc")
    log.event("alloc_failed", heap="pytorch", memory="block", size=1 << 30, result=2, stack=2)
    log.note("snapshot", name="oom-1", reason="oom")
    log.block(BASE + 12 * MIB, MIB, stack=3)
    return log


def two_devices():
    """Blocks on GPU 0 and GPU 1."""
    log = torch_log(2)
    for device in range(2):
        log.segment(BASE + device * 64 * MIB, 20 * MIB, device=device)
    for i in range(12):
        device = i % 2
        log.block(BASE + device * 64 * MIB + i * MIB, MIB, stack=2, device=device)
    log.free_block(BASE, device=0)
    return log


def training():
    """Steps, a range, and a backward pass whose memory has the corresponding forward call."""
    log = torch_log()
    log.stack(4, "linear", "model", "main")
    log.segment(BASE, 20 * MIB)
    for step in range(3):
        log.note("mark", name="step", index=step)
        log.block(BASE, MIB, stack=2)
        log.note("range_begin", name="backward", range=step + 1)
        log.block(BASE + MIB, MIB, stack=3, forward_stack=4)
        log.note("range_end", name="backward", range=step + 1)
        log.free_block(BASE)
        log.free_block(BASE + MIB)
    log.block(BASE + MIB, MIB, stack=3, forward_stack=4)
    return log


def empty():
    """A program that allocated nothing."""
    return Log()


SCENARIOS = {"raw_cuda": raw_cuda, "pytorch": pytorch, "expandable": expandable, "pending": pending,
             "out_of_memory": out_of_memory, "two_devices": two_devices, "training": training, "empty": empty}

if __name__ == "__main__":
    import sys
    for name, scenario in SCENARIOS.items():
        scenario().write(f"{sys.argv[1]}/{name}.jsonl")
