"""Replays a recording in the slow and obvious way, from the lines of `gpumemtrace cat --json`
alone: what is live at each mark "moment", what the allocator's counters must be, and the order of
events. It shares nothing with the code that it is compared with.
"""

import collections

from address_map import AddressMap
from allocator_state import Block, Counters, Moment, Recorded
from driver_memory import Difference, DriverMemory

OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
FROM_ALLOCATOR = 1  # bit of `flags`: libc10_cuda made the call


def confirmed_sites(lines):
    """Returns the places in the allocator that record events which it later queries."""
    site_of, confirmed = {}, set()
    for line in lines:
        if not line.get("flags", 0) & FROM_ALLOCATOR:
            continue
        if line["kind"] == "event_record":
            site_of[line["object"]] = line.get("value")
        elif line["kind"] == "sync" and line.get("object") in site_of:
            confirmed.add(site_of[line["object"]])
    return confirmed


class Replay:
    """Replays `lines` as cat prints them. Raises Difference if the recording contradicts itself."""

    def __init__(self, lines):
        self.lines = lines
        self.live, self.pending, self.may_wait = AddressMap(), AddressMap(), AddressMap()
        self.driver = DriverMemory()
        self.counters = collections.defaultdict(Counters)
        self.moments = {}
        self.ooms = []  # the state when the allocator gave up
        self.actions = []  # (index, device, action, address, size, stream)
        self.allocations = []  # (index, line) of blocks
        self.sums_compared = 0
        self.waited_for = set()  # events that some block has ever waited for
        self.active_is_known = True  # until one is freed whose reuse cannot be known
        self._confirmed = confirmed_sites(lines)
        self._recorded = collections.defaultdict(list)  # by thread, since its last block
        self._failed = collections.Counter()  # thread -> the driver's refusals since its last block
        see = {
            ("alloc", "pytorch"): self._block,
            ("free", "pytorch"): self._block_freed,
            ("alloc_failed", "pytorch"): self._out_of_memory,
            ("alloc", "driver"): self._driver_alloc,
            ("free", "driver"): self._driver_free,
            ("free_done", "driver"): self._driver_free_done,
            ("alloc_failed", "driver"): self._driver_failed,
            ("reserve", "driver"): lambda index, line: self.driver.add(line, reserved=True),
            ("unreserve", "driver"): lambda index, line: self.driver.remove(line),
            ("map", "driver"): self._map,
            ("unmap", "driver"): self._unmap,
            ("event_record", None): self._event_recorded,
            ("sync", None): self._event_done,
            ("mark", None): self._mark,
        }
        for index, line in enumerate(lines):
            action = see.get((line["kind"], line.get("heap")))
            if action:
                try:
                    action(index, line)
                except Difference as difference:
                    raise Difference(f"line {index}: {difference}\n  {line}") from None

    # ---- Blocks ---------------------------------------------------------------------------------

    def _block(self, index, line):
        block = Block(index, line)
        self._refuse_overlap(block)
        segment = self.driver.holding(block.address, block.size)
        if segment is None:
            raise Difference(f"{block} is not in any driver memory")
        if not segment.is_segment:
            self._becomes_segment(segment)
        self.live.add(block)
        self.allocations.append((index, line))
        counters = self.counters[block.device]
        for name, amount in self._amounts(block) + self._active(block):
            counters.add(name, amount)
        self._did(index, "alloc", block)
        self._end_of_call(line)
        self._compare_sums(line)

    def _block_freed(self, index, line):
        block = self.live.pop(line["address"])
        if block is None:
            raise Difference(f"{line['address']:#x} is freed but was not live")
        if line["size"] != block.size:
            raise Difference(f"{block} is freed as one of {line['size']}")
        if line["device"] != block.device:
            raise Difference(f"{block} of device {block.device} is freed on {line['device']}")
        counters = self.counters[block.device]
        for name, amount in self._amounts(block):
            counters.add(name, -amount)
        self._did(index, "free_requested", block)
        # Memory waits for streams other than its own.
        recorded = [r for r in self._recorded[line["thread"]] if r.stream != block.stream]
        block.waits_for = {r.event for r in recorded if r.site in self._confirmed}
        block.may_wait = bool(recorded) and not self._confirmed
        self.waited_for |= block.waits_for
        if block.waits_for:
            self.pending.add(block)
        elif block.may_wait:
            self.may_wait.add(block)
            self.active_is_known = False
        else:
            self._completed(index, block)
        self._end_of_call(line)
        self._compare_sums(line)

    def _did(self, index, action, block):
        event = index, block.device, action, block.address, block.size, block.stream
        self.actions.append(event)

    def _completed(self, index, block):
        counters = self.counters[block.device]
        for name, amount in self._active(block):
            counters.add(name, -amount)
        self._did(index, "free_completed", block)

    def _out_of_memory(self, index, line):
        self.counters[line["device"]].total["num_ooms"] += 1
        self.actions.append((index, line["device"], "oom", 0, line["size"], None))
        if self._failed[line["thread"]] == 1:
            raise Difference("out of memory after one refusal: the allocator retries before it gives up")
            # The allocator retries before it gives up, also if a limit of its own refuses the
            # memory.
        self._failed[line["thread"]] += 1
        self._end_of_call(line)
        self._compare_sums(line)
        self.ooms.append(Moment(index, None, self))

    @staticmethod
    def _amounts(block):
        return [("allocated_bytes", block.size), ("allocation", 1)]

    @staticmethod
    def _active(block):
        return [("active_bytes", block.size), ("active", 1)]

    def _refuse_overlap(self, block):
        for blocks, state in ((self.live, "live"), (self.pending, "not released yet")):
            for other in blocks.overlapping(block.address, block.size):
                raise Difference(f"{block} overlaps {other}, which is {state}")
        for other in self.may_wait.overlapping(block.address, block.size):
            self.may_wait.pop(other.address)  # it no longer waited; since when is unknown

    def _end_of_call(self, line):
        """Ends a call of the allocator: what it did before has taken effect."""
        self._recorded[line["thread"]] = []
        if self._failed.pop(line["thread"], 0):
            self.counters[line["device"]].total["num_alloc_retries"] += 1

    def _compare_sums(self, line):
        now = self.counters[line["device"]].now
        for reported, ours in (
            ("total_allocated", now["allocated_bytes"]),
            ("total_reserved", now["reserved_bytes"]),
        ):
            if reported not in line:
                raise Difference(f"the event has no {reported}")
            if line[reported] != ours:
                raise Difference(f"{reported} is {line[reported]}, by the events so far it is {ours}")
            self.sums_compared += 1

    # ---- The driver's memory --------------------------------------------------------------------

    def _becomes_segment(self, piece):
        piece.is_segment = True
        for device in {d for d, _, _ in piece.ranges()}:
            self.counters[device].add("reserved_bytes", piece.bytes_of(device))

    def _driver_alloc(self, index, line):
        if line.get("memory") != "device":
            return
        piece = self.driver.add(line)
        piece.lines.append((index, "segment_alloc", piece.address, piece.size, piece.device))

    def _driver_free(self, index, line):
        piece = self.driver.remove(line)
        if piece is None or not piece.is_segment:
            return
        self._refuse_to_lose_blocks(piece.address, piece.size)
        piece.lines.append((index, "segment_free", piece.address, piece.size, piece.device))
        self.counters[piece.device].add("reserved_bytes", -piece.size)

    def _driver_free_done(self, index, line):
        if line.get("result"):
            piece = self.driver.put_back(line)
            if piece and piece.is_segment:
                self.counters[piece.device].add("reserved_bytes", piece.size)
        else:
            self.driver.being_freed.pop((line["address"], line["thread"]), None)

    def _driver_failed(self, index, line):
        if line["result"] == OUT_OF_MEMORY:  # otherwise it asks again in another way
            self._failed[line["thread"]] += 1

    def _map(self, index, line):
        piece = self.driver.map(line)
        if piece is None:
            return
        size, device = line["size"], line["device"]
        piece.lines.append((index, "segment_map", line["address"], size, device))
        if piece.is_segment:
            self.counters[device].add("reserved_bytes", size)

    def _unmap(self, index, line):
        piece, gone = self.driver.unmap(line)
        for address, size, device in gone:
            self._refuse_to_lose_blocks(address, size)
            piece.lines.append((index, "segment_unmap", address, size, device))
            if piece.is_segment:
                self.counters[device].add("reserved_bytes", -size)

    def _refuse_to_lose_blocks(self, address, size):
        for blocks, state in ((self.live, "live"), (self.pending, "not released yet")):
            for block in blocks.overlapping(address, size):
                raise Difference(f"memory is removed under {block}, which is {state}")

    # ---- Events of streams, marks ---------------------------------------------------------------

    def _event_recorded(self, index, line):
        if not line.get("flags", 0) & FROM_ALLOCATOR:
            return
        self._seen_done(index, line["object"])  # no event is recorded while it is waited for
        recorded = Recorded(line["object"], line.get("value"), line.get("stream"))
        self._recorded[line["thread"]].append(recorded)

    def _event_done(self, index, line):
        if line.get("flags", 0) & FROM_ALLOCATOR:
            self._seen_done(index, line.get("object"))

    def _seen_done(self, index, event):
        for block in self.pending:
            if event in block.waits_for:
                block.waits_for.discard(event)
                if not block.waits_for:
                    self.pending.pop(block.address)
                    self._completed(index, block)

    def _mark(self, index, line):
        if line.get("name") == "moment":
            self.moments[line["index"]] = Moment(index, line["index"], self)
            self.actions.append((index, None, "snapshot", 0, 0, None))

    def stacks(self):
        """Returns id -> the line of each stack."""
        return {line["id"]: line for line in self.lines if line["kind"] == "stack"}

    # ---- The order of everything ----------------------------------------------------------------

    def in_order(self, device):
        """Returns (index, action, address, size, stream) of all events on a device; only blocks
        have a stream."""
        events = [event[:1] + event[2:] for event in self.actions if event[1] in (device, None)]
        for piece in self.driver.all_segments():
            events += [(i, action, a, n, None) for i, action, a, n, d in piece.lines if d == device]
        return sorted(events, key=lambda event: event[0])  # stable: keeps the order within a line
