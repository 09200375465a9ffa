"""Compares the output of `export --format torch` with PyTorch's own snapshot: the state of its
allocator at a moment, block by block, and the history that ends there.
"""

import pickle

import agreement
from driver_memory import Difference


def _export(recording, *options):
    path = recording.folder / "exported.pickle"
    options = ("--format", "torch", "-o", path, "--force", "--max-events", "0", *options)
    recording.verb("export", recording.path, *options)
    return pickle.loads(path.read_bytes())


def _seconds(t_ns):
    return f"{t_ns // 10**9}.{t_ns % 10**9:09d}"


def _blocks(segments):
    """Returns (device, address, size, state, stream) of every block, free ones included."""
    return sorted(
        (segment["device"], block["address"], block["size"], block["state"], segment["stream"])
        for segment in segments
        for block in segment["blocks"]
    )


def _kinds(segments):
    """Returns (device, address, size, type, expandable) of every segment."""
    return sorted(
        (s["device"], s["address"], s["total_size"], s["segment_type"], s["is_expandable"])
        for s in segments
    )


def _of_caching_allocator(segments, reported):
    """Returns the allocator's segments: an export also has segments of memory that other libraries
    hold."""
    known = [(s["device"], s["address"], s["address"] + s["total_size"]) for s in reported.segments]
    return [
        s
        for s in segments
        if any(d == s["device"] and a <= s["address"] < end for d, a, end in known)
    ]


def _compare_histories(reported, exported):
    """Compares event by event; PyTorch's own history has nothing about other libraries' memory."""
    compared = 0
    for device, trace in enumerate(reported.traces):
        theirs = [e for e in agreement.of_traces(trace) if e[1] != "snapshot"]
        known = {address for _, _, address, _, _ in theirs}
        ours = agreement.of_traces(exported[device]) if device < len(exported) else []
        ours = [e for e in ours if e[1] != "snapshot" and e[2] in known]
        agreement.same_order(f"exported history of device {device}", theirs, ours)
        compared += len(theirs)
    return compared


def compare_moment(recording, reported, moment, lines):
    """Returns the number of blocks, segments and events compared."""
    snapshot = _export(recording, "--to", _seconds(lines[moment.index]["t_ns"]))
    segments = _of_caching_allocator(snapshot["segments"], reported)
    agreement.same_lists("exported segments", _kinds(reported.segments), _kinds(segments))
    agreement.same_lists("exported blocks", _blocks(reported.segments), _blocks(segments))
    events = _compare_histories(reported, snapshot["device_traces"]) if reported.traces else 0
    return len(_blocks(segments)) + len(segments) + events


def compare(recording, reported, replay):
    """Compares at the first, a middle and the last moment at which memory is held."""
    full = [m for m in reported if m.segments]
    compared = 0
    for one in {m.index: m for m in (full[0], full[len(full) // 2], full[-1])}.values():
        moment = replay.moments[one.index]
        try:
            compared += compare_moment(recording, one, moment, replay.lines)
        except Difference as difference:
            raise Difference(f'moment {one.index} "{one.name}": {difference}') from None
    return compared
