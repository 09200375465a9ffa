#!/usr/bin/env python3
"""round_trip_check.py --build BUILD --python PYTHON [--only NAME]...: PyTorch snapshots survive
import and export unchanged.

PYTHON, which has a CUDA build of torch, makes snapshots on the simulated device. Each is imported,
exported again with all frames, and both are compared as data: every event, block, frame, annotation
and setting.
"""

import argparse
import gzip
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ALLOCATIONS = {"alloc", "segment_alloc", "segment_map"}
# name: (arguments of make_snapshot.py, PYTORCH_CUDA_ALLOC_CONF, devices)
SNAPSHOTS = {
    "all stacks": (["--stacks", "all"], "", 1),
    "expandable segments": ([], "expandable_segments:True", 1),
    "begins late": (["--late"], "expandable_segments:True", 1),
    "two devices": (["--late"], "", 2),
    "history overflowed": (["--entries", "40"], "", 1),
    "expandable, overflowed": (["--entries", "30"], "expandable_segments:True", 1),
}


def frames_of(entry):
    """Returns the frames. For native code without debug information PyTorch has "??" or nothing; a
    recording has one form."""
    frames = entry.get("frames") or []
    return tuple((frame["name"], frame["filename"] or "??", frame["line"]) for frame in frames)


def event(entry):
    """Returns what of an entry must come back. An allocation's labels are kept, those of frees are
    not."""
    labels = (entry.get("compile_context"), entry.get("user_metadata") or "") if entry["action"] in ALLOCATIONS else ()
    place = entry["device_free"] if entry["action"] == "oom" else entry["addr"]
    return (entry["action"], place, entry["size"], entry.get("stream"), entry["time_us"], labels, frames_of(entry))


def block(entry):
    active = entry["state"] != "inactive"
    asked = entry["requested_size"] if active else None
    return (entry["address"], entry["size"], entry["state"], asked, frames_of(entry) if active else ())


def segment(entry):
    return (entry["device"], entry["address"], entry["total_size"], entry["allocated_size"], entry["active_size"],
            entry["stream"], entry["segment_type"], tuple(entry["segment_pool_id"]), entry["is_expandable"],
            tuple(block(one) for one in entry["blocks"]))


def annotation(entry):
    return (entry["name"], entry["stage"], entry.get("device"), entry["time_us"])


def waiting_at_first(trace):
    """Returns the addresses of blocks that waited for a stream when the history began: completed
    without a request."""
    requested, waiting = set(), set()
    for entry in trace:
        if entry["action"] in ("free_requested", "alloc"):
            requested.add(entry["addr"])
        elif entry["action"] == "free_completed" and entry["addr"] not in requested:
            waiting.add(entry["addr"])
    return waiting


def events(trace, waiting):
    """Returns the entries without the requests that an export adds at the beginning, for frees that
    were already waiting."""
    first = len(trace)
    for index, entry in enumerate(trace):
        if entry["action"] != "free_requested" or entry["addr"] not in waiting or entry.get("frames"):
            first = index
            break
    found = [event(entry) for entry in trace[first:]]
    for index in range(1, len(found)):
        request, completion = found[index - 1], found[index]
        at_once = (request[0], completion[0]) == ("free_requested", "free_completed") and request[1] == completion[1]
        if at_once and request[-1] == completion[-1]:  # a recording knows that it was immediate, not how long it took
            found[index] = (*completion[:4], request[4], *completion[5:])
    return found


def parts(snapshot, waiting):
    """Returns name -> list of what must be equal."""
    found = {f"events of device {device}": events(trace, waiting[device] if device < len(waiting) else set())
             for device, trace in enumerate(snapshot["device_traces"])}
    found["segments"] = sorted(segment(entry) for entry in snapshot["segments"])
    found["annotations"] = [annotation(entry) for entry in snapshot.get("external_annotations", [])]
    found["settings"] = sorted(snapshot.get("allocator_settings", {}).items())
    return found


def first_difference(one, other, place):
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        for index, (a, b) in enumerate(zip(one, other)):
            if a != b:
                return first_difference(a, b, f"{place}[{index}]")
        return f"{place}: {len(one)} became {len(other)}"
    return f"{place}: {one} became {other}"


def differences(before, after):
    waiting = [waiting_at_first(trace) for trace in before["device_traces"]]
    actual = parts(after, waiting)
    for name, expected in parts(before, [set()] * len(waiting)).items():
        if expected != actual.get(name, []):
            yield first_difference(expected, actual.get(name, []), name)


class Check:
    def __init__(self, arguments, folder):
        self.build, self.python, self.folder = arguments.build.resolve(), arguments.python, pathlib.Path(folder)
        self.program = self.build / "bin" / "gpumemtrace"

    def make(self, arguments, settings, devices):
        path = self.folder / "made.pickle"
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=settings, SIMCUDA_DEVICES=str(devices), SIMCUDA_LAG="3")
        subprocess.run([self.build / "simcuda" / "with-simcuda", self.python, HERE / "make_snapshot.py", path, *arguments],
                       check=True, env=environment)
        return path

    def round_trip(self, path):
        recording, out = self.folder / "run.gmt", self.folder / "out.pickle"
        subprocess.run([self.program, "import", path, "-o", recording, "--force"], check=True, stderr=subprocess.PIPE)
        subprocess.run([self.program, "export", "--format", "torch", "--raw-frames", recording,
                        "-o", out, "--force"], check=True, stderr=subprocess.PIPE)
        return pickle.loads(out.read_bytes())

    def run(self, name):
        path = self.make(*SNAPSHOTS[name])
        before = pickle.loads(path.read_bytes())
        packed = self.folder / "packed.pickle.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        found = list(differences(before, self.round_trip(path)))
        found += [f"gzip: {what}" for what in differences(before, self.round_trip(packed))]
        events = sum(map(len, before["device_traces"]))
        blocks = sum(one["state"] != "inactive" for each in before["segments"] for one in each["blocks"])
        if events == 0 or blocks == 0:
            found.append("the snapshot is empty")
        print(f"{'FAIL' if found else 'ok  '}  {name}: {events} events, {len(before['segments'])} segments, {blocks} blocks")
        for what in found:
            print(f"  {what[:1000]}")
        return not found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--only", choices=SNAPSHOTS, action="append")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(arguments, folder)
        results = [check.run(name) for name in (arguments.only or SNAPSHOTS)]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
