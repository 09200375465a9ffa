"""What the simulated device was asked, in the words of the event log.

The device logs each memory call that reached it, under its own lock (tests/simcuda/README.md). A
recording must hold the same events: in the same order per address and per thread, and the same
ones overall.
"""

import collections
import json

# Call -> (kind of event, kind of the failed one). Addresses and handles are both `address`.
ACQUIRES = {
    "cuMemAlloc_v2": "alloc",
    "cuMemAllocManaged": "alloc",
    "cuMemAllocAsync": "alloc",
    "cuMemAllocAsync_ptsz": "alloc",
    "cuMemAllocFromPoolAsync": "alloc",
    "cuMemHostAlloc": "alloc",
    "cuMemHostRegister_v2": "register",
    "cuMemAddressReserve": "reserve",
    "cuMemCreate": "create",
    "cuMemMap": "map",
}
RETURNS = {
    "cuMemFree_v2": "free",
    "cuMemFreeAsync": "free",
    "cuMemFreeAsync_ptsz": "free",
    "cuMemFreeHost": "free",
    "cuMemHostUnregister": "unregister",
    "cuMemAddressFree": "unreserve",
    "cuMemRelease": "release",
    "cuMemUnmap": "unmap",
}
OUT_OF_MEMORY = 2

Event = collections.namedtuple("Event", "kind address size thread result")


def _identity(line):
    return line["handle"] if line["call"] in ("cuMemCreate", "cuMemRelease") else line["address"]


def expected(log_path, pid=None):
    """The events that the log of the device says there were, in order."""
    events = []
    for text in open(log_path):
        line = json.loads(text)
        call, result = line["call"], line["result"]
        if pid is not None and line["pid"] != pid:
            continue
        if call in ACQUIRES:
            if result == 0:
                events.append(
                    Event(ACQUIRES[call], _identity(line), line["size"], line["thread"], 0)
                )
            else:
                events.append(Event("alloc_failed", 0, line["size"], line["thread"], result))
        elif call in RETURNS:
            # The device does not say how big what it did not free is.
            size = line["size"] if result == 0 else None
            events.append(Event(RETURNS[call], _identity(line), size, line["thread"], result))
    return events


def recorded(lines):
    """The same from the lines of `gpumemtrace cat --json`. A failed return carries its result."""
    wanted = set(ACQUIRES.values()) | set(RETURNS.values()) | {"alloc_failed"}
    events = []
    pending = {}  # (address, thread) -> index of the return whose result is not known yet
    for line in lines:
        kind = line["kind"]
        address = line.get("address", 0)
        thread = line.get("thread")
        if kind == "free_done":
            index = pending.pop((address, thread), None)
            if index is not None and line.get("result", 0) != 0:
                events[index] = events[index]._replace(result=line["result"], size=None)
            continue
        if kind not in wanted:
            continue
        event = Event(kind, address, line.get("size", 0), thread, line.get("result", 0))
        if kind == "alloc_failed":
            event = event._replace(address=0)
        elif kind in RETURNS.values():
            pending[(address, thread)] = len(events)
        events.append(event)
    return events


def _by(events, key):
    groups = collections.defaultdict(list)
    for event in events:
        groups[key(event)].append(event)
    return groups


def compare(want, have):
    """Nothing, or the first difference in words."""
    missing = collections.Counter(want) - collections.Counter(have)
    extra = collections.Counter(have) - collections.Counter(want)
    if missing or extra:
        return f"missing {list(missing)[:3]} extra {list(extra)[:3]} of {len(want)}"
    for name in ("address", "thread"):
        for value, events in _by(want, lambda e: getattr(e, name)).items():
            if name == "address" and value == 0:
                continue  # failed calls have no address: their order is their thread's
            other = [e for e in have if getattr(e, name) == value]
            if events != other:
                return f"order of the events of {name} {value} differs"
    return None
