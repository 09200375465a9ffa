"""The state of PyTorch's caching allocator in a replay: blocks, counters, and both as they were at
a moment.
"""

import collections

Recorded = collections.namedtuple("Recorded", "event site stream")


class Block:
    def __init__(self, index, line):
        self.index, self.line = index, line
        self.address, self.size = line["address"], line["size"]
        self.device, self.stream = line["device"], line.get("stream")
        self.waits_for = set()  # events recorded for it that are not known to be done
        self.may_wait = False  # events were recorded, but no query of them was ever seen

    def __str__(self):
        return f"block {self.address:#x} of {self.size} bytes, made by line {self.index}"


class Counters:
    """Counters of one device, as in memory_stats()."""

    def __init__(self):
        self.now = collections.Counter()
        self.peak = collections.Counter()
        self.total = collections.Counter()  # counters that only grow

    def add(self, name, amount):
        self.now[name] += amount
        self.total[f"{name} {'allocated' if amount > 0 else 'freed'}"] += abs(amount)
        self.peak[name] = max(self.peak[name], self.now[name])

    def statistics(self, active_is_known=True):
        """Returns the counters under their names in memory_stats()."""
        reported = {}
        known = ("active", "active_bytes") if active_is_known else ()
        for name in ("allocated_bytes", "reserved_bytes", "allocation", *known):
            reported[f"{name}.all.current"] = self.now[name]
            reported[f"{name}.all.peak"] = self.peak[name]
            for end in ("allocated", "freed"):
                reported[f"{name}.all.{end}"] = self.total[f"{name} {end}"]
        for name in ("num_ooms", "num_alloc_retries"):
            reported[name] = self.total[name]
        return reported


class Moment:
    """The state at a mark."""

    def __init__(self, index, number, replay):
        self.index, self.number = index, number
        self.live = dict(replay.live.things)
        self.pending = dict(replay.pending.things)
        self.may_wait = dict(replay.may_wait.things)
        self.segments = sorted(
            (range_ for s in replay.driver.segments() for range_ in s.ranges()),
            key=lambda r: r[1],
        )
        self.statistics = {
            device: counters.statistics(replay.active_is_known)
            for device, counters in replay.counters.items()
        }
