#!/usr/bin/env python3
"""Compares an exported Chrome trace with the trace of torch.profiler of the same process, on the simulated device: an allocation
that the program makes in a range of the profiler lies in that range, on the clock of both files.

Usage: chrome_check.py --build DIR [--python PYTHON]
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import main_of_cases  # noqa: E402

MIB = 1 << 20
# Each range allocates a size of its own between other work.
SIZES_MIB = (24, 40, 72)
PROGRAM = '''
import sys
import torch

def work():
    x = torch.ones(256, 256)
    for _ in range(200):
        x = x @ x / 256
    return x

torch.cuda.init()
torch.empty(1, device="cuda")
held = []
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    for size in SIZES:
        work()
        with torch.profiler.record_function(f"range {size}"):
            work()
            held.append(torch.empty(size << 20, dtype=torch.uint8, device="cuda"))
            work()
        work()
profiler.export_chrome_trace(sys.argv[1])
'''


def unix_ns(trace, ts):
    return trace["baseTimeNanoseconds"] + ts * 1000


def ranges_of(profiled):
    """Returns the beginning and the end of each range of the program."""
    return {e["name"]: (unix_ns(profiled, e["ts"]), unix_ns(profiled, e["ts"] + e["dur"]))
            for e in profiled["traceEvents"] if e.get("cat") == "user_annotation" and e["name"].startswith("range ")}


def growth(exported, counter):
    """Returns when the counter grew by how many bytes."""
    points = [(e["ts"], e["args"]["bytes"]) for e in exported["traceEvents"] if e["ph"] == "C" and e["name"] == counter]
    return {now - before: unix_ns(exported, ts) for (_, before), (ts, now) in zip(points, points[1:])}


def allocations_lie_in_the_ranges_of_the_profiler(rig, folder):
    (folder / "program.py").write_text(f"SIZES = {SIZES_MIB}\n{PROGRAM}", encoding="utf-8")
    recording = rig.run(folder, [rig.python, "-B", folder / "program.py", folder / "profiled.json"])
    assert recording.done.returncode == 0, recording.done.stderr[-2000:]
    recording.verb("export", "--format", "chrome", recording.path, "-o", folder / "exported.json")
    profiled, exported = (json.loads((folder / f).read_text(encoding="utf-8")) for f in ("profiled.json", "exported.json"))
    # Viewers put the events of both files on one clock only if this is the same.
    assert profiled["baseTimeNanoseconds"] == exported["baseTimeNanoseconds"]
    ranges, grown = ranges_of(profiled), growth(exported, "cuda:0 pytorch live")
    for size in SIZES_MIB:
        begin, end = ranges[f"range {size}"]
        inside = [other for other in SIZES_MIB if begin <= grown[other * MIB] <= end]
        assert inside == [size], (size, begin, end, grown)
    pids = {e["pid"] for e in profiled["traceEvents"] if e.get("cat") == "user_annotation"}
    assert {e["pid"] for e in exported["traceEvents"]} == pids


CASES = [allocations_lie_in_the_ranges_of_the_profiler]

if __name__ == "__main__":
    sys.exit(main_of_cases([(case.__name__, case) for case in CASES], __doc__.splitlines()[0]))
