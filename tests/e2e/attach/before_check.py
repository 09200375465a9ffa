"""Memory allocated before an attach: PyTorch reports it, and the live set is exact from then on."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as rigs  # noqa: E402
from waiting import HANG_S  # noqa: E402

import gate as attach_gate  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BEFORE = "(before attach)"


class Training:
    def __init__(self, rig, folder, **environment):
        more = {"LD_PRELOAD": rig.library(), "GPUMEMTRACE": "dormant", **environment}
        self.process = subprocess.Popen(
            rig.simulated([rig.python, HERE / "train_on_demand.py"]),
            env=rig.environment(folder, more),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        assert line == "ready\n", (line, self.process.stderr.read())

    def step(self, word="step"):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=HANG_S) == 0, self.process.stderr.read()


def record(rig, folder, training, words, options=""):
    """Attaches for these steps. Returns the recording's events and info, and the memory held before the first step and
    after the last one."""
    gate = attach_gate.find_gate(folder / "sessions")
    before = training.step()
    number = gate.request_attach(options)
    training.step()
    gate.wait_begun(number)
    collector = attach_gate.Collector(rig.build, gate.path, folder / "run.gmt").wait_until_at_work(gate)
    for word in words:
        after = training.step(word)
    gate.withdraw()
    assert collector.wait() == 0, collector.errors
    recording = rigs.Recording(rig, folder, None)
    events, info = recording.events(folder / "run.gmt"), recording.info(folder / "run.gmt")
    (folder / "run.gmt").unlink()
    training.step()
    gate.wait_ended()
    return events, info, before, after


def live(events, heap):
    held = {}
    for event in events:
        if event.get("heap") != heap:
            continue
        if event["kind"] == "alloc":
            held[event["address"]] = event["size"]
        elif event["kind"] == "free":
            held.pop(event["address"], None)
    return held


def seeds(events, heap):
    return [
        e for e in events if e["kind"] == "alloc" and e.get("heap") == heap and e.get("api") == BEFORE
    ]


def as_pytorch_says(rig, folder):
    training = Training(rig, folder)
    for words in (["step", "step"], ["free", "step"], ["raise"]):
        events, info, before, after = record(rig, folder, training, words)
        status = info["sources"]["before_attach"]
        assert status.startswith("on: PyTorch reported"), status
        assert live(events, "pytorch") == dict(after["blocks"])
        assert live(events, "driver") == dict(after["segments"])
        blocks, segments = seeds(events, "pytorch"), seeds(events, "driver")
        assert sum(e["size"] for e in segments) >= before["reserved"] > 0
        # Parameters and optimizer states exist in any case.
        assert sum(e["size"] for e in blocks) >= 3 * 2 * 512 * 512 * 4
        assert all(e["t_ns"] == 0 and e.get("stack", 0) == 0 for e in blocks + segments)
        assert f"{sum(e['size'] for e in blocks)} bytes in {len(blocks)} blocks" in status, status
        samples = [e for e in events if e["kind"] == "sample" and e["source"] == "cudaMemGetInfo"]
        assert samples and samples[0]["used_bytes"] > 0, samples
        frees = {e["address"] for e in events if e["kind"] == "free" and e.get("size", 0) == 0}
        assert not frees, "frees of memory from before the attach must have a size"
    training.end()


def other_allocator(rig, folder):
    """An allocator that does not report its blocks: this is recorded, and the recording is correct from the attach on."""
    training = Training(rig, folder, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    events, info, _, _ = record(rig, folder, training, ["step"])
    assert not seeds(events, "pytorch"), info["sources"]
    assert "PyTorch reported 0 bytes in 0 blocks" in info["sources"]["before_attach"], info["sources"]
    training.end()


def by_option(rig, folder):
    training = Training(rig, folder)
    events, info, _, _ = record(rig, folder, training, ["step"], "heap=driver")
    assert "heap= does not name pytorch" in info["sources"]["before_attach"], info["sources"]
    assert not seeds(events, "pytorch") and not seeds(events, "driver")
    training.end()


CASES = [as_pytorch_says, other_allocator, by_option]


if __name__ == "__main__":
    sys.exit(rigs.main_of_cases([(case.__name__, case) for case in CASES], __doc__))
