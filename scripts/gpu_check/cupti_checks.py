"""CUPTI: its records arrive, agree with the hooks, and torch.profiler keeps working."""

import collections
import json

from . import recording
from .rig import PROGRAMS, Failed

OTHERWISE = 2 | 4  # bits of `flags`: seen by CUPTI, or inside another call
COPIES = PROGRAMS / "on_gpu" / "copies.py"
PROFILED = PROGRAMS / "on_gpu" / "profiled.py"
MODES = ("auto", "full")


def _source(run):
    return run.info()["sources"].get("cupti") or "not recorded"


def _is_on(rig, table, run, what):
    """Returns whether CUPTI was used. The simulated device may lack it; a real one must not."""
    source = _source(run)
    if source.startswith("on"):
        table.note(f"{what}: source", source)
        return True
    if rig.simulated and rig.built("../../simcuda/libcupti.so.13") is None:
        table.absent(what, f"{source}; the simulated device has no CUPTI")
    else:
        table.fail(what, source, "on")
    return False


def streams(rig, table):
    """`auto`: lifetimes of streams, graphs and modules. The calls themselves are recorded in all modes."""
    program = rig.built("stream_calls")
    if program is None:
        table.absent("calls of streams", "stream_calls is not built")
        return
    memory = ("cudaMalloc", "cudaFree", "cuMemAlloc_v2", "cuMemFree_v2")
    for mode in ("off", *MODES):
        run = rig.record(f"streams-{mode}", [program], "--cupti", mode, seconds=40)
        want = [c["api"] for c in run.reported() if c["api"] not in memory]
        kinds = ("stream", "event_record", "event_wait", "sync", "graph")
        seen = [e for e in run.of_kind(*kinds) if "api" in e and not e.get("flags", 0) & OTHERWISE]
        difference = recording.first_difference(want, [e["api"] for e in seen])
        table.expect(f"--cupti {mode}: each stream call is one event", difference or f"{len(seen)} calls",
                     f"{len(want)} calls", ok=difference is None)
        waits = [e["duration_ns"] for e in seen if e["kind"] == "sync" and "duration_ns" in e]
        table.note(f"--cupti {mode}: synchronisation", f"{len(waits)} waits, at most {max(waits, default=0)} ns")
        if mode == "off" or not _is_on(rig, table, run, f"--cupti {mode}"):
            continue
        graphs = collections.Counter(e.get("action") for e in run.of_kind("graph"))
        table.expect(f"--cupti {mode}: graphs instantiated and destroyed", graphs["instantiate"], 2,
                     ok=graphs["instantiate"] >= 2 and graphs["destroy"] >= 2)
        modules = run.of_kind("module")
        table.note(f"--cupti {mode}: modules", f"{len(modules)}, {sum(e.get('value', 0) for e in modules)} B")
        losses = run.info()["losses"]
        table.expect(f"--cupti {mode}: records lost", losses.get("activities_dropped", 0), 0)


def copies(rig, table):
    """`full`: the bytes that the device copied and filled."""
    run = rig.record("copies", [rig.python, COPIES], "--cupti", "full", seconds=60)
    if not _is_on(rig, table, run, "copies"):
        return
    said = run.last_line()
    seen = collections.defaultdict(list)
    for event in run.of_kind("copy"):
        seen[event["action"]].append(event["value"])
    for action, sizes in said.items():
        table.expect(f"records of {action}", sorted(seen[action]), sorted(sizes))
    times = [e.get("duration_ns", 0) for e in run.of_kind("copy")]
    table.expect("durations of copies", f"{min(times, default=0)} to {max(times, default=0)} ns", "more than 0",
                 ok=rig.simulated or (times and min(times) > 0))
    begun = next((e["t_ns"] for e in run.events() if e["kind"] == "stream" and e.get("action") == "create"), 0)
    late = [e for e in run.of_kind("copy") if e["t_ns"] < begun or e["t_ns"] > run.info()["duration_ns"]]
    table.expect("copies before their stream's creation or after the end", len(late), 0)


def witnesses(rig, table):
    """`full`: compares memory reported by CUPTI with memory seen by the hooks, by kind."""
    program = rig.built("every_call")
    if program is None:
        table.absent("memory seen by both", "every_call is not built")
        return
    run = rig.record("witnesses", [program, "linear", "host", "arrays", "pools", "graph", "vmm"], "--cupti", "full",
                     seconds=60)
    if not _is_on(rig, table, run, "memory seen by both"):
        return
    ours, theirs, sizes = collections.Counter(), collections.Counter(), collections.Counter()
    kind_of = {}
    for event in run.events():
        if event["kind"] in ("alloc", "create") and event.get("heap") in ("driver", "host"):
            ours[event["address"], event["size"]] += 1
            kind_of[event["address"], event["size"]] = event.get("memory")
        elif event["kind"] == "witness" and event.get("action") == "alloc":
            theirs[event["object"], event["value"]] += 1
        elif event["kind"] == "witness" and event.get("action") == "free":
            sizes[bool(event.get("value"))] += 1
    by_kind = collections.defaultdict(lambda: [0, 0])
    for key, count in ours.items():
        by_kind[kind_of[key]][0] += count
        by_kind[kind_of[key]][1] += min(count, theirs[key])
    for kind, (count, both) in sorted(by_kind.items()):
        if kind in ("device", "managed", "pinned"):
            table.expect(f"memory {kind}: also seen by CUPTI", both, count)
        else:
            table.note(f"memory {kind}: also seen by CUPTI", f"{both} of {count}")
    only = theirs - ours
    table.keep("only CUPTI", [list(key) for key in only])
    table.note("allocations seen only by CUPTI", f"{sum(only.values())}, {sum(size or 0 for _, size in only)} B")
    said = run.info().get("cross_check")
    table.keep("the product's own comparison", said)
    if said:  # excludes memory that is known not to be covered
        wrong = [said[key] for key in ("only_cupti", "only_recording", "sizes_differ")]
        table.expect("info: only CUPTI, only recording, different size", wrong, [0, 0, 0])
        table.expect("info: allocations compared", said["allocations"], "some", ok=said["allocations"] > 0)
    table.note("free records with a size", f"{sizes[True]} of {sum(sizes.values())}")


def own_memory(rig, table):
    """The device memory that CUPTI uses itself."""
    program = rig.built("memory_steps")
    if program is None:
        table.absent("CUPTI's own memory", "memory_steps is not built")
        return
    free = {}
    for mode in ("off", *MODES):
        run = rig.record(f"own-{mode}", [program], "--cupti", mode, seconds=60)
        if mode != "off" and not _is_on(rig, table, run, f"CUPTI's own memory, {mode}"):
            return
        steps = run.last_line()["steps"]
        free[mode] = {what: next(s["free"] for s in steps if s["what"] == what) for what in ("context", "end")}
    for mode in MODES:
        taken = {what: free["off"][what] - free[mode][what] for what in ("context", "end")}
        table.note(f"device memory used by --cupti {mode}", f"{taken['context']} B with the context, "
                   f"{taken['end']} B at the end")


def profiler(rig, table):
    """torch.profiler sees the same kernels with recording as without, twice in one process."""
    command = [rig.python, PROFILED]
    alone = json.loads(rig.plain(command, seconds=60).stdout.strip().splitlines()[-1])
    if not min(alone["kernels"]):
        table.absent("torch.profiler during recording", f"without recording it sees {alone['kernels']} kernels")
        return
    for mode in MODES:
        try:
            run = rig.record(f"profiled-{mode}", command, "--cupti", mode, seconds=60)
        except Failed as failed:
            table.fail(f"torch.profiler with --cupti {mode}", str(failed))
            continue
        said = run.last_line()
        table.expect(f"torch.profiler with --cupti {mode}: kernels, copies", (said["kernels"], said["copies"]),
                     (alone["kernels"], alone["copies"]))
        changes = [e for e in run.of_kind("source") if "cupti" in json.dumps(e)]
        table.keep(f"sources, {mode}", changes)
        table.note(f"--cupti {mode}: owner of CUPTI changed", f"{len(changes)} times; at the end: {_source(run)}")
