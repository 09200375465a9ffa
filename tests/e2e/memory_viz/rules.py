"""Assumptions of PyTorch's viewer about a snapshot, and the number of shapes that it draws.

Both follow torch/utils/viz/MemoryViz.js of PyTorch 2.6: `annotate_snapshot` (a free_completed directly after its
free_requested is one event), `process_alloc_data` (Active Memory Timeline, Active Cached Segment Timeline) and `MemoryView`
(Allocator State History, which goes backwards from the end).
"""


def live_blocks(segment):
    return [b for b in segment["blocks"] if b["state"] != "inactive"]


class Memory:
    """The state of one device, moving backwards in time."""

    def __init__(self, snapshot, device):
        self.problems = []
        self.blocks, self.segments = {}, {}
        for segment in snapshot["segments"]:
            if segment["device"] != device:
                continue
            at = segment["address"]
            self.segments[at] = (segment["total_size"], segment["stream"])
            for block in segment["blocks"]:
                self.expect(block["address"] == at, "gap", at)
                at += block["size"]
            self.expect(at == segment["address"] + segment["total_size"], "sum", at)
            for block in live_blocks(segment):
                self.blocks[block["address"]] = (block["size"], block["state"] == "active_pending_free")
        self.expect_all_inside()

    def expect(self, holds, what, address):
        if not holds:
            self.problems.append(f"{what} at {address:#x}")

    def segment_of(self, address):
        return next((s for s, (size, _) in self.segments.items() if s <= address < s + size), None)

    def expect_all_inside(self):
        for address in self.blocks:
            self.expect(self.segment_of(address) is not None, "block outside all segments", address)

    def undo(self, event):
        getattr(self, event["action"], lambda _: None)(event)
        self.expect_all_inside()

    def alloc(self, event):
        self.expect(self.blocks.pop(event["addr"], None) is not None, "alloc of nothing", event["addr"])

    def free_requested(self, event):
        size, pending = self.blocks.get(event["addr"], (event["size"], None))
        self.expect(pending is True, "free_requested of nothing pending", event["addr"])
        self.blocks[event["addr"]] = (size, False)

    def free_completed(self, event):
        self.expect(event["addr"] not in self.blocks, "free_completed of a live block", event["addr"])
        self.blocks[event["addr"]] = (event["size"], True)

    def segment_alloc(self, event):
        found = self.segments.pop(event["addr"], (None, None))
        self.expect(found == (event["size"], event["stream"]), "segment_alloc of no such segment", event["addr"])

    def segment_free(self, event):
        self.expect(self.segment_of(event["addr"]) is None, "segment_free inside a segment", event["addr"])
        self.segments[event["addr"]] = (event["size"], event["stream"])

    def segment_map(self, event):
        at, end = event["addr"], event["addr"] + event["size"]
        start = self.segment_of(at)
        self.expect(start is not None, "segment_map of no segment", at)
        if start is None:
            return
        size, stream = self.segments.pop(start)
        self.expect(end <= start + size and stream == event["stream"], "segment_map of another segment", at)
        if start < at:
            self.segments[start] = (at - start, stream)
        if end < start + size:
            self.segments[end] = (start + size - end, stream)

    def segment_unmap(self, event):
        start, end, stream = event["addr"], event["addr"] + event["size"], event["stream"]
        self.expect(self.segment_of(start) is None, "segment_unmap inside a segment", start)
        if self.segments.get(end, (0, None))[1] == stream:
            end += self.segments.pop(end)[0]
        before = next((s for s, (size, of) in self.segments.items() if s + size == start and of == stream), None)
        if before is not None:
            start = before
        self.segments[start] = (end - start, stream)


def problems(snapshot):
    found = []
    for device, trace in enumerate(snapshot["device_traces"]):
        memory = Memory(snapshot, device)
        for event in reversed(trace):
            memory.undo(event)
        found += memory.problems
    return found


def merged_events(trace):
    """Returns the events as shown in the list of events."""
    events = []
    for event in trace:
        last = events[-1] if events else {}
        of_one = last.get("addr") == event.get("addr")
        if of_one and (last.get("action"), event["action"]) == ("free_requested", "free_completed"):
            events[-1] = {**last, "action": "free"}
        else:
            events.append(event)
    return events


def timeline_elements(snapshot, device, begin, ends, held):
    """Returns the number of shapes in a timeline; `held`: (address, size) of what exists at the end."""
    elements, open_at = 0, set()
    for event in merged_events(snapshot["device_traces"][device]):
        if event["action"] == begin:
            elements += 1
            open_at.add(event["addr"])
        elif event["action"] in ends:
            elements += event["addr"] not in open_at
            open_at.discard(event["addr"])
    return elements + len(held - open_at)


def drawn(snapshot, device):
    """Returns what each view shows of a device, as numbers of shapes and lines."""
    segments = [s for s in snapshot["segments"] if s["device"] == device]
    blocks = [b for s in segments for b in live_blocks(s)]
    active = {b["address"] for b in blocks if b["state"] == "active_allocated"}
    summary = 1
    return {
        "Active Memory Timeline": summary + timeline_elements(
            snapshot, device, "alloc", ("free", "free_completed"), active),
        "Active Cached Segment Timeline": summary + timeline_elements(
            snapshot, device, "segment_alloc", ("segment_free",), {s["address"] for s in segments}),
        # A block has two shapes: itself and its rounding.
        "Allocator State History": len(segments) + 2 * len(blocks),
        "events": len(merged_events(snapshot["device_traces"][device])),
    }
