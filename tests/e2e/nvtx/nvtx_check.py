#!/usr/bin/env python3
"""NVTX calls of programs, in recordings of the simulated device.

Usage: nvtx_check.py --build DIR [--part plain|python] [--python PYTHON] [NAME...]

The programs are compiled with NVTX's own headers, each containing a copy of NVTX. Cases of the part `python` need a Python
with PyTorch and the package `nvtx`. NAMEs select cases. The last line of the output is "N passed, N failed".
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import MIB, Rig, find_python, run_cases  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def notes(recording, *kinds):
    return [e for e in recording.events() if e["kind"] in kinds]


def texts(events):
    return [(e["kind"], e.get("name", ""), e.get("domain", "")) for e in events]


def nesting(recording):
    """Returns ranges as (name, domain), each with the ranges that were open when it began."""
    open_ranges, found = {}, []
    for e in notes(recording, "range_begin", "range_end"):
        if e["kind"] == "range_begin":
            label = (e.get("name", ""), e.get("domain", ""))
            found.append((label, [known for known in open_ranges.values()]))
            open_ranges[e["range"]] = label
        else:
            del open_ranges[e["range"]]  # every end has a beginning and is unique
    assert not open_ranges, open_ranges
    return found


def calls(rig, *words):
    return rig.built("nvtx_calls", *words)


# ---- Ranges, marks, names ---------------------------------------------------------------------------


def plain_marks_have_their_text_color_and_domain(rig, folder):
    recording = rig.run(folder, calls(rig, "every"))
    assert recording.done.returncode == 0, recording.done.stderr
    recording.check_whole()
    marks = notes(recording, "mark")
    assert [(e.get("name", ""), e.get("domain", ""), e.get("color", 0)) for e in marks] == [
        ("mark ex", "", 0xFF112233),
        ("mark wä€\U0001f600", "", 0),
        ("mark a", "", 0),
        ("mark w", "", 0),
        ("", "", 0),
        ("in domain a", "domain a", 0xFF445566),
        ("registered w", "domain w", 0),
    ], marks
    assert recording.info()["sources"]["nvtx"] == "on", recording.info()["sources"]


def plain_ranges_begin_and_end_once(rig, folder):
    recording = rig.run(folder, calls(rig, "every"))
    found = nesting(recording)
    plain, a, w = ("", "domain a", "domain w")
    assert found == [
        (("start a", plain), []),
        (("start w", plain), [("start a", plain)]),
        (("start ex", plain), [("start a", plain), ("start w", plain)]),
        (("push a", plain), []),
        (("push w", plain), [("push a", plain)]),
        (("push ex", plain), [("push a", plain), ("push w", plain)]),
        (("registered a", a), []),
        (("registered a", a), [("registered a", a)]),
        (("registered w", w), [("registered a", a), ("registered a", a)]),
    ], found
    colored = [e for e in notes(recording, "range_begin") if e.get("name") == "start ex"]
    assert colored[0]["color"] == 0x80FF0000, colored


def plain_streams_threads_and_devices_have_names(rig, folder):
    recording = rig.run(folder, calls(rig, "every"))
    events = recording.events()
    streams = [(e["stream"], e["name"]) for e in events if e["kind"] == "stream" and e.get("action") == "name"]
    assert streams == [
        (0x5100, "stream a"),
        (0x5200, "stream w"),
        (0x5100, "stream cu"),
        (0x5200, "stream cu w"),
        (0x5300, "stream resource"),
    ], streams
    devices = [(e["device"], e["name"]) for e in events if e["kind"] == "device" and e.get("action") == "name"]
    assert devices == [
        (0, "device a"),
        (0, "device w"),
        (0, "device cu"),
        (0, "device cu w"),
    ], devices
    main = recording.info()["target"]["pid"]
    threads = [
        (e["thread"], e["name"])
        for e in events
        if e["kind"] == "thread" and e["name"] != "nvtx_calls"  # the kernel's name for it
    ]
    assert threads == [
        (main, "thread a"),
        (4711, "thread w"),
        (main, "thread resource"),
        (4712, "native thread"),
    ], threads


def plain_calls_before_the_first_gpu_call_are_reported(rig, folder):
    recording = rig.run(folder, calls(rig, "early"))
    assert recording.done.stdout == "-1\n", recording.done.stdout
    kinds = ("mark", "range_begin", "range_end", "thread", "stream")
    events = [e for e in notes(recording, *kinds) if e.get("name", "nvtx_calls") != "nvtx_calls"]
    assert texts(events) == [
        ("thread", "early thread", ""),
        ("stream", "early stream", ""),
        ("range_begin", "epoch", ""),
        ("range_begin", "early string", "early domain"),
        ("range_end", "epoch", ""),
    ], texts(events)


def plain_program_without_gpu_calls_leaves_nothing(rig, folder):
    recording = rig.run(folder, calls(rig, "idle"))
    assert recording.done.stdout.startswith("-1\n"), recording.done.stdout
    assert not recording.path.exists() and not list((folder / "sessions").iterdir())


def plain_levels_are_those_of_the_domain(rig, folder):
    recording = rig.run(folder, calls(rig, "levels"))
    levels = "0 1 0 2 2 1 0 0 -1 -1 "
    assert recording.done.stdout.splitlines()[:2] == [levels, levels], recording.done.stdout


def plain_nothing_is_recorded_where_nvtx_is_not_wanted(rig, folder):
    recording = rig.run(folder, calls(rig, "every"), ["--heap", "driver+host"])
    assert not notes(recording, "mark", "range_begin", "range_end"), recording.events()
    assert recording.info()["sources"]["nvtx"].startswith("off: heap="), recording.info()
    levels = rig.run(folder, calls(rig, "levels"), ["--heap", "driver"]).done.stdout.splitlines()
    assert levels[1].split() == 10 * ["-2"], levels


def plain_preload_alone_says_why_there_is_nothing(rig, folder):
    recording = rig.preload(folder, calls(rig, "every"))
    assert not notes(recording, "mark", "range_begin", "range_end"), recording.events()
    source = recording.info()["sources"]["nvtx"]
    assert source.startswith("off: NVTX_INJECTION64_PATH"), source


def plain_preload_records_it_where_the_variable_is_set(rig, folder):
    recording = rig.preload(folder, calls(rig, "every"), NVTX_INJECTION64_PATH=rig.library())
    assert len(notes(recording, "mark")) == 7, recording.events()


def plain_variable_that_names_another_copy_of_the_library(rig, folder):
    copy = folder / "libgpumemtrace.so"
    shutil.copy(rig.library(), copy)
    recording = rig.preload(folder, calls(rig, "every"), NVTX_INJECTION64_PATH=str(copy))
    assert recording.done.returncode == 0, recording.done.stderr
    assert len(notes(recording, "mark")) == 7, recording.events()
    assert recording.info()["sources"]["nvtx"] == "on", recording.info()["sources"]


def plain_program_without_nvtx_calls_differs_from_one_without_the_variable(rig, folder):
    recording = rig.run(folder, rig.driver_alloc("--threads", "1", "--count", "3"))
    assert recording.info()["sources"]["nvtx"] == "off: no NVTX call was made", recording.info()


def plain_new_names_without_end_leave_room_for_others(rig, folder):
    count = 20000
    recording = rig.run(folder, calls(rig, "names", count))
    recording.check_whole()
    marks = notes(recording, "mark")
    assert len(marks) == count
    named = [e for e in marks if e.get("name")]
    assert 1000 < len(named) < count, len(named)
    assert named == marks[: len(named)], "the first ones have their names"
    losses = recording.info()["losses"]
    assert losses["texts_full"] == count - len(named), losses
    assert losses["stacks_full"] == 0 and losses["codes_full"] == 0, losses


def plain_ranges_that_nest_too_deep_keep_their_level(rig, folder):
    recording = rig.run(folder, calls(rig, "deep", 100))
    levels = [int(word) for word in recording.done.stdout.split("\n")[0].split()]
    assert levels == [*range(100), *reversed(range(100)), 1], levels
    begins, ends = notes(recording, "range_begin"), notes(recording, "range_end")
    assert len(begins) == len(ends) == 64, (len(begins), len(ends))
    assert recording.info()["losses"]["activities_dropped"] == 36, recording.info()["losses"]


def plain_ranges_that_other_threads_had_begun_are_recorded_at_their_end(rig, folder):
    recording = rig.run(folder, calls(rig, "threads"))
    begins = notes(recording, "range_begin")
    assert {e["name"] for e in begins} == {f"thread {i}" for i in range(4)}, begins
    ends = {e["range"]: e["thread"] for e in notes(recording, "range_end")}
    assert {e["range"]: e["thread"] for e in begins} == ends
    assert len(set(ends.values())) == 4, ends


def plain_places_of_threads_that_have_ended_are_taken_again(rig, folder):
    recording = rig.run(folder, calls(rig, "ended", 700))
    begins = notes(recording, "range_begin")
    assert len(begins) == 701, len(begins)
    assert [e["name"] for e in notes(recording, "range_end")] == ["of a thread that lives"]


def plain_threads_that_begin_and_end_ranges_at_once(rig, folder):
    count = 500
    recording = rig.run(folder, calls(rig, "storm", count), ["--ring-size", "64MiB"])
    assert recording.done.returncode == 0, recording.done.stderr
    losses = recording.check_whole()["losses"]
    assert losses["texts_full"] == losses["activities_dropped"] == 0, losses
    labels = [label for label, _ in nesting(recording)]
    marks = texts(notes(recording, "mark"))
    assert len(marks) >= 8 * count, len(marks)
    strings = {f"string {i}" for i in range(100)}
    assert {name for name, _ in labels} <= strings and {d for _, d in labels} == {"", "even", "odd"}
    assert {(name in strings, d in ("even", "odd")) for _, name, d in marks} == {(True, True)}


def plain_forked_child_has_its_own(rig, folder):
    recording = rig.run(folder, calls(rig, "fork"))
    assert recording.done.returncode == 0, recording.done.stderr
    paths = list(folder.glob("*.gmt"))
    assert len(paths) == 2, paths
    by_size = {}
    for path in paths:
        events = recording.events(path)
        size = next(e["size"] for e in events if e["kind"] == "alloc")
        by_size[size] = texts(
            e for e in events if e["kind"] in ("mark", "range_begin", "range_end")
        )
    mark = ("mark", "string of both", "of both")
    both = [("range_begin", "outer", ""), mark, ("range_end", "outer", "")]
    assert by_size == {MIB: both, 2 * MIB: both}, by_size


def plain_library_with_a_copy_of_its_own_is_seen(rig, folder):
    recording = rig.run(
        folder, calls(rig, "library"), NVTX_CALLS_LIBRARY=str(rig.built("nvtx_library.so")[0])
    )
    assert [e["name"] for e in notes(recording, "mark")] == ["of the program", "of the library"]


def plain_cpp_interface(rig, folder):
    recording = rig.run(folder, rig.built("nvtx_scoped"))
    assert recording.done.returncode == 0, recording.done.stderr
    found = [label for label, _ in nesting(recording)]
    step = [("step", "training"), ("loss", "training")]
    assert found == [("whole run", "")] + 3 * step, found
    steps = [e for e in notes(recording, "range_begin") if e["name"] == "step"]
    assert {e["color"] for e in steps} == {0xFF123456}, steps
    assert [e["name"] for e in notes(recording, "mark")] == ["batch", "batch", "caught", "batch"]


def plain_c_interface(rig, folder):
    recording = rig.run(folder, rig.built("nvtx_plain"))
    assert recording.done.returncode == 0, recording.done.returncode
    assert texts(notes(recording, "range_begin", "mark", "range_end")) == [
        ("range_begin", "from C", ""),
        ("mark", "mark from C", ""),
        ("range_end", "from C", ""),
    ]


# ---- Another tool -----------------------------------------------------------------------------------


def counted(path):
    """Returns the calls of the other tool: {text: count}."""
    lines = path.read_text().splitlines()
    return {text: int(count) for count, text in (line.split(" ", 1) for line in lines)}


def beside_another_tool(rig, folder, command, run):
    log = folder / "other.log"
    tool = str(rig.built("other_tool.so")[0])
    recording = run(folder, command, NVTX_INJECTION64_PATH=tool, OTHER_TOOL_LOG=str(log))
    assert recording.done.returncode == 0, recording.done.stderr
    return recording, counted(log)


def plain_another_tool_sees_every_call_too(rig, folder):
    recording, both = beside_another_tool(rig, folder, calls(rig, "chain"), rig.run)
    alone = rig.environment(folder, {"OTHER_TOOL_LOG": str(folder / "alone.log")})
    alone["NVTX_INJECTION64_PATH"] = str(rig.built("other_tool.so")[0])
    without = subprocess.run(
        rig.simulated(calls(rig, "chain")), env=alone, capture_output=True, text=True, check=True
    )
    assert both == counted(folder / "alone.log"), both
    assert not [text for text in both if "unknown handle" in text], both
    assert recording.done.stdout.splitlines()[0] == without.stdout.strip() == "40 41 77"
    domain = "shared domain"
    assert texts(notes(recording, "mark", "range_begin", "range_end")) == [
        ("mark", "shared mark", ""),
        ("mark", "shared string", domain),
        ("range_begin", "shared push", ""),
        ("range_end", "shared push", ""),
        ("range_begin", "shared string", domain),
        ("range_end", "shared string", domain),
        ("range_begin", "shared range", ""),
        ("range_end", "shared range", ""),
        ("range_begin", "ours alone", ""),
        ("range_end", "ours alone", ""),
    ], texts(notes(recording, "mark", "range_begin", "range_end"))
    assert recording.info()["sources"]["nvtx"] == "on; calls are passed on to other_tool.so"


def plain_a_process_forked_while_the_other_tool_is_loaded_ends(rig, folder):
    def run(folder, command, **environment):
        return rig.run(folder, command, OTHER_TOOL_FORKS="1", **environment)

    recording, both = beside_another_tool(rig, folder, calls(rig, "chain"), run)
    assert both["MarkA"] > 0, both
    assert recording.info()["sources"]["nvtx"] == "on; calls are passed on to other_tool.so"


def plain_another_tools_heaps_and_regions(rig, folder):
    recording, both = beside_another_tool(
        rig, folder, rig.built("nvtx_memory", "handles"), rig.run
    )
    assert not [text for text in both if "unknown handle" in text], both
    assert both["RegionsRegister"] == both["RegionsUnregister"] == both["HeapUnregister"] == 1, both
    regions = [e["kind"] for e in recording.events() if e.get("heap") == "nvtx" and "address" in e]
    # The other tool's handle of a heap is not an address; the end of the heap is recognized by it
    # nevertheless.
    assert regions == ["alloc", "alloc", "free", "free"], regions


def plain_tool_that_cannot_be_loaded_is_reported(rig, folder):
    recording = rig.run(folder, calls(rig, "every"), NVTX_INJECTION64_PATH="/nowhere/tool.so")
    assert recording.done.returncode == 0
    assert "/nowhere/tool.so could not be loaded" in recording.done.stderr, recording.done.stderr
    assert len(notes(recording, "mark")) == 7
    assert "tool.so could not be loaded" in recording.info()["sources"]["nvtx"]


def plain_bare_preload_leaves_another_tool_alone(rig, folder):
    recording, both = beside_another_tool(rig, folder, calls(rig, "chain"), rig.preload)
    assert both["MarkA"] == 1, both
    assert not notes(recording, "mark"), recording.events()
    assert "another tool" in recording.info()["sources"]["nvtx"], recording.info()["sources"]


def plain_no_tool_at_all_is_respected(rig, folder):
    recording = rig.run(folder, calls(rig, "names", 3), NVTX_INJECTION64_PATH="./.")
    assert recording.done.returncode == 0 and not notes(recording, "mark")


# ---- Heaps and regions ------------------------------------------------------------------------------


def regions_of(recording):
    """(kind, offset from the first allocation, size, name) of each event of a region."""
    events = recording.events()
    base = next(e["address"] for e in events if e["kind"] == "alloc" and e["heap"] == "driver")
    return [
        (e["kind"], e["address"] - base, e["size"], e.get("name", ""))
        for e in events
        if e.get("heap") == "nvtx" and e["kind"] in ("alloc", "free")
    ]


def plain_regions_are_memory_of_their_heap(rig, folder):
    recording = rig.run(folder, rig.built("nvtx_memory", "arena"))
    assert recording.done.returncode == 0, recording.done.stderr
    recording.check_whole()
    half = MIB // 2
    assert regions_of(recording) == [
        ("alloc", 0, MIB, ""),
        ("alloc", MIB, half, ""),
        ("free", 0, MIB, ""),
        ("alloc", 0, MIB, "weights"),
        ("free", MIB, half, ""),
        ("alloc", MIB, half, "cache"),
        ("free", MIB, half, ""),
        ("alloc", MIB, 2 * MIB, "cache"),
        ("free", 0, MIB, ""),
        ("alloc", 3 * MIB - half, 3 * half, ""),
    ], regions_of(recording)
    pools = [e for e in recording.events() if e["kind"] == "pool"]
    assert [(e["action"], e["name"], e["value"], e["heap"]) for e in pools] == [
        ("create", "arena", 4 * MIB, "nvtx")
    ], pools


def plain_regions_in_reports_add_up_with_what_they_lie_in(rig, folder):
    recording = rig.run(folder, rig.built("nvtx_memory", "arena"))
    report = recording.report("--at", "end")
    (device,) = report["devices"]
    heaps = {h["heap"]: h["live_bytes"] for h in device["heaps"]}
    assert heaps["driver"] == 4 * MIB, heaps
    assert heaps["nvtx"] == 2 * MIB + 3 * MIB // 2, heaps
    # The last region overlaps the previous one by half a MiB.
    assert sum(row["bytes"] for row in report["rows"]) == 4 * MIB, report["rows"]


def plain_heaps_end_takes_its_regions_with_it(rig, folder):
    recording = rig.run(folder, rig.built("nvtx_memory", "reset"))
    assert recording.done.returncode == 0, recording.done.stderr
    found = regions_of(recording)
    assert found[:3] == [
        ("alloc", 0, MIB, ""),
        ("alloc", MIB, MIB, ""),
        ("alloc", 4 * MIB, MIB, ""),
    ], found
    assert sorted(found[3:5]) == [("free", 0, MIB, ""), ("free", MIB, MIB, "")], found
    assert found[5:] == [("alloc", 0, 2 * MIB, ""), ("free", 4 * MIB, MIB, "")], found
    live = recording.report("--at", "end")["devices"][0]["heaps"]
    assert {h["heap"]: h["live_bytes"] for h in live}["nvtx"] == 2 * MIB, live


def plain_reset_of_the_process_leaves_heaps_alone(rig, folder):
    recording = rig.run(folder, rig.built("nvtx_memory", "wide"))
    assert regions_of(recording) == [
        ("alloc", 0, MIB, ""),
        ("alloc", 3 * MIB, MIB, ""),
        ("free", 3 * MIB, MIB, ""),
    ], regions_of(recording)


def plain_regions_of_pinned_memory_are_the_hosts(rig, folder):
    recording = rig.run(folder, rig.built("nvtx_memory", "pinned"))
    assert recording.done.returncode == 0, recording.done.stderr
    regions = [e for e in recording.events() if e.get("heap") == "nvtx" and e["kind"] == "alloc"]
    assert [(e["size"], "device" in e) for e in regions] == [(MIB // 2, False)], regions


def plain_live_regions_are_in_snapshots_with_their_names(rig, folder):
    recording = rig.run(folder, rig.built("nvtx_memory", "arena"))
    (live_set,) = [e for e in recording.events() if e["kind"] == "live_set"]
    live = [(e.get("name", ""), "stream" in e) for e in live_set["live"] if e["heap"] == "nvtx"]
    assert sorted(live) == [("", False), ("cache", False)], live
    rows = recording.report("--at", "end", "--heap", "nvtx")["rows"]
    assert rows[0]["label"] == "cache" and "Register (nvtx_memory.cc:" in rows[1]["label"], rows
    assert 'region "cache"' in recording.verb("report", "--at", "end", recording.path)


# ---- Python -----------------------------------------------------------------------------------------


def python_ranges_of_torch_cuda_nvtx(rig, folder):
    program = HERE / "torch_nvtx.py"
    recording = rig.run(folder, [rig.python, program])
    assert recording.done.returncode == 0, recording.done.stderr[-2000:]
    found = [label for label, _ in nesting(recording) if label[0] != "backward"]
    assert found == [("step 0", ""), ("forward", ""), ("step 1", ""), ("forward", "")], found
    assert [e["name"] for e in notes(recording, "mark")] == 2 * ["batch is there"]
    assert recording.done.stdout.splitlines()[0] == "0 1 1 0 0 1 1 0", recording.done.stdout


def python_regions_in_pytorchs_blocks(rig, folder):
    library = rig.built("nvtx_region.so")[0]
    recording = rig.run(folder, [rig.python, HERE / "torch_regions.py", library])
    assert recording.done.returncode == 0, recording.done.stderr[-2000:]
    allocs = [e for e in recording.events() if e["kind"] == "alloc"]
    regions = [e for e in allocs if e["heap"] == "nvtx"]
    assert [e.get("name", "") for e in regions[1::2]] == [f"page {i}" for i in range(3)], regions
    report = recording.report("--at", "end")
    rows = {}
    for row in report["rows"]:
        rows[row["heap"]] = rows.get(row["heap"], 0) + row["bytes"]
    heaps = {h["heap"]: h["live_bytes"] for h in report["devices"][0]["heaps"]}
    assert rows["nvtx"] == heaps["nvtx"] == 3 * MIB, (rows, heaps)
    assert sum(rows.values()) == heaps["driver"], (rows, heaps)
    named = {e.get("name", "") for e in notes(recording, "range_begin")}
    assert any(name.startswith("aten::ones") for name in named), named


def python_package_nvtx(rig, folder):
    have = subprocess.run([rig.python, "-c", "import nvtx"], capture_output=True, check=False)
    assert have.returncode == 0, "the package nvtx is missing: run scripts/setup --test"
    recording = rig.run(folder, [rig.python, HERE / "package_nvtx.py"])
    assert recording.done.returncode == 0, recording.done.stderr[-2000:]
    found = nesting(recording)
    assert [label for label, _ in found] == [
        ("decorated", ""),
        ("with a domain", "my domain"),
        ("started", ""),
    ], found


def plain_costs_are_printed(rig, folder):
    recording = rig.run(folder, calls(rig, "cost", 1000))
    assert recording.done.returncode == 0, recording.done.stderr
    recording.check_whole()
    assert len(notes(recording, "range_begin")) == 2000, "those of the second half"


def cases_of(part):
    return [
        (name, case)
        for name, case in globals().items()
        if callable(case) and name.startswith(part + "_")
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=("plain", "python"), default="plain")
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    for variable in ("NVTX_INJECTION64_PATH", "GPUMEMTRACE_NVTX_INJECTION"):
        os.environ.pop(variable, None)
    python = find_python(args.python)
    if python is None and args.part == "python":
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
    chosen = [c for c in cases_of(args.part) if not args.names or c[0] in args.names]
    return run_cases(Rig(args.build.resolve(), python), chosen)


if __name__ == "__main__":
    sys.exit(main())
