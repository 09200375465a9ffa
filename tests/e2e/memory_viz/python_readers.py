"""python_readers.py GPUMEMTRACE: exported snapshots in `torch.cuda._memory_viz` of the installed torch.

The module is loaded from its file: it does not depend on torch, and importing torch takes seconds.
"""

import contextlib
import importlib.util
import io
import json
import pathlib
import pickle
import pickletools
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import rules  # noqa: E402
import write_events  # noqa: E402

SKIPPED = 77
PROGRAM = sys.argv[1]
READABLE_OPCODES = {
    "PROTO", "STOP", "MARK", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "EMPTY_DICT", "EMPTY_LIST", "TUPLE2",
    "APPENDS", "SETITEMS", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
    "BINUNICODE"}
MIB = write_events.MIB


def load_memory_viz():
    torch = importlib.util.find_spec("torch")
    if torch is None:
        print(f"skipped: {sys.executable} has no torch; set GMT_TORCH_PYTHON to a Python with torch")
        sys.exit(SKIPPED)
    path = pathlib.Path(torch.origin).parent / "cuda" / "_memory_viz.py"
    spec = importlib.util.spec_from_file_location("_memory_viz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


def export(log, out, *options):
    done = run("export", "--format", "torch", log, "-o", out, *options)
    assert done.returncode == 0, done.stderr
    return pathlib.Path(out).read_bytes(), done.stderr


class Readers:
    """One scenario, exported and reported. A mixin for a TestCase per scenario."""

    scenario = ""
    stacks = 5  # more would mean that equal frame lists are duplicated

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.log = f"{cls.folder.name}/log.jsonl"
        write_events.SCENARIOS[cls.scenario]().write(cls.log)
        cls.bytes, cls.notes = export(cls.log, f"{cls.folder.name}/out.pickle")
        cls.report = json.loads(run("report", "--json", "--at", "end", cls.log).stdout)
        cls.snapshot = pickle.loads(cls.bytes)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def actions(self, device=0):
        return [e["action"] for e in self.snapshot["device_traces"][device]]

    def test_only_opcodes_known_to_the_viewers_unpickler(self):
        used = {opcode.name for opcode, _, _ in pickletools.genops(self.bytes)}
        self.assertLessEqual(used, READABLE_OPCODES)

    def test_every_moment_can_be_rebuilt(self):
        self.assertEqual(rules.problems(self.snapshot), [])

    def test_stats_accepts_all_sums(self):
        total = sum(s["total_size"] for s in self.snapshot["segments"])
        self.assertIn(f"total_reserved: {MEMORY_VIZ.Bytes(total)}", MEMORY_VIZ.segsum(self.snapshot))

    def test_trace_lists_every_event(self):
        text = MEMORY_VIZ.trace(self.snapshot)
        for events in self.snapshot["device_traces"]:
            if events:
                self.assertIn(f"{len(events)} entries", text)

    def test_flamegraphs_of_memory_and_segments(self):
        for command in (MEMORY_VIZ.memory, MEMORY_VIZ.segments):
            text = command(self.snapshot, format_flamegraph=lambda lines: lines)
            self.assertEqual("stream_" in text, bool(self.snapshot["segments"]))

    def test_compare_finds_no_difference_to_itself(self):
        # It takes the lists of segments; its own command line passes the dicts.
        segments = self.snapshot["segments"]
        self.assertEqual(MEMORY_VIZ.compare(segments, segments, format_flamegraph=lambda lines: lines), "")
        text = MEMORY_VIZ.compare([], segments, format_flamegraph=lambda lines: lines)
        self.assertEqual("only_after" in text, bool(segments))

    def test_plots_embed_the_snapshot(self):
        with contextlib.redirect_stderr(io.StringIO()):
            for plot in (MEMORY_VIZ.trace_plot(self.snapshot), MEMORY_VIZ.segment_plot(self.snapshot),
                         MEMORY_VIZ.trace_plot(pickle.loads(self.bytes), filter_freed=True)):
                self.assertIn("base64", plot)

    def test_bytes_are_those_of_the_report(self):
        for device in self.report["devices"]:
            if device["index"] is None:
                continue
            mine = [s for s in self.snapshot["segments"] if s["device"] == device["index"]]
            self.assertEqual(sum(s["total_size"] for s in mine), device["bytes"])
            live = {heap["heap"]: heap["live_bytes"] for heap in device["heaps"]}
            self.assertEqual(sum(s["allocated_size"] for s in mine), live.get("pytorch", live.get("driver", 0)))

    def test_replaying_the_trace_ends_in_the_segments(self):
        for device, events in enumerate(self.snapshot["device_traces"]):
            held = {}
            for event in events:
                if event["action"] == "alloc":
                    held[event["addr"]] = event["size"]
                elif event["action"] == "free_requested":
                    del held[event["addr"]]
            blocks = {b["address"]: b["size"] for s in self.snapshot["segments"] if s["device"] == device
                      for b in s["blocks"] if b["state"] == "active_allocated"}
            self.assertEqual(held, blocks)

    def test_frames_are_shared_and_complete(self):
        frames = [e["frames"] for events in self.snapshot["device_traces"] for e in events if "frames" in e]
        self.assertLess(len({id(f) for f in frames}), self.stacks)
        for frame in (frame for stack in frames for frame in stack):
            self.assertEqual(set(frame), {"name", "filename", "line"})

    def test_settings_are_parsed_where_pytorch_ran(self):
        settings = self.snapshot["allocator_settings"]
        if "pytorch" in {h["heap"] for d in self.report["devices"] for h in d["heaps"]}:
            self.assertEqual((settings["max_split_size"], settings["backend"]), (128 * MIB, "native"))
            self.assertEqual(len(settings["roundup_power2_divisions"]), 16)
        else:
            self.assertEqual(settings, {})


class RawCuda(Readers, unittest.TestCase):
    scenario = "raw_cuda"

    def test_failed_allocation_is_an_oom_event(self):
        oom = [e for e in self.snapshot["device_traces"][0] if e["action"] == "oom"]
        self.assertEqual([e["size"] for e in oom], [1 << 40])
        self.assertIn("device_free", oom[0])

    def test_stacks_are_ours(self):
        names = {e["frames"][0]["name"] for e in self.snapshot["device_traces"][0] if "frames" in e}
        self.assertEqual(names, {"load_weights", "step"})


class PyTorch(Readers, unittest.TestCase):
    scenario = "pytorch"

    def test_mapped_ranges_are_one_expandable_segment(self):
        sizes = [s["total_size"] for s in self.snapshot["segments"] if s["is_expandable"]]
        self.assertEqual(sizes, [8 * MIB])


class Expandable(Readers, unittest.TestCase):
    scenario = "expandable"

    def test_pages_of_one_call_are_one_entry(self):
        sizes = [(e["action"], e["size"] // MIB) for e in self.snapshot["device_traces"][0]
                 if e["action"].startswith("segment")]
        self.assertEqual(sizes, [("segment_map", 8), ("segment_unmap", 4), ("segment_map", 4), ("segment_map", 4)])

    def test_segments_have_the_streams_of_their_blocks(self):
        self.assertEqual([(s["total_size"] // MIB, s["stream"]) for s in self.snapshot["segments"]],
                         [(8, 0), (4, write_events.SIDE_STREAM)])


class Pending(Readers, unittest.TestCase):
    scenario = "pending"

    def test_frees_complete_where_their_stream_was_done(self):
        self.assertEqual(self.actions()[5:], ["free_requested", "alloc", "free_requested", "free_completed", "alloc",
                                              "free_requested", "free_completed"])

    def test_pending_blocks_are_active_and_not_allocated(self):
        segment = self.snapshot["segments"][0]
        self.assertEqual([b["size"] for b in segment["blocks"] if b["state"] == "active_pending_free"], [MIB])
        self.assertEqual(segment["active_size"] - segment["allocated_size"], MIB)


class OutOfMemory(Readers, unittest.TestCase):
    scenario = "out_of_memory"

    def test_one_oom_with_the_free_memory_of_the_device(self):
        oom = [e for e in self.snapshot["device_traces"][0] if e["action"] == "oom"]
        self.assertEqual([(e["size"], e["device_free"]) for e in oom], [(1 << 30, 64 * MIB)])

    def test_snapshot_stands_behind_it(self):
        event = self.snapshot["device_traces"][0][self.actions().index("oom") + 1]
        self.assertEqual((event["action"], event["size"], event["user_metadata"]), ("snapshot", 12 * MIB, "oom-1"))


class TwoDevices(Readers, unittest.TestCase):
    scenario = "two_devices"

    def test_each_device_has_its_trace(self):
        self.assertEqual([len(t) for t in self.snapshot["device_traces"]], [9, 7])

    def test_one_device_keeps_its_number(self):
        one, _ = export(self.log, f"{self.folder.name}/one.pickle", "--device", "1")
        snapshot = pickle.loads(one)
        self.assertEqual([len(t) for t in snapshot["device_traces"]], [0, 7])
        self.assertEqual({s["device"] for s in snapshot["segments"]}, {1})


class Training(Readers, unittest.TestCase):
    scenario = "training"
    stacks = 6

    def test_backward_memory_shows_its_forward_call(self):
        born = [e for e in self.snapshot["device_traces"][0] if "forward_frames" in e and e["action"] == "alloc"]
        self.assertEqual(len(born), 4)
        names = [f["name"] for f in born[0]["frames"]]
        self.assertEqual((names[0], names[-3:]), ("backward", ["linear", "model", "main"]))
        self.assertEqual(born[0]["forward_frames"][-1], '  File "/src/linear.py", line 10, in linear\n')

    def test_steps_and_ranges_are_annotations(self):
        annotations = [(a["name"], a["stage"]) for a in self.snapshot["external_annotations"]]
        self.assertEqual(annotations[:5], [("step 0", "START"), ("backward", "START"), ("backward", "END"), ("step 0", "END"),
                                    ("step 1", "START")])


class Empty(Readers, unittest.TestCase):
    scenario = "empty"

    def test_there_is_one_device_and_nothing_on_it(self):
        self.assertEqual((self.snapshot["device_traces"], self.snapshot["segments"]), ([[]], []))


class Parts(unittest.TestCase):
    """--from, --to, --max-events, --keep: a part is consistent with the whole."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = f"{self.folder.name}/log.jsonl"
        log = write_events.torch_log()
        log.segment(write_events.BASE, 20 * MIB)
        for i in range(100):
            log.block(write_events.BASE + (i % 8) * MIB, 512 * (i + 1), stack=2)
            if i >= 7:
                log.free_block(write_events.BASE + ((i + 1) % 8) * MIB)
        log.write(self.log)

    def export(self, *options):
        data, notes = export(self.log, f"{self.folder.name}/out.pickle", "--force", *options)
        snapshot = pickle.loads(data)
        self.assertEqual(rules.problems(snapshot), [])
        MEMORY_VIZ.segsum(snapshot)
        return snapshot, notes

    def blocks(self, snapshot):
        return [b["address"] for s in snapshot["segments"] for b in rules.live_blocks(s)]

    def test_window_begins_and_ends_in_the_states_of_those_moments(self):
        snapshot, _ = self.export("--from", "0.050", "--to", "0.090")
        self.assertEqual(len(self.blocks(snapshot)), 7)
        whole, _ = self.export()
        times = [e["time_us"] for e in whole["device_traces"][0]]
        first = whole["device_traces"][0][0]["time_us"] - 1000
        inside = [t for t in times if first + 50_000 <= t <= first + 90_000]
        self.assertEqual([e["time_us"] for e in snapshot["device_traces"][0]], inside)

    def test_newest_events_are_kept_and_the_rest_is_reported(self):
        whole, _ = self.export()
        snapshot, notes = self.export("--max-events", "30")
        kept = snapshot["device_traces"][0]
        self.assertEqual(kept, whole["device_traces"][0][-len(kept):])
        self.assertTrue(27 <= len(kept) <= 30)
        self.assertIn("the newest", notes)
        self.assertEqual(self.blocks(snapshot), self.blocks(whole))

    def test_largest_are_kept_over_the_whole_time(self):
        whole, _ = self.export()
        snapshot, notes = self.export("--max-events", "60", "--keep", "largest")
        kept = snapshot["device_traces"][0]
        self.assertLessEqual(len(kept), 60)
        self.assertEqual(self.blocks(snapshot), self.blocks(whole))
        actions = [e["action"] for e in kept]
        self.assertEqual(actions.count("alloc") - actions.count("free_completed"), 7)
        self.assertIn("the smallest", notes)

    def test_wrong_options_are_explained(self):
        for options, word in ((("--max-events", "many"), "--max-events"), (("--from", "2", "--to", "1"), "--from"),
                              (("--keep", "oldest"), "oldest"), (("--device", "3"), "GPU 3")):
            done = run("export", "--format", "torch", self.log, "-o", f"{self.folder.name}/no.pickle", *options)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(word, done.stderr)
            self.assertFalse(pathlib.Path(f"{self.folder.name}/no.pickle").exists())


class ExistingFile(unittest.TestCase):
    def test_existing_output_is_refused_without_force(self):
        with tempfile.TemporaryDirectory() as folder:
            log, out = f"{folder}/log.jsonl", f"{folder}/out.pickle"
            write_events.raw_cuda().write(log)
            pathlib.Path(out).write_text("mine")
            command = ["export", "--format", "torch", log, "-o", out]
            self.assertEqual(run(*command).returncode, 1)
            self.assertEqual(pathlib.Path(out).read_text(), "mine")
            self.assertEqual(run(*command, "--force").returncode, 0)


MEMORY_VIZ = load_memory_viz()
if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        program = unittest.main(argv=sys.argv[:1], exit=False)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
