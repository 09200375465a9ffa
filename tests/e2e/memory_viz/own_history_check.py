#!/usr/bin/env python3
"""Compares PyTorch's own snapshot with our export of the same process, on the simulated device: the same events in the same
order, the same segments and blocks, the same settings. Sizes are the requested ones for blocks of tensors, otherwise rounded.

Usage: own_history_check.py --build DIR [--python PYTHON]
"""

import argparse
import json
import pathlib
import pickle
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as rigs  # noqa: E402
import rules  # noqa: E402

SKIPPED = 77
PROGRAM = '''
import json, sys, time
import torch

def main():
    torch.cuda.memory._record_memory_history(stacks="python", context="alloc")
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    side = torch.cuda.Stream()
    for _ in range(4):
        x = torch.randn(64, 256, device="cuda")
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.cuda.stream(side):
            y = torch.empty(3 << 20, device="cuda")
        y.record_stream(torch.cuda.current_stream())
        (x @ x.t()).sum()
        del y
    big = torch.empty(40 << 20, device="cuda")
    del big
    torch.cuda.empty_cache()
    try:
        torch.empty(10**12, device="cuda")
    except torch.OutOfMemoryError:
        pass
    with torch.cuda.stream(side):
        y = torch.empty(3 << 20, device="cuda")
    y.record_stream(torch.cuda.current_stream())
    (x @ x.t()).sum()
    del y
    torch.cuda.memory._dump_snapshot(sys.argv[1])
    time.sleep(0.02)
    print(json.dumps({"dumped_unix_ns": time.time_ns()}))
    time.sleep(0.02)

main()
'''
SETTINGS = {"plain": "", "expandable": "expandable_segments:True", "rounded": "roundup_power2_divisions:4,max_split_size_mb:64"}
ROUNDING = 512


def events_of(snapshot):
    """Returns the events except the taking of snapshots, whose times differ between the recorders."""
    events = [e for e in snapshot["device_traces"][0] if e["action"] != "snapshot"]
    of_block = ("alloc", "free_requested", "free_completed")
    return [(e["action"], e.get("addr"), None if e["action"] in of_block else e["size"], e["stream"]) for e in events]


def state(snapshot):
    keys = ("device", "address", "total_size", "allocated_size", "active_size", "stream", "segment_type",
            "segment_pool_id", "is_expandable")
    return [(*(s[k] for k in keys), [(b["address"], b["size"], b["state"]) for b in s["blocks"]])
            for s in snapshot["segments"]]


def first_difference(what, theirs, ours):
    for i, pair in enumerate(zip(theirs, ours)):
        if pair[0] != pair[1]:
            return [f"{what} {i}: PyTorch has {pair[0]}, the export {pair[1]}"]
    return [] if len(theirs) == len(ours) else [f"{len(theirs)} {what}s in PyTorch's snapshot, {len(ours)} in the export"]


def sizes_differ(theirs, ours):
    """The block of a tensor has the requested size, any other block at least that."""
    pairs = list(zip(*([e for e in s["device_traces"][0] if e["action"] == "alloc"] for s in (theirs, ours))))
    tensors = [(a, b) for a, b in pairs if "user_metadata" in b]
    others = [(a, b) for a, b in pairs if "user_metadata" not in b]
    wrong = [(a, b) for a, b in tensors if a["size"] != b["size"]]
    wrong += [(a, b) for a, b in others if not a["size"] <= b["size"] or b["size"] % ROUNDING != 0]
    problems = [f"{a['size']} bytes became {b['size']}, {b.get('user_metadata')}" for a, b in wrong[:3]]
    return problems if len(tensors) > len(others) else [*problems, f"only {len(tensors)} of {len(pairs)} are tensors"]


def check(rig, name, setting):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-history.") as folder:
        folder = pathlib.Path(folder)
        (folder / "sessions").mkdir(mode=0o700)
        program, dumped, exported = (folder / f for f in ("program.py", "dumped.pickle", "exported.pickle"))
        program.write_text(PROGRAM, encoding="utf-8")
        recording = rig.run(folder, [rig.python, "-B", program, dumped],
                            PYTORCH_CUDA_ALLOC_CONF=setting, SIMCUDA_LAG="5")
        assert recording.done.returncode == 0, recording.done.stderr[-2000:]
        line = next(t for t in recording.done.stdout.splitlines() if t.startswith('{"dumped'))
        start = next(e for e in recording.events() if e["kind"] == "header")["start_unix_ns"]
        seconds = (json.loads(line)["dumped_unix_ns"] - start) / 1e9
        recording.verb("export", "--format", "torch", recording.path, "-o", exported, "--to", f"{seconds:.6f}")
        theirs, ours = (pickle.loads(f.read_bytes()) for f in (dumped, exported))
    problems = first_difference("event", events_of(theirs), events_of(ours))
    problems += first_difference("segment", state(theirs), state(ours))
    problems += sizes_differ(theirs, ours) + rules.problems(ours)
    stated = {k: v for k, v in theirs["allocator_settings"].items() if ours["allocator_settings"].get(k) != v}
    problems += [f"settings differ: {stated}"] if stated else []
    pending = sum(b["state"] == "active_pending_free" for s in ours["segments"] for b in s["blocks"])
    blocks = sum(len(rules.live_blocks(s)) for s in ours["segments"])
    print(f"{'FAIL' if problems else 'ok  '} {name}: {len(events_of(ours))} events, {blocks} blocks, {pending} pending")
    print(*(f"     {p}" for p in problems[:5]), sep="\n", end="\n" if problems else "")
    return not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    arguments = parser.parse_args()
    python = rigs.find_python(arguments.python)
    if python is None:
        print("skipped: no Python with PyTorch; run scripts/setup, or set GMT_TORCH_PYTHON")
        sys.exit(SKIPPED)
    rig = rigs.Rig(arguments.build.resolve(), python)
    results = [check(rig, name, setting) for name, setting in SETTINGS.items()]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
