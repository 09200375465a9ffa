"""python_readers.py GPUMEMTRACE: exported snapshots in `torch.cuda._memory_viz` of the installed torch.

The module is loaded from its file: it needs nothing of torch, and importing torch takes seconds.
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
import write_events  # noqa: E402

SKIPPED = 77
PROGRAM = sys.argv[1]
READABLE_OPCODES = {
    "PROTO", "STOP", "MARK", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "EMPTY_DICT", "EMPTY_LIST", "TUPLE2",
    "APPENDS", "SETITEMS", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
    "BINUNICODE"}


def load_memory_viz():
    torch = importlib.util.find_spec("torch")
    if torch is None:
        print(f"skipped: {sys.executable} has no torch; name a python that has it in GMT_TORCH_PYTHON")
        sys.exit(SKIPPED)
    path = pathlib.Path(torch.origin).parent / "cuda" / "_memory_viz.py"
    spec = importlib.util.spec_from_file_location("_memory_viz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Readers:
    """One scenario, exported and reported. Mixed into a TestCase for each."""

    scenario = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        log = f"{cls.folder.name}/log.jsonl"
        out = f"{cls.folder.name}/out.pickle"
        write_events.SCENARIOS[cls.scenario]().write(log)
        subprocess.run([PROGRAM, "export", "--format", "torch", log, "-o", out], check=True, stderr=subprocess.DEVNULL)
        report = subprocess.run([PROGRAM, "report", "--json", "--at", "end", log], check=True, capture_output=True)
        cls.report = json.loads(report.stdout)
        cls.bytes = pathlib.Path(out).read_bytes()
        cls.snapshot = pickle.loads(cls.bytes)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_only_opcodes_that_the_viewers_unpickler_knows(self):
        used = {opcode.name for opcode, _, _ in pickletools.genops(self.bytes)}
        self.assertLessEqual(used, READABLE_OPCODES)

    def test_stats_accepts_all_sums(self):
        total = sum(s["total_size"] for s in self.snapshot["segments"])
        self.assertIn(f"total_reserved: {MEMORY_VIZ.Bytes(total)}", MEMORY_VIZ.segsum(self.snapshot))

    def test_trace_lists_every_event(self):
        text = MEMORY_VIZ.trace(self.snapshot)
        self.assertIn(f"{len(self.snapshot['device_traces'][0])} entries", text)

    def test_flamegraphs_of_memory_and_segments(self):
        for command in (MEMORY_VIZ.memory, MEMORY_VIZ.segments):
            text = command(self.snapshot, format_flamegraph=lambda lines: lines)
            self.assertIn("stream_", text)

    def test_plots_embed_the_snapshot(self):
        self.assertIn("base64", MEMORY_VIZ.trace_plot(self.snapshot, device=0))
        self.assertIn("base64", MEMORY_VIZ.segment_plot(self.snapshot, device=0))

    def test_bytes_are_those_of_the_report(self):
        device = self.report["devices"][0]
        segments = sum(s["total_size"] for s in self.snapshot["segments"])
        blocks = sum(s["allocated_size"] for s in self.snapshot["segments"])
        self.assertEqual(segments, device["bytes"])
        live = {heap["heap"]: heap["live_bytes"] for heap in device["heaps"]}
        self.assertEqual(blocks, live.get("pytorch", live["driver"]))

    def test_replaying_the_trace_ends_in_the_segments(self):
        held = {}
        for event in self.snapshot["device_traces"][0]:
            if event["action"] == "alloc":
                held[event["addr"]] = event["size"]
            elif event["action"] == "free_completed":
                del held[event["addr"]]
        blocks = {b["address"]: b["size"] for s in self.snapshot["segments"] for b in s["blocks"]
                  if b["state"] == "active_allocated"}
        self.assertEqual(held, blocks)

    def test_frames_are_shared_and_complete(self):
        frames = [e["frames"] for e in self.snapshot["device_traces"][0] if "frames" in e]
        self.assertTrue(frames)
        self.assertLess(len({id(f) for f in frames}), 5)
        self.assertEqual(set(frames[0][0]), {"name", "filename", "line"})


class RawCuda(Readers, unittest.TestCase):
    scenario = "raw_cuda"

    def test_failed_allocation_is_an_oom_event(self):
        oom = [e for e in self.snapshot["device_traces"][0] if e["action"] == "oom"]
        self.assertEqual([e["size"] for e in oom], [1 << 40])
        self.assertIn("device_free", oom[0])


class PyTorch(Readers, unittest.TestCase):
    scenario = "pytorch"

    def test_mapped_ranges_are_one_expandable_segment(self):
        sizes = [s["total_size"] for s in self.snapshot["segments"] if s["is_expandable"]]
        self.assertEqual(sizes, [8 * write_events.MIB])


class ExistingFile(unittest.TestCase):
    def test_existing_output_is_refused_without_force(self):
        with tempfile.TemporaryDirectory() as folder:
            log, out = f"{folder}/log.jsonl", f"{folder}/out.pickle"
            write_events.raw_cuda().write(log)
            pathlib.Path(out).write_text("mine")
            command = [PROGRAM, "export", "--format", "torch", log, "-o", out]
            self.assertEqual(subprocess.run(command, stderr=subprocess.DEVNULL).returncode, 1)
            self.assertEqual(pathlib.Path(out).read_text(), "mine")
            self.assertEqual(subprocess.run([*command, "--force"], stderr=subprocess.DEVNULL).returncode, 0)


MEMORY_VIZ = load_memory_viz()
if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        program = unittest.main(argv=sys.argv[:1], exit=False)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
