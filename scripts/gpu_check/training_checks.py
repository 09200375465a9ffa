"""A training run of realistic size, compared with PyTorch's own history and counters."""

import json

from .rig import PROGRAMS

TRAIN = PROGRAMS / "train_gpt.py"
SIZE = ["--layers", "12", "--hidden", "768", "--heads", "12", "--batch", "8", "--seq", "512"]
QUICK_SIZE = ["--layers", "2", "--hidden", "256", "--heads", "4", "--batch", "4", "--seq", "128"]
EXPANDABLE = {name: "expandable_segments:True" for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")}

# Runs in the traced process: trains, then prints the data of PyTorch and the driver.
PROBE = r"""
import contextlib, gc, io, json, runpy, sys, time
import torch
free_before, _ = torch.cuda.mem_get_info()
record = json.loads(sys.argv[1])
if record:
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=1 << 20)
program, sys.argv = sys.argv[2], sys.argv[2:]
started, started_processor = time.perf_counter(), time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    runpy.run_path(program, run_name="__main__")
torch.cuda.synchronize()
seconds = time.perf_counter() - started
processor_seconds = time.process_time() - started_processor
free_after, total = torch.cuda.mem_get_info()
gc.collect()
torch.cuda.empty_cache()
result = {
    "seconds": seconds, "processor_seconds": processor_seconds, "total": total,
    "used_by_run": free_before - free_after,
    "reserved": torch.cuda.memory_reserved(), "max_reserved": torch.cuda.max_memory_reserved(),
}
if record:
    traces = torch.cuda.memory._snapshot()["device_traces"]
    result["segments"] = [[e["action"], e["addr"], e["size"]] for trace in traces for e in trace
                          if e["action"].startswith("segment_")]
print(json.dumps(result))
"""


def command(rig, history, steps):
    size = QUICK_SIZE if rig.quick else SIZE
    return [rig.python, "-c", PROBE, json.dumps(history), TRAIN, *size, "--steps", str(steps), "--device", "cuda"]


def device_calls(events):
    """Returns recorded allocations and frees of device memory, with PyTorch's names."""
    names = {"alloc": "segment_alloc", "free": "segment_free"}
    sizes, calls = {}, []
    for event in events:
        if event["kind"] not in names or event.get("heap") != "driver":
            continue
        if event["kind"] == "alloc":
            if event.get("memory", "device") != "device":
                continue
            sizes[event["address"]] = event["size"]
        elif event["address"] not in sizes:
            continue
        bytes_ = sizes[event["address"]]
        if event["kind"] == "free":
            del sizes[event["address"]]
        calls.append([names[event["kind"]], event["address"], bytes_])
    return calls


def peak(calls):
    live = highest = 0
    for action, _, bytes_ in calls:
        live += bytes_ if action in ("segment_alloc", "segment_map") else -bytes_
        highest = max(highest, live)
    return highest, live


def segments(rig, table):
    recording = rig.record("train", command(rig, True, 3 if rig.quick else 10), seconds=100)
    said = recording.last_line()
    calls = device_calls(recording.events())
    theirs = said["segments"]
    known = {address for _, address, _ in theirs}
    ours = [c for c in calls if c[1] in known]
    others = [c for c in calls if c[1] not in known]
    agree = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    table.expect("sequence of segments, compared with PyTorch's history", f"{len(ours)} events, the first {agree} agree",
                 f"{len(theirs)} events", ok=theirs and len(ours) == len(theirs) == agree)
    ours_peak, ours_end = peak(ours)
    table.expect_bytes("peak, compared with max_memory_reserved()", ours_peak, said["max_reserved"])
    table.expect_bytes("after empty_cache(), compared with memory_reserved()", ours_end, said["reserved"])
    table.note("device memory of other libraries", f"{peak(others)[0]} B at its peak, {len(others)} calls")
    report = recording.report()
    heap = next(h for d in report["devices"] if d["index"] is not None for h in d["heaps"] if h["heap"] == "driver")
    table.expect_bytes("peak of the report, compared with the sum of the events", heap["peak_live_bytes"], peak(calls)[0])
    lost, written = recording.losses()
    table.expect("events lost", f"{lost} of {written}", f"0 of {written}")
    table.note("cuMemGetInfo over the run",
               f"{said['used_by_run']} B additional usage, {peak(calls)[0]} B recorded at the peak")


def expandable(rig, table):
    recording = rig.record("expandable", command(rig, True, 3), seconds=100, **EXPANDABLE)
    said = recording.last_line()
    if not any(action == "segment_map" for action, _, _ in said["segments"]):
        table.absent("expandable segments", "PyTorch did not use them")
        return
    names = {"map": "segment_map", "unmap": "segment_unmap"}
    mapped, calls = {}, []
    for event in recording.events():
        if event["kind"] == "map":
            mapped[event["address"]] = event["size"]
        if event["kind"] in names:
            calls.append([names[event["kind"]], event["address"], event.get("size") or mapped[event["address"]]])
    table.expect_bytes("expandable segments: peak, compared with max_memory_reserved()", peak(calls)[0], said["max_reserved"])
    for action in names.values():
        table.expect_bytes(f"expandable segments: sum of {action}", sum(c[2] for c in calls if c[0] == action),
                           sum(s[2] for s in said["segments"] if s[0] == action))
