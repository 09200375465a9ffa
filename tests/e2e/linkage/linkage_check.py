#!/usr/bin/env python3
"""Records programs that call CUDA in every way that programs do, and every call that allocates.

Usage: linkage_check.py --build DIR [--part way|call] [NAME...]

Each recording must hold what the simulated device reports, and each call of the program as one
event under the name of the outermost function that could be seen. NAMEs select cases. The last
line of the output is "N passed, N failed".
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import truth  # noqa: E402
from rig import PROGRAMS, Rig, run_cases  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402


def check(recording, runtime=True):
    """Checks that the recording is complete and agrees with the device and the program. Without
    `runtime`, only the driver's calls can be seen."""
    calls = recording.result()["calls"]
    recording.check_whole()
    recording.check_against_the_device()
    lines = recording.events()
    want, have = truth.reported(calls, runtime), truth.named(lines)
    assert have == want, f"recorded {have}, called {want}"
    wrong = truth.wrong_memory(lines)
    assert wrong is None, wrong
    return lines


def live_at_the_end(lines):
    """Returns what is still allocated after all events: (kind, address) -> size."""
    live = {}
    for line in lines:
        kind, address = line["kind"], line.get("address", 0)
        if kind in ("alloc", "register", "import", "map", "reserve", "create"):
            live[line.get("memory"), address] = line["size"]
        elif kind in ("free", "unregister", "unimport", "unmap", "unreserve", "release"):
            live.pop((line.get("memory"), address), None)
    return live


# ---- Linked with a runtime -----------------------------------------------------------------------


def way_linked(rig, folder):
    check(rig.run(folder, rig.built("linked"), simulated=False))


def way_linked_under_the_preloaded_device(rig, folder):
    check(rig.run(folder, rig.built("linked")))


def way_linked_to_cuda_12(rig, folder):
    check(rig.run(folder, rig.built("linked_12"), simulated=False))


def way_linked_to_the_static_runtime(rig, folder):
    check(rig.run(folder, rig.built("linked_static"), simulated=False), runtime=False)


def way_linked_per_thread_default_stream(rig, folder):
    check(rig.run(folder, rig.built("linked_per_thread"), simulated=False))


def way_linked_to_a_driver_that_answers_through_its_got(rig, folder):
    driver = str(rig.build / "simcuda-got" / "libcuda.so.1")
    for program in ("linked", "linked_static", "linked_per_thread"):
        place = folder / program
        (place / "sessions").mkdir(parents=True, mode=0o700)
        recording = rig.run(place, rig.built(program), simulated=False, LD_PRELOAD=driver)
        check(recording, runtime=program != "linked_static")


# ---- Opened and looked up ------------------------------------------------------------------------


def way_plugin_opened_for_itself(rig, folder):
    plugin = rig.build / "tests" / "programs" / "libplugin_13.so"
    check(rig.run(folder, rig.built("plugin_host", "--local", plugin), simulated=False))


def way_plugin_that_prefers_its_own(rig, folder):
    """If the runtime is already in the process, its driver calls are seen. A runtime that the
    plugin loads for itself bypasses every preloaded library, and this is reported."""
    plugin = rig.build / "tests" / "programs" / "libplugin_13.so"
    host = rig.built("plugin_host", "--deepbind", plugin)
    seen, unseen = folder / "seen", folder / "unseen"
    for place in (seen, unseen):
        (place / "sessions").mkdir(parents=True, mode=0o700)
    check(rig.run(seen, host), runtime=False)
    done = rig.run(unseen, host, simulated=False).done
    assert done.returncode == 0, done
    assert "libcuda.so.1 was loaded, but none of its calls could be seen" in done.stderr, done


def way_both_runtimes_in_one_process(rig, folder):
    plugins = [rig.build / "tests" / "programs" / f"libplugin_{major}.so" for major in (12, 13)]
    recording = rig.run(folder, rig.built("plugin_host", *plugins, plugins[0]), simulated=False)
    check(recording)


def way_looked_up_in_a_handle(rig, folder):
    check(rig.run(folder, rig.built("looked_up"), simulated=False))


def way_looked_up_in_everything(rig, folder):
    check(rig.run(folder, rig.built("looked_up", "--default"), simulated=False))


def way_looked_up_with_a_version(rig, folder):
    command = rig.built("looked_up", "--version", "libcudart.so.13")
    check(rig.run(folder, command, simulated=False))
    place = folder / "default"
    (place / "sessions").mkdir(parents=True, mode=0o700)
    check(rig.run(place, [*command, "--default"], simulated=False))


def way_ctypes(rig, folder):
    program = [sys.executable, PROGRAMS / "linkage" / "by_ctypes.py"]
    check(rig.run(folder, program))
    place = folder / "process"
    (place / "sessions").mkdir(parents=True, mode=0o700)
    check(rig.run(place, [*program, "--process"]))


# ---- The driver without a runtime ----------------------------------------------------------------


def driver_only(rig, folder, way):
    check(rig.run(folder, rig.built("driver_only", way), simulated=False))


def way_driver_by_dlsym(rig, folder):
    driver_only(rig, folder, "dlsym")


def way_driver_by_proc_address_of_cuda_12(rig, folder):
    driver_only(rig, folder, "five")


def way_driver_by_proc_address_of_cuda_11(rig, folder):
    driver_only(rig, folder, "four")


def way_driver_by_proc_address_of_an_old_program(rig, folder):
    driver_only(rig, folder, "old")


def way_driver_as_the_runtime_finds_it(rig, folder):
    driver_only(rig, folder, "runtime")


def way_driver_per_thread_default_stream(rig, folder):
    driver_only(rig, folder, "per_thread")


def way_driver_through_its_got(rig, folder):
    driver = str(rig.build / "simcuda-got" / "libcuda.so.1")
    for way in ("dlsym", "five", "four", "old", "runtime", "per_thread"):
        place = folder / way
        (place / "sessions").mkdir(parents=True, mode=0o700)
        command = rig.built("driver_only", way)
        check(rig.run(place, command, simulated=False, LD_PRELOAD=driver))


def way_driver_from_the_runtime(rig, folder):
    check(rig.run(folder, rig.built("entry_point"), simulated=False))
    place = folder / "by-version"
    (place / "sessions").mkdir(parents=True, mode=0o700)
    check(rig.run(place, rig.built("entry_point", "--by-version"), simulated=False))


# ---- Other preloaded libraries -------------------------------------------------------------------


def beside_another_preload(rig, folder, order):
    """`order` makes LD_PRELOAD from the other library's path and ours. Both see every call."""
    other = str(rig.build / "tests" / "programs" / "libcounting_preload.so")
    counts = folder / "counts"
    recording = rig.preload(
        folder,
        rig.built("linked"),
        simulated=False,
        LD_PRELOAD=":".join(order(other, rig.library())),
        COUNTING_PRELOAD=str(counts),
    )
    check(recording)
    called = collections.Counter(call["api"] for call in recording.result()["calls"])
    counted = json.loads(counts.read_text())
    for name in ("cudaMalloc", "cudaFree"):
        assert counted[name] == called[name], (counted, called)


def way_before_another_preload(rig, folder):
    beside_another_preload(rig, folder, lambda other, ours: (ours, other))


def way_after_another_preload(rig, folder):
    beside_another_preload(rig, folder, lambda other, ours: (other, ours))


# ---- No CUDA at all ------------------------------------------------------------------------------


def way_without_a_driver(rig, folder):
    program = rig.built("no_driver")
    alone = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    recording = rig.run(folder, program, simulated=False)
    assert recording.done.returncode == 0, recording.done.stderr
    *probes, weak = alone.splitlines()
    *traced, traced_weak = recording.done.stdout.splitlines()
    assert traced == probes, (probes, traced)
    assert weak == "weak cudaMalloc: absent", weak
    # This cannot be avoided; the function behind the reference reports it.
    assert traced_weak == "weak cudaMalloc: returns an error", traced_weak
    assert not list(folder.glob("*.gmt"))


def way_that_only_counts_devices(rig, folder):
    """No message appears if the driver is loaded but nothing is allocated from it."""
    for command in (rig.built("count_devices_linked"), rig.built("count_devices", "--dlsym")):
        done = rig.preload(folder, command, simulated=False).done
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", ""), done
    assert not list(folder.glob("*.gmt"))


# ---- Every call ----------------------------------------------------------------------------------


def call_of_every_kind(rig, folder):
    recording = rig.run(folder, rig.built("every_call"), simulated=False)
    lines = check(recording)
    assert live_at_the_end(lines) == {}, live_at_the_end(lines)
    exit = {s["name"]: s for s in recording.info()["snapshots"]}["exit"]
    assert exit["allocations"] == 0, exit


def call_of_every_kind_leaves_what_it_leaks(rig, folder):
    recording = rig.run(folder, rig.built("every_call", "--leak"), simulated=False)
    lines = check(recording)
    acquired = ("alloc", "import", "map", "create")
    kinds = {line["memory"] for line in lines if line["kind"] in acquired}
    assert kinds == {
        "device", "managed", "pinned", "pool", "array", "mipmapped", "ipc", "external", "graphics",
        "graph", "vmm", "multicast",
    }, kinds  # fmt: skip
    at_end = recording.report("--at", "end")
    live = sum(h["live_bytes"] for d in at_end["devices"] for h in d["heaps"])
    assert live > 0 and live == sum(row["bytes"] for row in at_end["rows"]), at_end


STREAM_KINDS = ("stream", "event_record", "event_wait", "sync", "graph")
LEGACY, PER_THREAD = 0, 2  # CU_STREAM_PER_THREAD


def check_streams(recording, default_stream):
    """Checks that each call is one event under its own name, with its objects."""
    recording.check_whole()
    lines = recording.events()
    memory = ("cudaMalloc", "cudaFree", "cuMemAlloc_v2", "cuMemFree_v2")
    want = [c["api"] for c in recording.result()["calls"] if c["api"] not in memory]
    assert "cudaStreamWaitEvent" in {name.removesuffix("_ptsz") for name in want}, want
    events = [line for line in lines if line["kind"] in STREAM_KINDS and "api" in line]
    assert [e["api"] for e in events] == want, ([e["api"] for e in events], want)

    made = [e for e in events if e.get("action") == "create"]
    assert [e["priority"] for e in made] == [-1, 0, 0, -3, 0, -5], made
    assert [e.get("flags", 0) for e in made] == [16, 0, 16, 16, 0, 16], made
    ended = [e["stream"] for e in events if (e["kind"], e.get("action")) == ("stream", "destroy")]
    assert sorted(ended) == sorted(e["stream"] for e in made), (ended, made)

    recorded = [(e["object"], e["stream"]) for e in events
                if e["kind"] == "event_record" and "action" not in e]  # fmt: skip
    gone = [e["object"] for e in events
            if (e["kind"], e.get("action")) == ("event_record", "destroy")]  # fmt: skip
    assert sorted(set(gone)) == sorted({event for event, _ in recorded}), (gone, recorded)
    waits = [(e["object"], e["stream"]) for e in events if e["kind"] == "event_wait"]
    plain, free_running, urgent = (e["stream"] for e in made[1:4])
    assert [stream for _, stream in recorded[:2]] == [plain, urgent], recorded
    assert waits[0] == (recorded[0][0], free_running), (waits, recorded)
    syncs = [(e["action"], e.get("stream"), "duration_ns" in e, "stack" in e)
             for e in events if e["kind"] == "sync"]  # fmt: skip
    assert syncs[:5] == [
        ("event", None, False, False),
        ("event", None, True, True),
        ("stream", plain, False, False),
        ("stream", default_stream, True, True),
        ("device", None, True, True),
    ], syncs
    made_in = {e.get("context") for e in made}
    assert len(made_in) == 1 and None not in made_in, made
    default = [e.get("context") for e in events if e.get("stream") in (LEGACY, PER_THREAD)]
    assert set(default) == made_in, default
    graphs = [(e["action"], e["stream"]) for e in events if e["kind"] == "graph"]
    assert graphs[:3] == [
        ("begin_capture", plain), ("end_capture", plain), ("launch", urgent)
    ], graphs  # fmt: skip


def call_of_every_kind_of_stream(rig, folder):
    check_streams(rig.run(folder, rig.built("stream_calls"), simulated=False), LEGACY)


def call_of_every_kind_of_stream_per_thread(rig, folder):
    recording = rig.run(folder, rig.built("stream_calls_per_thread"), simulated=False)
    check_streams(recording, PER_THREAD)


def call_of_every_kind_in_cuda_12(rig, folder):
    lines = check(rig.run(folder, rig.built("every_call_12"), simulated=False))
    assert live_at_the_end(lines) == {}, live_at_the_end(lines)


def call_that_frees_what_is_odd(rig, folder):
    check(rig.run(folder, rig.built("frees"), simulated=False))


def call_that_frees_and_is_refused(rig, folder):
    recording = rig.run(
        folder,
        rig.built("frees", "--refused"),
        simulated=False,
        SIMCUDA_FAIL="cuMemFree_v2:4=700,cuMemRelease:1=700",
    )
    lines = check(recording)
    assert live_at_the_end(lines) == {}, live_at_the_end(lines)
    frees = [line for line in lines if line["kind"] == "free_done" and line.get("result")]
    assert any(line["result"] == 700 for line in frees), frees


def call_that_ends_a_context(rig, folder):
    recording = rig.run(folder, rig.built("contexts"), simulated=False)
    lines = check(recording)
    live = live_at_the_end(lines)
    assert live == {}, live
    resets = collections.Counter(l["api"] for l in lines if l["kind"] == "context_reset")
    assert resets == {
        "cuCtxDestroy_v2": 2,
        "cuDevicePrimaryCtxReset_v2": 2,
        "cuDevicePrimaryCtxRelease_v2": 1,
        "cudaDeviceReset": 1,
    }, resets
    # A context is recorded at the first allocation in it, or when it is created later than that.
    met = [line["object"] for line in lines if line["kind"] == "context_create"]
    assert len(met) == len(set(met)) == 3, met


def call_that_ends_a_context_and_is_refused(rig, folder):
    recording = rig.run(
        folder,
        rig.built("contexts", "--refused"),
        simulated=False,
        SIMCUDA_FAIL="cuCtxDestroy_v2:1=700,cuDevicePrimaryCtxReset_v2:1=700",
    )
    lines = check(recording)
    resets = collections.Counter(line["api"] for line in lines if line["kind"] == "context_reset")
    assert resets["cuCtxDestroy_v2"] == 2 and resets["cuDevicePrimaryCtxReset_v2"] == 2, resets
    refused = [line for line in lines if line["kind"] == "free_done" and line.get("result")]
    assert len(refused) == 6 + 7, len(refused)
    exit = {s["name"]: s for s in recording.info()["snapshots"]}["exit"]
    assert exit["allocations"] == 0, exit


def call_of_any_kind_at_random_in_many_threads(rig, folder):
    for seed in seeds(1):  # a seed repeats a run as far as thread timing allows
        place = folder / str(seed)
        (place / "sessions").mkdir(parents=True, mode=0o700)
        command = rig.built("mixed_calls", "--count", "400", "--seed", str(seed))
        recording = rig.run(place, command, simulated=False, SIMCUDA_MEMORY="256M")
        assert recording.done.returncode == 0, recording.done.stderr
        info = recording.check_whole()
        assert info["losses"].get("before_session", 0) == 0, info["losses"]
        recording.check_against_the_device()
        exit = {s["name"]: s for s in info["snapshots"]}["exit"]
        assert exit["allocations"] == 0, exit
        shutil.rmtree(place)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=("way", "call"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    for name in ("LD_PRELOAD", "SIMCUDA_FAIL", "SIMCUDA_LOG"):
        os.environ.pop(name, None)
    cases = [
        (name, case)
        for name, case in globals().items()
        if name.startswith((f"{args.part or 'way'}_", f"{args.part or 'call'}_"))
        and (not args.names or name in args.names)
    ]
    return run_cases(Rig(args.build.resolve(), None), cases)


if __name__ == "__main__":
    sys.exit(main())
