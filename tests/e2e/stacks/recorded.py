"""The stacks of a recording by allocation size; each site allocates a size of its own."""

import collections

# Options of `gpumemtrace run`: all names are there when the program has ended, however busy the
# machine is.
WITH_ALL_NAMES = ("--quiet", "--exit-wait", "100s")


def stacks_by_size(recording, *files):
    """Returns size -> the stack events of all allocations of that size, in order."""
    found = collections.defaultdict(list)
    for file in files or (recording.path,):
        stacks = {}
        for event in recording.events(file):
            if event["kind"] == "stack":
                stacks[event["id"]] = event
            elif event["kind"] == "alloc":
                found[event["size"]].append(stacks.get(event.get("stack"), {"frames": []}))
    return found
