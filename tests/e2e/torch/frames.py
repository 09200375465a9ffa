"""Compares the Python frames of blocks with those in PyTorch's own history."""

import collections
import re

from driver_memory import Difference

AGREED = "agreed"
CUT = "cut at the recorded depth, and marked as cut"
ADDED = "PyTorch adds lines of the model behind those of its generated code"
LEARNING = "allocated before the layout of nodes was known"
EXPLAINED = (CUT, ADDED, LEARNING)

GENERATED = re.compile(r"/[^/]{2}/c[^/]+\.py$")  # Inductor's cache


def _theirs(event):
    """Returns (function, file, line) of the Python frames of PyTorch's event, innermost first. With
    stacks="all" C++ frames are between them, whose files are not Python's."""
    frames = event.get("frames", ())
    python = [f for f in frames if f["filename"].endswith(".py") or f["filename"].startswith("<")]
    return [(frame["name"], frame["filename"], frame["line"]) for frame in python]


def python_frames(stack):
    """Returns the same of a recorded stack, which has qualified function names."""
    python = [f for f in stack.get("frames", ()) if f.get("language") == "python"]
    return [(f["function"].rsplit(".", 1)[-1], f.get("file"), f.get("line")) for f in python]


def _without_added(theirs, ours):
    """PyTorch adds the lines from which a generated line was made behind it, as if they called
    it."""
    kept = []
    for frame in theirs:
        place = len(kept)
        fits = place < len(ours) and frame == ours[place]
        if not fits and kept and GENERATED.search(kept[-1][1]):
            continue
        kept.append(frame)
    return kept


def kind_of_difference(theirs, ours, cut=False):
    """Returns the kind of difference in words, or AGREED."""
    if theirs == ours:
        return AGREED
    if cut and ours and theirs[: len(ours)] == ours:
        return CUT
    if _without_added(theirs, ours) == ours:
        return ADDED
    if not ours:
        return "no Python frame recorded"
    if not theirs:
        return "no Python frame in PyTorch's history"
    if len(theirs) != len(ours):
        shorter, longer = sorted((theirs, ours), key=len)
        side = "recorded" if longer is ours else "in PyTorch's history"
        if longer[-len(shorter) :] == shorter:
            return f"more inner frames {side}"
        if longer[: len(shorter)] == shorter:
            return f"more outer frames {side}"
        return "other frames"
    for name, place in (("line", 2), ("function", 0), ("file", 1)):
        rest = [frame[:place] + frame[place + 1 :] for frame in theirs]
        if rest == [frame[:place] + frame[place + 1 :] for frame in ours]:
            return f"another {name}"
    return "other frames"


class Agreement:
    """How many allocations have which difference, and the first example of each."""

    def __init__(self):
        self.kinds = collections.Counter()
        self.examples = {}

    def add(self, theirs, ours, where, cut=False):
        self.note(kind_of_difference(theirs, ours, cut), theirs, ours, where)

    def note(self, kind, theirs, ours, where):
        self.kinds[kind] += 1
        if kind != AGREED:
            self.examples.setdefault(kind, (where, theirs, ours))

    @property
    def compared(self):
        return sum(self.kinds.values())

    @property
    def explained(self):
        return sum(self.kinds[kind] for kind in EXPLAINED)

    @property
    def differing(self):
        return self.compared - self.kinds[AGREED] - self.explained

    def in_words(self):
        """Returns lines about each kind of difference."""
        reported = []
        for kind, (where, theirs, ours) in self.examples.items():
            reported.append(f"  {self.kinds[kind]} of {self.compared}: {kind}, first in {where}")
            if kind in EXPLAINED:
                continue
            reported += [f"    PyTorch  {frame}" for frame in theirs[:6]]
            reported += [f"    recorded {frame}" for frame in ours[:6]]
        return reported

    def require(self, share):
        """Raises Difference if too few agree; those with an explanation do not count."""
        if self.differing > (1 - share) * self.compared:
            raise Difference("stacks differ:\n" + "\n".join(self.in_words()))


def compare_stacks(reported, replay):
    """Compares the Python frames of each allocation. The order of events has been compared before,
    so the n-th allocation of a device is the same one on both sides."""
    stacks = replay.stacks()
    agreement = Agreement()
    for device, trace in enumerate(reported[-1].traces or []):
        theirs = [event for event in trace if event["action"] == "alloc"]
        ours = [(i, line) for i, line in replay.allocations if line["device"] == device]
        for event, (index, line) in zip(theirs, ours):
            stack = stacks.get(line.get("stack"), {})
            if not stack.get("frames"):
                raise Difference(f"line {index} has no stack: {line}")
            ours_of, cut = python_frames(stack), bool(stack.get("truncated"))
            agreement.add(_theirs(event), ours_of, f"line {index}", cut)
    return agreement
