"""The recording of a run, and queries on it."""

import collections
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "e2e" / "recording"))
import truth  # noqa: E402

ACQUIRED = ("alloc", "register", "import", "map", "reserve", "create")
RETURNED = ("free", "unregister", "unimport", "unmap", "unreserve", "release")


class Recording:
    def __init__(self, rig, path, done):
        self.rig, self.path, self.done = rig, path, done
        self._events = None

    def verb(self, verb, *options):
        return self.rig.run([self.rig.program, verb, "--json", *options, self.path]).stdout

    def info(self):
        return json.loads(self.verb("info"))

    def report(self, *options):
        return json.loads(self.verb("report", *options))

    def events(self):
        if self._events is None:
            self._events = [json.loads(line) for line in self.verb("cat").splitlines()]
        return self._events

    def of_kind(self, *kinds):
        return [event for event in self.events() if event["kind"] in kinds]

    def losses(self):
        """Returns the number of events missing in the file, and the number of events written."""
        losses = self.info()["losses"]
        return sum(losses[k] for k in ("overrun", "holes", "abandoned", "backlog")), losses["written"]

    def reported(self):
        """Returns the calls that the program reported."""
        for line in reversed(self.done.stdout.splitlines()):
            if line.startswith('{"calls"'):
                return json.loads(line)["calls"]
        raise ValueError(f"the program printed no calls: {self.done.stderr[-300:]}")

    def last_line(self):
        """Returns the JSON object that the program printed last."""
        lines = [line for line in self.done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise ValueError(f"the program printed no JSON object: {self.done.stderr[-300:]}")
        return json.loads(lines[-1])


def live_at_the_end(events):
    """Returns what remains allocated after the events: {(kind of memory, address): size}. Excludes blocks of a framework,
    because they are inside memory that is already counted."""
    live, freeing = {}, {}
    for event in events:
        if event.get("heap") == "pytorch":
            continue
        key = event.get("memory"), event.get("address", 0)
        if event["kind"] in ACQUIRED:
            live[key] = event["size"]
        elif event["kind"] in RETURNED:
            freeing[key[1], event.get("thread")] = key, live.pop(key, None)
        elif event["kind"] == "free_done" and event.get("result"):
            key, bytes_ = freeing.pop((key[1], event.get("thread")), (key, None))
            if bytes_ is not None:
                live[key] = bytes_
    return live


def first_difference(want, have):
    """Returns a description of the first difference, or None."""
    for number, pair in enumerate(zip(want, have)):
        if pair[0] != pair[1]:
            return f"call {number}: called {pair[0]}, recorded {pair[1]}"
    if len(want) != len(have):
        missing = collections.Counter(want) - collections.Counter(have)
        extra = collections.Counter(have) - collections.Counter(want)
        return f"{len(want)} calls, {len(have)} recorded: missing {dict(missing)}, extra {dict(extra)}"
    return None


def compare_calls(table, what, recording, runtime=True, leaves_nothing=True):
    """Checks that each call of the program is one event under its own name, and that all memory is freed."""
    calls = recording.reported()
    events = recording.events()
    want, have = truth.reported(calls, runtime), truth.named(events)
    difference = first_difference(want, have)
    table.expect(f"{what}: each call is one event", difference or f"{len(have)} calls", f"{len(want)} calls",
                 ok=difference is None and bool(want))
    wrong = truth.wrong_memory(events)
    if wrong is not None:
        table.fail(f"{what}: kind of memory", wrong, "that of the call")
    if leaves_nothing:
        live = live_at_the_end(events)
        table.expect(f"{what}: live at the end", sum(live.values()), 0, ok=not live)
    lost, written = recording.losses()
    if lost:
        table.fail(f"{what}: events lost", f"{lost} of {written}", "0")
    return events
