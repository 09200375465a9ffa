#!/usr/bin/env python3
"""CUPTI: its data is recorded, and other users of CUPTI get the same data as without recording.

Usage: cupti_check.py --build DIR [--part records|shared|torch] [--python PYTHON] [NAME...]

Runs on the simulated device's libcupti, which follows NVIDIA's rules: one subscriber, and delayed buffers. NAMEs select
cases. The last line of the output is "N passed, N failed".
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import PROGRAMS, Rig, find_python, run_cases  # noqa: E402

STREAM_UNKNOWN, INSIDE_CALL, BY_CUPTI = 8, 4, 2
AUTO = "on: streams, contexts, modules, graphs, synchronisation"
FULL = AUTO + ", copies, memory"
COPIES = 10  # per round of cupti/tool.cc


def source(recording):
    return recording.info()["sources"]["cupti"]


def changes(lines):
    """Returns the owners of CUPTI in order."""
    return [line["text"] for line in lines if line["kind"] == "source" and line["name"] == "cupti"]


def flags(line):
    return line.get("flags", 0)


def program(rig, folder, *command, mode="auto", **environment):
    recording = rig.run(
        folder, rig.built(*command), ["--cupti", mode], simulated=False, **environment
    )
    assert recording.done.returncode == 0, recording.done
    recording.check_whole()
    return recording


# ---- Recorded data -------------------------------------------------------------------------------


def of(lines, kind, **fields):
    return [
        line
        for line in lines
        if line["kind"] == kind and all(line.get(k) == v for k, v in fields.items())
    ]


def check_streams(lines, truth):
    for action in ("create", "destroy"):
        hooked = of(lines, "stream", stream=truth["hooked"], action=action)
        assert len(hooked) == 1 and not flags(hooked[0]) & BY_CUPTI, hooked
        unseen = of(lines, "stream", stream=truth["unseen"], action=action)
        assert len(unseen) == 1 and flags(unseen[0]) & BY_CUPTI, unseen
        assert "stack" in unseen[0], unseen


def check_graphs(lines, truth):
    for handle, beginning in ((truth["graph"], "create"), (truth["exec"], "instantiate")):
        actions = [line["action"] for line in of(lines, "graph", object=handle)]
        assert actions == [beginning, "destroy"], (handle, actions)


def check_syncs(lines, truth):
    """Each wait is recorded once: three on the stream seen by hooks, one on the other."""
    hooked = of(lines, "sync", stream=truth["hooked"])
    assert len(hooked) == 3 and not any(flags(s) & BY_CUPTI for s in hooked), hooked
    unseen = of(lines, "sync", stream=truth["unseen"])
    assert len(unseen) == 1 and flags(unseen[0]) & BY_CUPTI, unseen
    whole = [s for s in of(lines, "sync", action="device") if not flags(s) & INSIDE_CALL]
    assert [bool(flags(s) & BY_CUPTI) for s in whole] == [False, True], whole
    return unseen[0], whole[1]


def records_auto(rig, folder):
    recording = program(rig, folder, "seen_by_cupti")
    truth, lines = recording.result(), recording.events()
    assert source(recording) == AUTO, source(recording)
    assert changes(lines) == [AUTO], changes(lines)
    check_streams(lines, truth)
    check_graphs(lines, truth)
    check_syncs(lines, truth)
    assert not of(lines, "copy") and not of(lines, "witness"), "auto has no records"


def records_full(rig, folder):
    """With a slow device, so that waits have a duration."""
    recording = program(
        rig, folder, "seen_by_cupti", mode="full", SIMCUDA_KERNEL_TIME="2ms", SIMCUDA_BANDWIDTH="1G"
    )
    truth, lines = recording.result(), recording.events()
    assert source(recording) == FULL, source(recording)
    check_streams(lines, truth)
    check_graphs(lines, truth)
    for sync in check_syncs(lines, truth):
        assert "duration_ns" in sync, sync
    check_copies(lines, truth)
    check_witnesses(lines, truth)


def check_copies(lines, truth):
    have = [(c["action"], c["value"], c["stream"]) for c in of(lines, "copy")]
    want = [
        ("memset", 1 << 20, truth["hooked"]),
        ("memset", 1 << 19, truth["unseen"]),
        ("host_to_device", 4096, truth["hooked"]),
        ("device_to_host", 1024, truth["hooked"]),
    ]
    assert sorted(have) == sorted(want), (have, want)
    # By CUPTI's clock, each copy is between the calls around it.
    witnesses = of(lines, "witness")
    first = min(w["t_ns"] for w in witnesses if w["action"] == "alloc")
    last = max(w["t_ns"] for w in witnesses if w["action"] == "free")
    for copy in of(lines, "copy"):
        assert first <= copy["t_ns"] <= last, (first, copy, last)


def check_witnesses(lines, truth):
    """Memory events of CUPTI equal those of the hooks, in the same order."""
    ours = {
        (line["kind"], line["address"]): line for line in lines if line["kind"] in ("alloc", "free")
    }
    seen = [w for w in of(lines, "witness") if w["action"] in ("alloc", "free")]
    assert {(w["action"], w["object"]) for w in seen} == set(ours), (seen, ours)
    for w in seen:
        mine = ours[w["action"], w["object"]]
        assert w["value"] == mine["size"], (w, mine)
    in_order = [key for key, line in sorted(ours.items(), key=lambda item: item[1]["t_ns"])]
    seen_in_order = [(w["action"], w["object"]) for w in sorted(seen, key=lambda w: w["t_ns"])]
    assert seen_in_order == in_order, (seen_in_order, in_order)
    pooled = [w for w in seen if w["object"] == truth["ordered"]]
    assert [w.get("stream") for w in pooled] == [truth["hooked"]] * 2, pooled


def records_off_by_option(rig, folder):
    recording = program(rig, folder, "seen_by_cupti", mode="off")
    assert source(recording) == "off: by option", source(recording)
    lines = recording.events()
    assert not [line for line in lines if flags(line) & BY_CUPTI and line["kind"] != "free"], lines


def records_refused(rig, folder):
    """Without a driver, and with a driver that is too old."""
    for how, code in (("refuse", "999"), ("off", "15")):
        place = folder / how
        (place / "sessions").mkdir(parents=True, mode=0o700)
        recording = program(rig, place, "seen_by_cupti", mode="full", SIMCUDA_CUPTI=how)
        text = source(recording)
        assert text.startswith("off: libcupti.so.13 refused") and code in text, text
        assert len(of(recording.events(), "sync")) == 4, "the hooks keep working"


def records_waits_inside_a_free(rig, folder):
    """A free that waits is one event, and the wait inside it is another event with a flag."""
    preload = ":".join((rig.library(), str(rig.build / "tests/programs/libwaiting_preload.so")))
    recording = rig.preload(folder, rig.built("seen_by_cupti"), simulated=False, LD_PRELOAD=preload)
    assert recording.done.returncode == 0, recording.done
    lines = recording.events()
    inside = [s for s in of(lines, "sync") if flags(s) & INSIDE_CALL]
    assert len(inside) == 1 and flags(inside[0]) & BY_CUPTI, inside
    frees = of(lines, "free", address=recording.result()["memory"])
    done = of(lines, "free_done", address=recording.result()["memory"])
    assert len(frees) == 1, frees
    assert frees[0]["t_ns"] <= inside[0]["t_ns"] <= done[0]["t_ns"], (frees, inside, done)


def records_more_than_a_buffer_holds(rig, folder):
    recording = program(rig, folder, "cupti_many_copies", 8, 3000, mode="full")
    lines = recording.events()
    assert len(of(lines, "copy", action="host_to_device", value=64)) == 8 * 3000
    assert lines[-2]["losses"]["activities_dropped"] == 0, lines[-2]


def records_what_had_no_room(rig, folder):
    """More threads than buffers: missing records are counted."""
    recording = program(rig, folder, "cupti_many_copies", 300, 4, mode="full")
    lines = recording.events()
    copies = len(of(lines, "copy", action="host_to_device", value=64))
    dropped = [line for line in lines if "losses" in line][-1]["losses"]["activities_dropped"]
    assert copies < 300 * 4, "there were enough buffers for all"
    missing = 300 * 4 - copies
    assert missing <= dropped <= missing + 2, (copies, dropped)  # including those of the allocation


def records_beside_children(rig, folder):
    """A fork does not affect the parent, and the child does not hang."""
    for mode in ("auto", "full"):
        place = folder / mode
        (place / "sessions").mkdir(parents=True, mode=0o700)
        recording = program(rig, place, "cupti_forks", mode=mode)
        lines = recording.events()
        assert source(recording) == (AUTO if mode == "auto" else FULL), source(recording)
        assert len(changes(lines)) == 1, changes(lines)
        if mode == "full":
            assert len(of(lines, "copy", value=64)) == 2, of(lines, "copy")


def records_of_the_runtimes_own_version(rig, folder):
    """Linked to the runtime of CUDA 12: uses its libcupti, although that of CUDA 13 is next to it."""
    recording = rig.run(folder, rig.built("linked_12"), simulated=False)
    assert recording.done.returncode == 0, recording.done
    assert source(recording) == AUTO, source(recording)
    libraries = recording.verb("info", recording.path)
    assert libraries, "readable"


# ---- Shared with another tool --------------------------------------------------------------------


def tool(rig, folder, when, how, mode):
    """Runs the tool alone and with recording. Returns the tool's data and our recording."""
    alone = subprocess.run(
        list(map(str, rig.built("cupti_tool", when, how))), capture_output=True, text=True
    )
    assert alone.returncode == 0, alone
    recording = program(rig, folder, "cupti_tool", when, how, mode=mode)
    without = json.loads(alone.stdout.splitlines()[-1])["rounds"]
    beside = recording.result()["rounds"]
    assert beside == without, f"recorded {beside}, alone {without}"
    assert all(r["subscribe"] == 0 for r in beside), beside
    return beside, recording


def both_modes(rig, folder, when, how, turns):
    for mode, on in (("auto", AUTO), ("full", FULL)):
        place = folder / mode
        (place / "sessions").mkdir(parents=True, mode=0o700)
        rounds, recording = tool(rig, place, when, how, mode)
        have = changes(recording.events())
        want = [on if turn == "on" else f"off: {turn} by cupti_tool" for turn in turns]
        assert have == want, (mode, have, want)
        assert source(recording) == want[-1], source(recording)
        for r in rounds:
            if how == "calls":
                assert r["calls"] > COPIES, r
            else:
                assert r["records"] == COPIES and r["strange"] == 0, r


def shared_with_a_tool_that_subscribed_before(rig, folder):
    both_modes(rig, folder, "before", "calls", ["taken", "given back", "on"])


def shared_with_a_tool_that_subscribes_later(rig, folder):
    both_modes(rig, folder, "later", "calls", ["on", "taken", "given back", "on"])


def shared_with_a_tool_of_records(rig, folder):
    both_modes(rig, folder, "later", "records", ["on", "taken", "given back", "on"])


def shared_with_a_tool_that_ends_cupti(rig, folder):
    both_modes(rig, folder, "later", "ends", ["on", "taken", "given back", "on"])


def shared_twice(rig, folder):
    turns = ["on", "taken", "given back", "on", "taken", "given back", "on"]
    both_modes(rig, folder, "later", "twice", turns)


def shared_while_others_are_at_the_device(rig, folder):
    """Ten changes of the owner of CUPTI with four threads in all kinds of calls and callbacks."""
    for mode in ("auto", "full"):
        place = folder / mode
        (place / "sessions").mkdir(parents=True, mode=0o700)
        recording = program(rig, place, "cupti_tool", "later", "beside", mode=mode)
        for r in recording.result()["rounds"]:
            # A thread in the middle of one of our records may complete it in the tool's buffer.
            assert r["subscribe"] == 0 and r["strange"] <= 4, r
            assert r["records"] >= COPIES and r["calls"] >= COPIES, r
        output = changes(recording.events())
        hands = [text.split(":")[0 if text.startswith("on") else 1] for text in output]
        turns = [" taken by cupti_tool", " given back by cupti_tool", "on"]
        assert hands == ["on", *turns * 10], hands


def shared_with_an_invisible_tool(rig, folder):
    """It subscribed before us: we get an error, and the tool notices nothing."""
    for mode in ("auto", "full"):
        place = folder / mode
        (place / "sessions").mkdir(parents=True, mode=0o700)
        rounds, recording = tool(rig, place, "hidden", "calls", mode)
        assert rounds[0]["calls"] > COPIES, rounds
        assert source(recording).startswith("off: taken by "), source(recording)


# ---- Kineto --------------------------------------------------------------------------------------

# Some versions of Kineto shut down CUPTI from inside the first call after the profile, so make two
# separate calls.
PROFILED = """
import json, sys, time, torch
from torch.profiler import profile, ProfilerActivity
a = torch.randn(256, 256, device="cuda")
rounds = []
for _ in range(int(sys.argv[1])):
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
        b = a @ a
        c = b.to("cpu")
        torch.cuda.synchronize()
    events = [e for e in p.events() if "cuda" in str(e.device_type).lower()]
    calls = [e for e in p.events() if e.name.startswith("cuda")]
    rounds.append({"device": sorted(e.name for e in events), "calls": sorted(e.name for e in calls)})
    for _ in range(2):
        time.sleep(0.2)
        d = torch.empty(64 << 20, device="cuda")
        torch.cuda.synchronize()
        del d
        torch.cuda.empty_cache()
print(json.dumps({"rounds": rounds}))
"""


def kineto(rig, folder, rounds, mode, turns, **environment):
    command = [rig.python, "-c", PROFILED, rounds]
    alone = subprocess.run(
        rig.simulated(command),
        capture_output=True,
        text=True,
        env=rig.environment(folder, environment),
    )
    assert alone.returncode == 0, alone
    recording = rig.run(folder, command, ["--cupti", mode], **environment)
    assert recording.done.returncode == 0, recording.done
    outputs = (alone.stdout, recording.done.stdout)
    want, have = (json.loads(out.strip().splitlines()[-1]) for out in outputs)
    assert want["rounds"][0]["device"], f"the profiler sees nothing even without recording: {want}"
    assert have == want, f"recorded {have}, alone {want}"
    on = AUTO if mode == "auto" else FULL
    wanted = [on if t == "on" else f"off: {t} by libtorch_cpu.so" for t in turns]
    assert changes(recording.events()) == wanted, changes(recording.events())
    output, report = recording.done.stderr.split("\npeak ", 1)
    wrong = [line for line in output.splitlines() if "CUPTI" in line]
    assert wrong == [line for line in alone.stderr.splitlines() if "CUPTI" in line], wrong
    assert "only CUPTI saw" not in report, report


def torch_profiler_twice(rig, folder):
    for mode in ("auto", "full"):
        place = folder / mode
        (place / "sessions").mkdir(parents=True, mode=0o700)
        kineto(rig, place, 2, mode, ["on", "taken"])


def torch_profiler_that_tears_down(rig, folder):
    turns = ["on", "taken", "given back", "on", "taken", "given back", "on"]
    for mode in ("auto", "full"):
        place = folder / mode
        (place / "sessions").mkdir(parents=True, mode=0o700)
        kineto(rig, place, 2, mode, turns, TEARDOWN_CUPTI="1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=("records", "shared", "torch"))
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    python = find_python(args.python)
    parts = (args.part,) if args.part else ("records", "shared", "torch")
    if "torch" in parts and python is None:
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
    cases = [
        (name, case)
        for name, case in globals().items()
        if name.startswith(tuple(f"{part}_" for part in parts)) and callable(case)
    ]
    chosen = [(name, case) for name, case in cases if not args.names or name in args.names]
    return run_cases(Rig(args.build.resolve(), python), chosen)


if __name__ == "__main__":
    sys.exit(main())
