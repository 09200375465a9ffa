"""Compares the forward lines of blocks that are allocated in a backward pass with those that
PyTorch records if its anomaly detection is on.
"""

import re

import frames

LINE = re.compile(r'  File "(.*)", line (\d+), in (.*)\n')


def theirs(event):
    """Returns (function, file, line), innermost first, of the forward pass of PyTorch's event."""
    found = [LINE.match(text) for text in event.get("forward_frames", ())]
    return [(m[3], m[1], int(m[2])) for m in reversed(found)]


def ours(line, stacks):
    return frames.python_frames(stacks.get(line.get("forward_stack"), {}))


def compare(events, allocations, stacks):
    """Returns an Agreement. `events` are allocations of PyTorch's history, `allocations` the lines
    of the same ones in a recording. Only blocks of a backward pass count."""
    agreement = frames.Agreement()
    known_from = next((i for i, line in allocations if line.get("forward_stack")), 0)
    for number, (event, (index, line)) in enumerate(zip(events, allocations)):
        pair = theirs(event), ours(line, stacks)
        where = f"allocation {number} of {event['size']} bytes, line {index}"
        if pair[0] and index < known_from:
            agreement.note(frames.LEARNING, *pair, where)
        elif any(pair):
            agreement.add(*pair, where)
    return agreement
