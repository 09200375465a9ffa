"""Reads a snapshot of torch.cuda.memory._snapshot() as plain dicts, lists, numbers and strings, and
replays its history.

Snapshots are untrusted: pickletools only parses them and runs no code of the file.
"""

import gzip
import pickletools

_MARK = object()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_IGNORED = {"PROTO", "FRAME"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _pop_to_mark(stack):
    items = []
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]


def _take(name, stack):
    """Executes an instruction that combines items on the stack. Returns False for others."""
    if name in _TUPLES:
        stack[-_TUPLES[name]:] = [tuple(stack[-_TUPLES[name]:])]
    elif name == "TUPLE":
        stack.append(tuple(_pop_to_mark(stack)))
    elif name == "APPEND":
        item = stack.pop()
        stack[-1].append(item)
    elif name == "APPENDS":
        items = _pop_to_mark(stack)
        stack[-1].extend(items)
    elif name == "SETITEM":
        key, value = stack[-2:]
        del stack[-2:]
        stack[-1][key] = value
    elif name == "SETITEMS":
        items = _pop_to_mark(stack)
        stack[-1].update(zip(items[::2], items[1::2]))
    else:
        return False
    return True


def load(path):
    """Returns the data. Raises ValueError if the pickle contains anything but plain data."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    stack, memo = [], {}
    for opcode, argument, position in pickletools.genops(data):
        name = opcode.name
        if name == "STOP":
            return stack.pop()
        if name in _IGNORED or _take(name, stack):
            continue
        if name == "MARK":
            stack.append(_MARK)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif isinstance(argument, (int, float, str, bytes)) and name != "GLOBAL":
            stack.append(argument)
        else:
            raise ValueError(f"{path}: {name} at byte {position} is not plain data")
    raise ValueError(f"{path}: truncated")


def _at_the_end(snapshot, device):
    allocated = reserved = 0
    for segment in snapshot["segments"]:
        if segment["device"] == device:
            reserved += segment["total_size"]
            allocated += sum(block["size"] for block in segment["blocks"] if block["state"] == "active_allocated")
    return allocated, reserved


def totals(snapshot):
    """Returns by device the bytes allocated and reserved at the end, and their maxima. Replays the
    history backwards from its end."""
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot, "device_traces": []}
    traces = snapshot.get("device_traces", [])
    devices = {segment["device"] for segment in snapshot["segments"]}
    devices |= {device for device, trace in enumerate(traces) if trace}
    found = {}
    for device in sorted(devices):
        allocated, reserved = _at_the_end(snapshot, device)
        use = {"end_allocated": allocated, "end_reserved": reserved, "peak_allocated": allocated, "peak_reserved": reserved}
        for event in reversed(traces[device] if device < len(traces) else []):
            action, size = event["action"], event["size"]
            allocated += {"alloc": -size, "free_requested": size}.get(action, 0)
            reserved += {"segment_alloc": -size, "segment_map": -size, "segment_free": size, "segment_unmap": size}.get(action, 0)
            use["peak_allocated"] = max(use["peak_allocated"], allocated)
            use["peak_reserved"] = max(use["peak_reserved"], reserved)
        found[device] = use
    return found
