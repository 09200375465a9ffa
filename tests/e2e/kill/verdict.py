"""Checks that a recording agrees with the truth, for a process that was killed or whose collector was.

The truth is the simulated device's log (tests/e2e/recording/truth.py). A hook records a free before the device executes it,
and an allocation after: so each thread may be in one call that only one side knows. Losses of the collector must be
reported.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import truth  # noqa: E402

LOSSES = ("delivered", "overrun", "holes", "abandoned", "backlog")


def check_identity(losses):
    assert losses["written"] == sum(losses[k] for k in LOSSES), losses


def _is_pieced_together(line):
    """Returns whether the event was derived from the live table in a gap: a free without API, an allocation without duration."""
    if line["kind"] == "alloc":
        return "duration_ns" not in line
    return line.get("api") == "(lost)"


def seen(lines):
    """Returns the events of a recording that the process reported itself."""
    return truth.recorded([line for line in lines if not _is_pieced_together(line)])


def _step(event):
    return (event.kind, event.address, event.size or 0, event.thread)


def check_pieced_together(want, lines):
    """The live table does not know at which point of a gap an event happened, but it did happen. Returns the number."""
    found = [line for line in lines if line["kind"] == "alloc" and _is_pieced_together(line)]
    invented = collections.Counter(map(_step, truth.recorded(found)))
    invented -= collections.Counter(map(_step, want))
    assert not invented, f"not in the truth: {list(invented)[:5]}"
    return len(found)


def _skipped(want, have):
    """Finds all of `have` in `want`, in order. Returns how many of `want` were skipped, and the part of `have` that was not
    found."""
    position, skipped = 0, 0
    for index, event in enumerate(have):
        at = position
        while at < len(want) and want[at] != event:
            at += 1
        if at == len(want):
            return skipped, have[index:]
        skipped += at - position
        position = at + 1
    return skipped, []


def check_nothing_invented(want, have, threads):
    """Every event of the recording happened, in the same order, except for one call in progress per thread. Returns how many
    events of the truth are missing before the last recorded one."""
    missing, in_progress = 0, 0
    by_thread = collections.defaultdict(lambda: ([], []))
    by_address = collections.defaultdict(lambda: ([], []))
    for side, events in enumerate((want, have)):
        for event in events:
            by_thread[event.thread][side].append(_step(event))
            by_address[event.address][side].append(_step(event))
    for thread, (true, reported) in by_thread.items():
        skipped, unknown = _skipped(true, reported)
        missing += skipped
        assert len(unknown) <= 1, f"thread {thread}: not in the truth: {unknown[:5]} of {len(unknown)}"
        assert not unknown or unknown[0][0] == "free", f"thread {thread}: invented {unknown}"
        in_progress += len(unknown)
    for address, (true, reported) in by_address.items():
        _, unknown = _skipped(true, reported)
        assert len(unknown) <= 1, f"address {address}: out of order: {unknown[:5]}"
    assert in_progress <= threads, f"{in_progress} events of {threads} threads are not in the truth"
    return missing


def live(events):
    held = {}
    for event in events:
        if event.kind == "alloc":
            held[event.address] = event.size
        elif event.kind == "free":
            held.pop(event.address, None)
    return held


def check_complete(want, lines, info, threads):
    """A recording of everything up to the end: all missing events are counted as lost, and the live set at the end is
    correct."""
    assert info["complete"], info
    losses = info["losses"]
    check_identity(losses)
    have = seen(lines)
    lost = losses["written"] - losses["delivered"]
    assert check_pieced_together(want, lines) <= lost, losses
    missing = check_nothing_invented(want, have, threads)
    unseen = len(want) - len(have)
    assert missing <= lost, f"{missing} events are missing in the middle, {lost} reported as lost"
    assert unseen <= lost + threads, f"{unseen} events are missing, {lost} reported as lost"
    all_told = truth.recorded(lines)
    differs = set(live(want).items()) ^ set(live(all_told).items())
    assert len(differs) <= 2 * threads, f"live at the end: {len(differs)} differ: {list(differs)[:5]}"
    return lost


def check_cut(want, lines, threads):
    """What a killed collector had written is a beginning of the truth."""
    check_nothing_invented(want, seen(lines), threads)
