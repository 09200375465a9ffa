"""Compares the output of the commands with the replay."""

from driver_memory import Difference


def _heaps(report, heap):
    """Returns device -> the row of that heap."""
    return {d["index"]: h for d in report["devices"] for h in d["heaps"] if h["heap"] == heap}


def _expect(what, want, have):
    if want != have:
        raise Difference(f"{what}: {have}, by the events it is {want}")


def _compare_heaps(recording, replay):
    heaps = _heaps(recording.report("--at", "end"), "pytorch")
    _expect("devices with blocks", sorted(replay.counters), sorted(heaps))
    for device, counters in replay.counters.items():
        row = heaps[device]
        for key, want in (
            ("live_bytes", counters.now["allocated_bytes"]),
            ("peak_live_bytes", counters.peak["allocated_bytes"]),
            ("allocations", counters.total["allocation allocated"]),
            ("frees", counters.total["allocation freed"]),
            ("reserved_bytes", counters.now["reserved_bytes"]),
            ("peak_reserved_bytes", counters.peak["reserved_bytes"]),
        ):
            _expect(f"report: {key} of device {device}", want, row[key])


def _compare_info(recording, replay):
    info = recording.info()
    _expect("info: sources.pytorch", "on", info["sources"]["pytorch"])
    kinds = [line["kind"] for line in replay.lines]
    for kind in ("alloc", "free", "alloc_failed"):
        _expect(f"info: events.{kind}", kinds.count(kind), info["events"][kind])


def compare(recording, replay):
    _compare_heaps(recording, replay)
    _compare_info(recording, replay)
