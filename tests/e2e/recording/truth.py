"""The calls that reached the simulated device, as events of the event log.

The device logs each memory call while holding its own lock (tests/simcuda/README.md). A recording
must contain the same events, in the same order per address and per thread.
"""

import collections
import itertools
import json

# Driver call -> (kind of event, space of its value, kind of memory). Values are unique within a
# space: a free finds memory by (space, value).
ACQUIRES = {
    "cuMemAlloc_v2": ("alloc", "device", "device"),
    "cuMemAllocPitch_v2": ("alloc", "device", "device"),
    "cuMemAllocManaged": ("alloc", "device", "managed"),
    "cuMemAllocAsync": ("alloc", "device", "pool"),
    "cuMemAllocAsync_ptsz": ("alloc", "device", "pool"),
    "cuMemAllocFromPoolAsync": ("alloc", "device", "pool"),
    "cuMemAllocFromPoolAsync_ptsz": ("alloc", "device", "pool"),
    "cuMemPoolImportPointer": ("import", "device", "ipc"),
    "cuMemAllocHost": ("alloc", "host", "pinned"),
    "cuMemAllocHost_v2": ("alloc", "host", "pinned"),
    "cuMemHostAlloc": ("alloc", "host", "pinned"),
    "cuMemHostRegister": ("register", "host", "registered"),
    "cuMemHostRegister_v2": ("register", "host", "registered"),
    "cuArrayCreate_v2": ("alloc", "array", "array"),
    "cuArray3DCreate_v2": ("alloc", "array", "array"),
    "cuMipmappedArrayCreate": ("alloc", "array", "mipmapped"),
    "cuMemAddressReserve": ("reserve", "reservation", "vmm"),
    "cuMemCreate": ("create", "physical", "vmm"),
    "cuMemImportFromShareableHandle": ("import", "physical", "ipc"),
    "cuMulticastCreate": ("create", "physical", "multicast"),
    "cuMemMap": ("map", "mapping", "vmm"),
    "cuIpcOpenMemHandle": ("import", "ipc", "ipc"),
    "cuIpcOpenMemHandle_v2": ("import", "ipc", "ipc"),
    "cuImportExternalMemory": ("import", "external", "external"),
    "cuExternalMemoryGetMappedBuffer": ("map", "device", "external"),
    "cuExternalMemoryGetMappedMipmappedArray": ("map", "array", "external"),
    "cuGraphicsResourceGetMappedPointer_v2": ("map", "graphics", "graphics"),
    "cuGraphAddMemAllocNode": ("alloc", "device", "graph"),
}
RETURNS = {
    "cuMemFree_v2": ("free", "device"),
    "cuMemFreeAsync": ("free", "device"),
    "cuMemFreeAsync_ptsz": ("free", "device"),
    "cuMemFreeHost": ("free", "host"),
    "cuMemHostUnregister": ("unregister", "host"),
    "cuArrayDestroy": ("free", "array"),
    "cuMipmappedArrayDestroy": ("free", "array"),
    "cuMemAddressFree": ("unreserve", "reservation"),
    "cuMemRelease": ("release", "physical"),
    "cuMemUnmap": ("unmap", "mapping"),
    "cuIpcCloseMemHandle": ("unimport", "ipc"),
    "cuDestroyExternalMemory": ("unimport", "external"),
    "cuGraphicsUnmapResources": ("unmap", "graphics"),
    "cuGraphicsUnmapResources_ptsz": ("unmap", "graphics"),
    "cuGraphAddMemFreeNode": ("free", "device"),
}
# Calls that add any node to a graph: the log contains only memory nodes. Whether it is an
# allocation or a free follows from whether the address is live.
ADDS_NODE = {
    "cuGraphAddNode": "cuGraphAddMemAllocNode",
    "cuGraphAddNode_v2": "cuGraphAddMemAllocNode",
}
# Calls that end a context: the log has one line for each allocation in it, then one for the call.
ENDS = {
    "cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxDetach",
    "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2",
}  # fmt: skip
RETURN_OF = {"alloc": "free", "register": "unregister", "import": "unimport", "map": "free"}

# Runtime call -> the driver call that it makes.
RUNTIME = {
    "cudaMalloc": "cuMemAlloc_v2",
    "cudaMallocPitch": "cuMemAllocPitch_v2",
    "cudaMalloc3D": "cuMemAllocPitch_v2",
    "cudaMallocManaged": "cuMemAllocManaged",
    "cudaFree": "cuMemFree_v2",
    "cudaMallocAsync": "cuMemAllocAsync",
    "cudaMallocAsync_ptsz": "cuMemAllocAsync_ptsz",
    "cudaMallocFromPoolAsync": "cuMemAllocFromPoolAsync",
    "cudaFreeAsync": "cuMemFreeAsync",
    "cudaFreeAsync_ptsz": "cuMemFreeAsync_ptsz",
    "cudaMemPoolImportPointer": "cuMemPoolImportPointer",
    "cudaMallocHost": "cuMemHostAlloc",
    "cudaHostAlloc": "cuMemHostAlloc",
    "cudaFreeHost": "cuMemFreeHost",
    "cudaHostRegister": "cuMemHostRegister_v2",
    "cudaHostUnregister": "cuMemHostUnregister",
    "cudaMallocArray": "cuArrayCreate_v2",
    "cudaMalloc3DArray": "cuArray3DCreate_v2",
    "cudaMallocMipmappedArray": "cuMipmappedArrayCreate",
    "cudaFreeArray": "cuArrayDestroy",
    "cudaFreeMipmappedArray": "cuMipmappedArrayDestroy",
    "cudaIpcOpenMemHandle": "cuIpcOpenMemHandle_v2",
    "cudaIpcCloseMemHandle": "cuIpcCloseMemHandle",
    "cudaImportExternalMemory": "cuImportExternalMemory",
    "cudaExternalMemoryGetMappedBuffer": "cuExternalMemoryGetMappedBuffer",
    "cudaDestroyExternalMemory": "cuDestroyExternalMemory",
    "cudaGraphicsResourceGetMappedPointer": "cuGraphicsResourceGetMappedPointer_v2",
    "cudaGraphicsUnmapResources": "cuGraphicsUnmapResources",
    "cudaGraphAddMemAllocNode": "cuGraphAddMemAllocNode",
    "cudaGraphAddMemFreeNode": "cuGraphAddMemFreeNode",
    "cudaGraphAddNode": "cuGraphAddNode_v2",
    "cudaGraphAddNode_v2": "cuGraphAddNode_v2",
    "cudaDeviceReset": "cuDevicePrimaryCtxReset_v2",
}

BY_HANDLE = {"physical", "external", "graphics"}
OUT_OF_MEMORY = 2

Event = collections.namedtuple("Event", "kind address size thread result")


class _Device:
    """Converts the lines of the log to events, and tracks the sizes of live memory."""

    def __init__(self):
        self.live = {}  # (space, value) -> (kind, size)
        self.references = collections.Counter()  # (space, value) -> references beyond the first
        self.events = []  # (event, the line that ended its context or None)

    def add(self, event, end=None):
        self.events.append((event, end))

    def see(self, line):
        call, result = line["call"], line["result"]
        if call in ENDS:
            self.end_of_context(line)
            return
        if call == "cuMemRetainAllocationHandle" and result == 0:
            self.references["physical", line["handle"]] += 1
        if call in ADDS_NODE:
            known = line["address"] != 0 and ("device", line["address"]) in self.live
            call = "cuGraphAddMemFreeNode" if known else ADDS_NODE[call]
        if call in ACQUIRES:
            self.acquire(call, line)
        elif call in RETURNS:
            self.give_back(call, line)

    def acquire(self, call, line):
        kind, space, memory = ACQUIRES[call]
        if line["result"] != 0:
            self.add(Event("alloc_failed", 0, line["size"], line["thread"], line["result"]))
            return
        value = line["handle"] if space in BY_HANDLE else line["address"]
        if (space, memory) == ("ipc", "ipc") and (space, value) in self.live:  # opened again
            self.references[space, value] += 1
            return
        # The handle of imported physical memory does not reveal its size.
        size = 0 if (space, memory) == ("physical", "ipc") else line["size"]
        self.live[space, value] = (kind, size)
        self.add(Event(kind, value, size, line["thread"], 0))

    def give_back(self, call, line):
        kind, space = RETURNS[call]
        value = line["handle"] if space in BY_HANDLE else line["address"]
        if self.references[space, value] > 0:
            self.references[space, value] -= line["result"] == 0
            return
        if line["result"] != 0:
            # The device does not log the size of memory that it did not free.
            self.add(Event(kind, value, None, line["thread"], line["result"]))
            return
        _, size = self.live.pop((space, value), (None, line["size"]))
        if space == "mapping":  # one unmap may end several mappings, or a part of one
            size = line["size"]
        self.add(Event(kind, value, size, line["thread"], 0))

    def end_of_context(self, line):
        if line["address"] == 0 or line["result"] != 0:
            return
        for space in ("device", "host", "array", "ipc", "external"):
            if (space, line["address"]) in self.live:
                kind, size = self.live.pop((space, line["address"]))
                event = Event(RETURN_OF[kind], line["address"], size, line["thread"], 0)
                self.add(event, (line["call"], line["thread"]))
                return
        raise AssertionError(f"the device frees memory that it never allocated: {line}")


def _in_order(pairs):
    """Sorts the events of one end of a context by address, because their order is undefined. Events
    of other threads may be in between."""
    events = [event for event, _ in pairs]
    places = collections.defaultdict(list)
    for place, event in enumerate(events):
        places[event.thread].append(place)
    for own in places.values():
        for end, group in itertools.groupby(own, key=lambda place: pairs[place][1]):
            group = list(group)
            if end is not None:
                ended = sorted((events[place] for place in group), key=lambda e: e.address)
                for place, event in zip(group, ended):
                    events[place] = event
    return events


def expected(log_path, pid=None):
    """Returns the events in the device's log, in order."""
    device = _Device()
    for text in open(log_path):
        line = json.loads(text)
        if pid is None or line["pid"] == pid:
            device.see(line)
    return _in_order(device.events)


MEMORY_KINDS = (
    {kind for kind, _, _ in ACQUIRES.values()}
    | {kind for kind, _ in RETURNS.values()}
    | {"alloc_failed"}
)
RETURN_KINDS = {kind for kind, _ in RETURNS.values()}


def _ends_context(line):
    api = line.get("api")
    return api if RUNTIME.get(api, api) in ENDS else None


def recorded(lines):
    """Returns the events in the output of `gpumemtrace cat --json`. A failed free contains its
    result."""
    events = []
    pending = {}  # (address, thread) -> index of the return whose result is not yet known
    for line in lines:
        kind = line["kind"]
        address = line.get("address", 0)
        thread = line.get("thread")
        if kind == "free_done":
            index = pending.pop((address, thread), None)
            if index is not None and line.get("result", 0) != 0:
                event, end = events[index]
                events[index] = (event._replace(result=line["result"], size=None), end)
            continue
        if kind not in MEMORY_KINDS or line.get("heap") == "pytorch":  # the driver does not know blocks
            continue
        event = Event(kind, address, line.get("size", 0), thread, line.get("result", 0))
        if kind == "alloc_failed":
            event = event._replace(address=0)
        elif kind in RETURN_KINDS:
            pending[(address, thread)] = len(events)
        end = _ends_context(line)
        events.append((event, (end, thread) if end else None))
    # If the driver refused to end a context, the memory freed with it is live again.
    events = [(event, end) for event, end in events if not (end and event.result)]
    return _in_order(events)


def _by(events, key):
    groups = collections.defaultdict(list)
    for event in events:
        groups[key(event)].append(event)
    return groups


def compare(want, have):
    """Returns None, or a description of the first difference."""
    missing = collections.Counter(want) - collections.Counter(have)
    extra = collections.Counter(have) - collections.Counter(want)
    if missing or extra:
        return f"missing {list(missing)[:3]} extra {list(extra)[:3]} of {len(want)}"
    for name in ("address", "thread"):
        for value, events in _by(want, lambda e: getattr(e, name)).items():
            if name == "address" and value == 0:
                continue  # failed calls have no address; only the order per thread counts
            other = [e for e in have if getattr(e, name) == value]
            if events != other:
                return f"order of the events of {name} {value} differs"
    return None


# ---- Calls reported by a program of tests/programs -----------------------------------------------


def _makes_an_event(api):
    call = RUNTIME.get(api, api)
    return call in ACQUIRES or call in RETURNS or call in ADDS_NODE


def reported(calls, runtime=True):
    """Returns the names under which the reported calls of a program must be recorded, in order.
    Without `runtime`, runtime calls are recorded as the driver calls that they make."""
    names = [call["api"] for call in calls if _makes_an_event(call["api"])]
    return names if runtime else [RUNTIME.get(name, name) for name in names]


def named(lines):
    """Returns the names of the recorded calls, in order. Excludes frees by the end of a context; a
    call that freed several resources counts once."""
    names = []
    last = None
    for line in lines:
        if line["kind"] not in MEMORY_KINDS or _ends_context(line):
            continue
        call = (line["api"], line["thread"], line.get("t_ns"))
        several = line["kind"] == "unmap" and line.get("memory") == "graphics" and last == call[:2]
        if not several:
            names.append(line["api"])
        last = call[:2]
    return names


def wrong_memory(lines):
    """Returns the first acquisition whose kind of memory does not match its call, or None."""
    for line in lines:
        call = RUNTIME.get(line.get("api"), line.get("api"))
        call = ADDS_NODE.get(call, call)
        if line["kind"] in RETURN_KINDS or line["kind"] not in MEMORY_KINDS or call not in ACQUIRES:
            continue
        if line.get("memory") != ACQUIRES[call][2]:
            return line
    return None
