#!/usr/bin/env python3
"""Checks exported files with the programs and libraries that read them, and their sums with `report` and `query`.

Usage: exports_check.py --build DIR [CASE...]
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(HERE.parent / "memory_viz"))
import write_events  # noqa: E402

SCENARIOS = ("raw_cuda", "pytorch", "two_devices", "out_of_memory", "empty")
TABLES = ("memory", "events", "stacks", "frames", "steps", "phases", "categories", "failures", "waits", "roles", "marks",
          "ranges", "samples", "recordings")


class Exporter:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.logs = []
        for name in SCENARIOS:
            self.logs.append(folder / f"{name}.jsonl")
            write_events.SCENARIOS[name]().write(self.logs[-1])
        self.logs.append(ROOT / "tests/golden/v1.gmt")

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=False)

    def json(self, *words):
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def export(self, file_format, log, *options):
        """Returns the path of the exported file."""
        out = self.folder / f"exported.{file_format}"
        done = self.run("export", "--format", file_format, log, "-o", out, "--force", *options)
        assert done.returncode == 0, done.stderr
        return out

    def report(self, log, *options):
        return self.json("report", log, *options)


def layer_of(device):
    """Returns the heap that profiles show of a device: a framework's blocks if it has any."""
    heaps = {heap["heap"]: heap for heap in device["heaps"]}
    return heaps.get("pytorch") or heaps.get("driver")


def folded_stacks_add_up_to_the_report(exporter):
    for log in exporter.logs:
        for at in ("peak", "end"):
            held = collections.Counter()
            for line in exporter.export("folded", log, "--at", at).read_text(encoding="utf-8").splitlines():
                stack, held_bytes = line.rsplit(" ", 1)
                device, heap = stack.split(";")[:2]
                held[device, heap] += int(held_bytes)
            wanted = {(f"cuda:{d['index']}", layer_of(d)["heap"]): layer_of(d)["live_bytes"]
                      for d in exporter.report(log, "--at", at)["devices"] if d["index"] is not None and layer_of(d)}
            assert held == {k: v for k, v in wanted.items() if v > 0}, (log, at, held, wanted)


class Pprof:
    """Go's pprof. Newer versions of Go build it on first use, which takes a minute."""

    def __init__(self):
        done = subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True, text=True, check=True)
        self.program = done.stdout.strip()

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=True).stdout

    def top(self, *words):
        """Returns {function: bytes} of all functions that allocated themselves."""
        text = self.run("-top", "-unit=B", "-nodecount=1000000", "-nodefraction=0", *words)
        rows = [line.split(None, 5) for line in text.split("cum%\n", 1)[1].splitlines()]
        return collections.Counter({row[5]: int(row[0].removesuffix("B")) for row in rows})


def pprof_shows_the_peak_of_the_report_and_differences(exporter):
    if shutil.which("go") is None:
        return "skipped: no Go: run scripts/setup --test"
    pprof = Pprof()
    for log in exporter.logs:
        layers, at_end = ({f"cuda:{d['index']}": layer_of(d) for d in exporter.report(log, "--at", at)["devices"]
                           if d["index"] is not None and layer_of(d)} for at in ("peak", "end"))
        peak = exporter.folder / "peak.pb.gz"
        exporter.export("pprof", log).rename(peak)
        if not layers:
            continue
        held = {device: layer["live_bytes"] for device, layer in layers.items()}
        shown = pprof.top(peak)
        assert sum(shown.values()) == sum(held.values()), (log, shown, held)
        # The frames of the allocator are folded: the callers are shown.
        assert not [name for name in shown if name.startswith(("cudaMalloc", "cuMemAlloc"))], shown
        for device, wanted in held.items():
            assert sum(pprof.top("-tagfocus", f"device={device}", peak).values()) == wanted, (log, device)
            assert device in pprof.run("-tags", peak), (log, device)
        for heap in {layer["heap"] for layer in layers.values()}:
            assert sum(pprof.top("-tagfocus", f"kind={heap}", peak).values()) == sum(
                layer["live_bytes"] for layer in layers.values() if layer["heap"] == heap), (log, heap)
        end = exporter.export("pprof", log, "--at", "end")
        grown = pprof.top(f"-diff_base={peak}", end)
        assert sum(grown.values()) == sum(layer["live_bytes"] for layer in at_end.values()) - sum(held.values()), (log, grown)
    return None


def speedscope_files_follow_its_schema(exporter):
    import jsonschema
    schema = HERE / "node_modules/speedscope/dist/release/file-format-schema.json"
    if not schema.exists():
        return "skipped: its npm packages are not installed: run scripts/setup --test"
    schema = json.loads(schema.read_text(encoding="utf-8"))
    for log in exporter.logs:
        exported = json.loads(exporter.export("speedscope", log).read_text(encoding="utf-8"))
        jsonschema.validate(exported, schema)
    return None


def as_numbers(row):
    """Returns a row of CSV with numbers and nulls as in JSON."""
    return {k: None if v == "" else int(v) if v.lstrip("-").isdigit() else v for k, v in row.items()}


def check_sums(exporter, log, rows):
    """Compares allocations, their bytes at the end, and their number with the report, by GPU and heap."""
    held, births = collections.Counter(), collections.Counter()
    for row in rows:
        where = row["device"], row["heap"]
        births[where] += row["alloc_event"] is not None
        held[where] += row["bytes"] if row["free_ns"] is None else 0
    for device in exporter.report(log, "--at", "end")["devices"]:
        for heap in device["heaps"]:
            where = device["index"], heap["heap"]
            assert (held[where], births[where]) == (heap["live_bytes"], heap["allocations"]), (log, where, held, heap)


def rows_of_csv_and_jsonl_are_those_of_query_and_report(exporter):
    for log in exporter.logs:
        with exporter.export("csv", log).open(encoding="utf-8", newline="") as exported:
            rows = [as_numbers(row) for row in csv.DictReader(exported)]
        lines = exporter.export("jsonl", log).read_text(encoding="utf-8").splitlines()
        objects = [json.loads(line) for line in lines]
        queried = exporter.json("query", log, "SELECT *, stack_text(stack) AS stack_text FROM memory")
        wanted = [dict(zip(queried["columns"], row)) for row in queried["rows"]]
        assert objects == wanted, (log, objects[:2], wanted[:2])
        assert rows == [as_numbers({k: "" if v is None else str(v) for k, v in row.items()}) for row in wanted], log
        check_sums(exporter, log, objects)
        assert not objects or any(row["stack_text"] for row in objects), log


def every_table_can_be_written_as_csv_and_jsonl(exporter):
    for log in exporter.logs:
        for table in TABLES:
            with exporter.export("csv", log, "--table", table).open(encoding="utf-8", newline="") as exported:
                rows = list(csv.DictReader(exported))
            lines = exporter.export("jsonl", log, "--table", table).read_text(encoding="utf-8").splitlines()
            more = ", stack_text(stack) AS stack_text" if table == "memory" else ""
            queried = exporter.json("query", log, f"SELECT *{more} FROM {table}")
            wanted = [dict(zip(queried["columns"], row)) for row in queried["rows"]]
            assert [json.loads(line) for line in lines] == wanted, (log, table)
            assert [list(row) for row in rows] == [queried["columns"]] * len(wanted), (log, table)
    for words, why in ((["--table", "all"], "writes one table"), (["--table", "steps", "--table", "marks"], "writes one table"),
                       (["--table", "steps", "--device", "0"], "rows of the table memory only"),
                       (["--table", "nothing"], "expected all, or one of memory")):
        out = exporter.folder / "refused"
        done = exporter.run("export", "--format", "csv", exporter.logs[0], "-o", out, *words)
        assert done.returncode == 2 and why in done.stderr and not out.exists(), (words, done)


def allocations_of_one_heap_or_device_can_be_selected(exporter):
    log = exporter.folder / "two_devices.jsonl"
    everything = [json.loads(line) for line in exporter.export("jsonl", log).read_text(encoding="utf-8").splitlines()]
    for options, key, value in ((["--device", "1"], "device", 1), (["--heap", "pytorch"], "heap", "pytorch")):
        lines = exporter.export("jsonl", log, *options).read_text(encoding="utf-8").splitlines()
        wanted = [row for row in everything if row[key] == value]
        assert 0 < len(wanted) < len(everything), options
        assert [json.loads(line) for line in lines] == wanted, options
    for options in (["--heap", "x' OR '1"], ["--device", "7"]):
        done = exporter.run("export", "--format", "csv", log, "-o", exporter.folder / "none", *options)
        assert done.returncode == 1 and not (exporter.folder / "none").exists(), (options, done)


def perfetto_packets(path):
    """Returns the packets of a trace, read with the definition in Perfetto's own Python package; null if that is missing."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "gpumemtrace/perfetto"
    if not cache.exists():
        return None
    if str(cache) not in sys.path:
        sys.path.append(str(cache))
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(path.read_bytes())
    return trace.packet


def perfetto_traces_have_the_peaks_of_the_report(exporter):
    for log in exporter.logs:
        packets = perfetto_packets(exporter.export("perfetto", log))
        if packets is None:
            return "skipped: Perfetto's package is not installed: run scripts/setup --test"
        tracks = {p.track_descriptor.uuid: p.track_descriptor for p in packets if p.HasField("track_descriptor")}
        processes = [t for t in tracks.values() if t.HasField("process")]
        assert len(processes) == 1 and packets[0].clock_snapshot.primary_trace_clock == 1, log
        assert all(t.parent_uuid == processes[0].uuid for t in tracks.values() if not t.HasField("process")), log
        peaks, depth = collections.Counter(), collections.Counter()
        for packet in packets:
            event = packet.track_event
            if not packet.HasField("track_event"):
                continue
            assert packet.timestamp_clock_id == 1 and event.track_uuid in tracks, packet
            if event.type == event.TYPE_COUNTER:
                assert tracks[event.track_uuid].counter.unit == 3, tracks[event.track_uuid]
                name = tracks[event.track_uuid].name
                peaks[name] = max(peaks[name], event.counter_value)
            depth[event.track_uuid] += (event.type == event.TYPE_SLICE_BEGIN) - (event.type == event.TYPE_SLICE_END)
            assert depth[event.track_uuid] >= 0, packet
        assert not any(depth.values()), depth
        for device in exporter.report(log)["devices"]:
            label = "host" if device["index"] is None else f"cuda:{device['index']}"
            for heap in device["heaps"]:
                assert peaks[f"{label} {heap['heap']} live"] == heap["peak_live_bytes"], (log, peaks, heap)
    return None


def perfetto_traces_show_steps_and_failures(exporter):
    log = exporter.folder / "out_of_memory.jsonl"
    packets = perfetto_packets(exporter.export("perfetto", log))
    if packets is None:
        return "skipped: Perfetto's package is not installed: run scripts/setup --test"
    instants = [p.track_event.name for p in packets if p.track_event.type == p.track_event.TYPE_INSTANT]
    failures = exporter.json("query", log, "SELECT heap, bytes, human(bytes) FROM failures")["rows"]
    for heap, _, human in failures:
        assert f"out of memory: {human} requested ({heap})" in instants, (instants, failures)
    assert failures, log
    training = exporter.folder / "training.jsonl"
    write_events.SCENARIOS["training"]().write(training)
    names = collections.Counter(p.track_event.name for p in perfetto_packets(exporter.export("perfetto", training))
                                if p.track_event.type == p.track_event.TYPE_SLICE_BEGIN)
    steps = exporter.json("query", training, "SELECT count(DISTINCT step) FROM steps")["rows"][0][0]
    assert steps > 1 and sum(n for name, n in names.items() if name.startswith("step ")) == steps, (steps, names)
    # From each forward pass an arrow leads to the backward pass after it.
    flows = [collections.Counter(), collections.Counter()]
    for packet in perfetto_packets(exporter.folder / "exported.perfetto"):
        event = packet.track_event
        for ids, name, of in ((event.flow_ids, "forward", flows[0]), (event.terminating_flow_ids, "backward", flows[1])):
            assert not ids or event.name == name, event
            of.update(ids)
    assert flows[0] == flows[1] and set(flows[0].values()) <= {1} and len(flows[0]) == names["forward"] > 1, (flows, names)
    return None


class HeapProfile:
    """The dumps of one heap in a Perfetto trace, read as trace_processor does: dumps hold sums since the start, and only those of
    stacks that have changed."""

    def __init__(self):
        self.interned = {}  # by kind, then by iid
        self.held, self.dumps = collections.Counter(), []  # bytes by stack: now, and at each (time, name of the heap)
        self.sums = {}
        self.next_index, self.is_open = 0, False

    def take(self, packet):
        assert packet.sequence_flags == (2 if self.interned else 1), packet
        for kind in ("function_names", "source_paths", "mapping_paths", "mappings", "frames", "callstacks"):
            known = self.interned.setdefault(kind, {})
            for entry in getattr(packet.interned_data, kind):
                assert entry.iid > 0 and entry.iid not in known, (kind, entry)
                known[entry.iid] = entry
        if not packet.HasField("profile_packet"):
            return
        assert packet.profile_packet.index == self.next_index, packet
        self.next_index += 1
        (heap,) = packet.profile_packet.process_dumps
        assert heap.sampling_interval_bytes == heap.orig_sampling_interval_bytes == 1 and ":" not in heap.heap_name, heap
        assert heap.timestamp == packet.timestamp, packet
        for sample in heap.samples:
            sums = (sample.self_allocated, sample.self_freed, sample.alloc_count, sample.free_count)
            before = self.sums.setdefault(sample.callstack_id, (0, 0, 0, 0))
            assert sums != before and all(now >= then for now, then in zip(sums, before)), (sample, before)
            self.sums[sample.callstack_id] = sums
            self.held[self.stack(sample.callstack_id)] = sums[0] - sums[1]
        if not packet.profile_packet.continued:
            self.dumps.append((heap.timestamp, heap.heap_name, +self.held))

    def stack(self, iid):
        """Returns a stack as `export --format folded` writes it."""
        return ";".join(map(self.frame, self.interned["callstacks"][iid].frame_ids))

    def frame(self, iid):
        frame = self.interned["frames"][iid]
        assert frame.rel_pc and self.interned["mappings"][frame.mapping_id].path_string_ids[0] in self.interned["mapping_paths"], frame
        name = self.interned["function_names"][frame.function_name_id].str.decode()
        if frame.source_path_iid:
            path = self.interned["source_paths"][frame.source_path_iid].str.decode()
            name += f" ({path.rsplit('/', 1)[-1]}" + (f":{frame.line_number})" if frame.line_number else ")")
        return name.replace(";", ":")


def perfetto_heap_profiles_are_those_of_folded_stacks(exporter):
    checked = 0
    for log in exporter.logs:
        packets = perfetto_packets(exporter.export("perfetto", log))
        if packets is None:
            return "skipped: Perfetto's package is not installed: run scripts/setup --test"
        # Without a relation of these clocks, dumps are dropped.
        assert {clock.clock_id for clock in packets[0].clock_snapshot.clocks} == {1, 3, 4, 6}, log
        heaps = collections.defaultdict(HeapProfile)
        for packet in packets:
            if packet.HasField("interned_data") or packet.HasField("profile_packet"):
                heaps[packet.trusted_packet_sequence_id].take(packet)
        assert 1 not in heaps, "the sequence of the other packets"
        dumps = [(t, name) for heap in heaps.values() for t, name, _ in heap.dumps]
        assert len({t for t, _ in dumps}) == len(dumps) <= 32 * len(heaps), dumps
        assert all(len({name for _, name, _ in heap.dumps}) == 1 for heap in heaps.values()), dumps
        assert len({name for _, name in dumps}) == len(heaps), dumps
        folded = {}
        for at in ("peak", "end"):
            for line in exporter.export("folded", log, "--at", at).read_text(encoding="utf-8").splitlines():
                (device, _, stack), held = line.rsplit(" ", 1)[0].split(";", 2), int(line.rsplit(" ", 1)[1])
                folded.setdefault((at, device), collections.Counter())[stack] += held
        for heap in heaps.values():
            device = heap.dumps[0][1].replace("cuda.device", "cuda:")
            states = [held for _, _, held in heap.dumps]
            assert states[-1] == folded.get(("end", device), {}), (log, states[-1], folded)
            assert folded[("peak", device)] in states, (log, device, states)
            checked += 1
        assert {device for at, device in folded if at == "peak"} <= {
            heap.dumps[0][1].replace("cuda.device", "cuda:") for heap in heaps.values()}, (log, dumps)
    assert checked >= 5, checked
    return None


def heaptrack_print_agrees_with_the_report(exporter):
    program = shutil.which("heaptrack_print")
    if program is None:
        return "skipped: no heaptrack_print: run scripts/setup --test"
    checked = 0
    for log in exporter.logs:
        for device in exporter.report(log)["devices"]:
            layer = layer_of(device) if device["index"] is not None else None
            if layer is None:
                continue
            exported = exporter.export("heaptrack", log, "--device", device["index"])
            stacks = exporter.folder / "stacks"
            subprocess.run([program, exported, "-F", stacks, "--flamegraph-cost-type", "peak"], capture_output=True,
                           check=True, timeout=300)
            held = collections.Counter()  # by innermost function
            for line in stacks.read_text(encoding="utf-8").splitlines():
                frames, held_bytes = line.rsplit(" ", 1)
                held[frames.rstrip(";").split(";")[-1].split(" (")[0]] += int(held_bytes)
            assert sum(held.values()) == layer["peak_live_bytes"], (log, held, layer)
            if log.suffix == ".jsonl":  # in a real recording, the innermost frames are those of the allocator
                check_top_allocator(exporter, log, device["index"], layer, held)
            checked += 1
    assert checked >= 5, checked
    return None


def check_top_allocator(exporter, log, device, layer, held):
    """Compares the function that holds most at the peak of the layer with the tables of `query`."""
    sql = (f"SELECT f.function, sum(m.bytes) AS held FROM memory m JOIN frames f ON f.stack = m.stack AND f.depth = 0 "
           f"WHERE m.device = {device} AND m.heap = '{layer['heap']}' AND ifnull(m.alloc_ns, 0) <= {layer['peak_live_t_ns']} "
           f"AND (m.free_ns IS NULL OR m.free_ns > {layer['peak_live_t_ns']}) GROUP BY f.function ORDER BY held DESC LIMIT 1")
    rows = exporter.json("query", log, sql)["rows"]
    for function, held_bytes in rows:
        assert held[function] == held_bytes == max(held.values()), (log, rows, held)


def heaptrack_files_of_several_gpus_are_refused(exporter):
    out = exporter.folder / "refused"
    done = exporter.run("export", "--format", "heaptrack", exporter.folder / "two_devices.jsonl", "-o", out)
    assert done.returncode == 1 and not out.exists(), done
    assert "Select a GPU with: --device N" in done.stderr, done.stderr


def options_that_a_format_does_not_take_are_refused(exporter):
    log = exporter.logs[0]
    for words in (["folded", "--max-mb", "3"], ["torch", "--at", "end"], ["html", "--raw-frames"], ["pprof", "--from", "1"],
                  ["sqlite", "--device", "0"], ["speedscope", "--keep", "largest"], ["perfetto", "--at", "end"]):
        out = exporter.folder / "refused"
        done = exporter.run("export", "--format", *words, log, "-o", out)
        assert done.returncode == 2 and not out.exists(), (words, done)
        assert f"--format {words[0]} does not take" in done.stderr, done.stderr


def list_names_every_format_of_the_documentation(exporter):
    formats = exporter.json("export", "--list")["formats"]
    page = (ROOT / "docs/exports.md").read_text(encoding="utf-8").replace("`", "")
    page = page.split("## Files that can be imported")[0]
    lines = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if line.startswith("| ")}
    for entry in formats:
        line = lines.pop(entry["name"])
        for key in ("keeps", "drops"):
            assert entry[key].replace("`", "") in line, (entry, line)
    assert set(lines) == {"format"}, lines
    text = exporter.run("export", "--list").stdout
    assert all(entry["keeps"] in text for entry in formats), text
    for words in (["--list", "--max-mb"], ["--json"], [], [exporter.logs[0]], [exporter.logs[0], "--format", "csv"]):
        done = exporter.run("export", *words)
        assert done.returncode == 2, (words, done)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    cases = [folded_stacks_add_up_to_the_report, pprof_shows_the_peak_of_the_report_and_differences, speedscope_files_follow_its_schema,
             rows_of_csv_and_jsonl_are_those_of_query_and_report, every_table_can_be_written_as_csv_and_jsonl,
             allocations_of_one_heap_or_device_can_be_selected,
             perfetto_traces_have_the_peaks_of_the_report, perfetto_traces_show_steps_and_failures,
             perfetto_heap_profiles_are_those_of_folded_stacks,
             heaptrack_print_agrees_with_the_report, heaptrack_files_of_several_gpus_are_refused,
             list_names_every_format_of_the_documentation, options_that_a_format_does_not_take_are_refused]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gmt-exports.") as folder:
        exporter = Exporter(str(arguments.build.resolve() / "bin/gpumemtrace"), pathlib.Path(folder))
        for case in cases:
            if arguments.cases and case.__name__ not in arguments.cases:
                continue
            name = case.__name__.replace("_", " ")
            try:
                print(f"ok   {name}: {case(exporter) or ''}".rstrip(": "))
            except Exception:  # pylint: disable=broad-exception-caught
                failed += 1
                print(f"FAIL {name}")
                traceback.print_exc()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
