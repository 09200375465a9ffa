"""The stacks of a recording, by what tells the sites apart: the size that each allocates."""

import collections


def stacks_by_size(recording, *files):
    """Size -> the stack events of all allocations of that size, in order."""
    found = collections.defaultdict(list)
    for file in files or (recording.path,):
        stacks = {}
        for event in recording.events(file):
            if event["kind"] == "stack":
                stacks[event["id"]] = event
            elif event["kind"] == "alloc":
                found[event["size"]].append(stacks.get(event.get("stack"), {"frames": []}))
    return found
