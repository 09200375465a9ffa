"""Compares a replayed recording with PyTorch's snapshots: at each moment its blocks, segments and
counters; at the end the order of all events, if PyTorch's own history was on.

A function here returns how much it has compared and raises Difference at the first thing that
differs.
"""

from driver_memory import Difference

# PyTorch's actions for which a recording has an event. Its other actions are counted, not compared.
ACTIONS = "alloc free_requested free_completed oom snapshot".split() + [
    f"segment_{what}" for what in ("alloc", "free", "map", "unmap")
]


def same_lists(what, theirs, ours, show=str):
    """Compares two sorted lists of tuples without duplicates."""
    missing, extra = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
    if missing or extra:
        side, first = ("not", missing[0]) if missing else ("only", extra[0])
        raise Difference(
            f"{what}: {side} recorded: {show(first)} "
            f"(not recorded {len(missing)}, only recorded {len(extra)} of {len(theirs)})"
        )


def _block(block):
    device, address, size, stream = block
    return f"{address:#x} of {size} bytes, device {device}, stream {stream:#x}"


def _range(piece):
    device, address, size = piece
    return f"{address:#x} of {size} bytes, device {device}"


def _as_tuples(blocks):
    return sorted((b.device, b.address, b.size, b.stream) for b in blocks.values())


def _compare_blocks(reported, moment):
    allocated = reported.blocks("active_allocated")
    same_lists("live blocks", allocated, _as_tuples(moment.live), _block)
    pending = reported.blocks("active_pending_free")
    certain, possible = _as_tuples(moment.pending), set(_as_tuples(moment.may_wait))
    same_lists(
        "blocks that wait for a stream",
        [block for block in pending if block not in possible],
        certain,
        _block,
    )
    return len(allocated) + len(pending)


def _whole_segments(reported, moment):
    """Returns PyTorch's segments and ours. PyTorch ends a segment where a block's neighbour is not
    its own, a recording ends it where memory ends: adjacent segments of one reservation are merged
    here."""
    theirs, ours = reported.ranges(), sorted(moment.segments)
    starts = {address for _, address, _ in ours}
    whole = []
    for device, address, size in theirs:
        if address not in starts and whole and whole[-1][1] + whole[-1][2] == address:
            whole[-1] = (device, whole[-1][1], whole[-1][2] + size)
        else:
            whole.append((device, address, size))
    return whole, ours


def compare_moment(reported, moment):
    """Returns the number of blocks and segments compared."""
    blocks = _compare_blocks(reported, moment)
    theirs, ours = _whole_segments(reported, moment)
    same_lists("segments", theirs, ours, _range)
    for device, theirs_of in reported.statistics.items():
        ours_of = moment.statistics.get(device, {})
        for name, value in ours_of.items():
            if theirs_of[name] != value:
                raise Difference(
                    f"{name} of device {device}: PyTorch {theirs_of[name]}, recorded {value}"
                )
        if not ours_of and theirs_of["reserved_bytes.all.peak"]:
            raise Difference(f"device {device} held memory, but none is recorded")
    return blocks, len(theirs)


def compare_moments(reported, replay):
    """Compares all moments and returns (blocks, segments) compared."""
    numbers = [moment.index for moment in reported]
    if numbers != sorted(set(numbers) & set(replay.moments)):
        raise Difference(f"moments {numbers} were written, {sorted(replay.moments)} are recorded")
    blocks = segments = 0
    for moment in reported:
        try:
            some = compare_moment(moment, replay.moments[moment.index])
        except Difference as difference:
            raise Difference(f'moment {moment.index} "{moment.name}": {difference}') from None
        blocks, segments = blocks + some[0], segments + some[1]
    return blocks, segments


# ---- The order of what happened ------------------------------------------------------------------


def _merged(events):
    """Merges successive mappings of adjacent ranges: PyTorch records ranges, the driver maps
    pages."""
    merged = []
    for event in events:
        index, action, address, size, _ = event
        if merged and action in ("segment_map", "segment_unmap") and merged[-1][1] == action:
            first, _, start, before, _ = merged[-1]
            if start + before == address:
                merged[-1] = (first, action, start, before + size, None)
                continue
        merged.append(event)
    return merged


def _without_unknown_ends(theirs, ours):
    """Drops PyTorch's events about the reuse of blocks whose reuse is unknown to the recording."""
    known = {}  # address -> whether the end of each free is known, in order
    for _, action, address, _, _ in ours:
        if action == "free_requested":
            known.setdefault(address, []).append(False)
        elif action == "free_completed" and known.get(address):
            known[address][-1] = True
    seen, kept = {}, []
    for event in theirs:
        _, action, address, _, _ = event
        if action == "free_requested":
            seen[address] = seen.get(address, -1) + 1
        if action == "free_completed":
            number = seen.get(address, -1)
            ends = known.get(address, [])
            if 0 <= number < len(ends) and not ends[number]:
                continue
        kept.append(event)
    return kept


def _fits(theirs, ours):
    _, action, address, size, stream = theirs
    _, our_action, our_address, our_size, our_stream = ours
    if action != our_action:
        return False
    if action == "snapshot":
        return True
    if action in ("alloc", "free_requested", "free_completed"):
        # PyTorch records the requested size; blocks are larger.
        return address == our_address and our_size >= size and stream == our_stream
    return address == our_address and our_size == size


def of_traces(trace):
    """Returns the events of a history in PyTorch's format, to be compared by same_order()."""
    known = [e for e in trace if e["action"] in ACTIONS]
    return _merged(
        [
            (number, e["action"], e.get("addr", 0), e["size"], e.get("stream"))
            for number, e in enumerate(known)
        ]
    )


def same_order(what, theirs, ours):
    for number, pair in enumerate(zip(theirs, ours)):
        if not _fits(*pair):
            raise Difference(
                f"{what}, event {number}: PyTorch {_event(pair[0])}, recorded {_event(pair[1])} "
                f"in line {pair[1][0]}"
            )
    if len(theirs) != len(ours):
        longer = theirs if len(theirs) > len(ours) else ours
        raise Difference(
            f"{what}: {len(theirs)} events of PyTorch, {len(ours)} recorded, first of the rest: "
            f"{_event(longer[min(len(theirs), len(ours))])}"
        )


def compare_order(reported, replay):
    """Compares PyTorch's history of each device event by event. Returns the number of events
    compared."""
    compared = 0
    for device, trace in enumerate(reported[-1].traces or []):
        ours = _merged(replay.in_order(device))
        # The last snapshot is not yet in the traces that it holds; the events after it are only
        # ours.
        last = max(i for i, e in enumerate(ours) if e[1] == "snapshot")
        ours = ours[:last]
        theirs = _without_unknown_ends(of_traces(trace), ours)
        same_order(f"order on device {device}", theirs, ours)
        compared += len(theirs)
    return compared


def _event(event):
    _, action, address, size, stream = event
    where = "" if stream is None else f" on stream {stream:#x}"
    return f"{action} {address:#x} of {size} bytes{where}"
