#!/usr/bin/env python3
"""Records llama.cpp, with its own CUDA backend, while it generates text on the simulated device. The recording must have the
calls that the device logged, and each buffer that llama.cpp reports with the size that it reports.

Usage: llama_check.py --build DIR

Needs the llama.cpp that scripts/setup --all installs (tests/e2e/frameworks/llama) and Node.js; otherwise exits with 77.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import MIB, PROGRAMS, main_of_cases  # noqa: E402

LLAMA = pathlib.Path(__file__).resolve().parent / "llama"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "gpumemtrace")
COUNT = 8
# What llama.cpp calls a buffer -> a function of its stack, and the category.
BUFFERS = {
    "model": ("llama_model_base::load_tensors", "parameters"),
    "KV": ("llama_kv_cache::llama_kv_cache", "kv_cache"),
    "compute": ("llama_context::sched_reserve", "other_libraries"),
}
POOL = "ggml_cuda_pool_vmm::alloc"  # of temporaries; it grows by mapping memory


def find_node():
    return shutil.which("node") or shutil.which("node", path=CACHE / "node" / "bin")


def has(row, function):
    return any((frame["function"] or "").startswith(function) for frame in row["frames"])


def generation(rig, folder):
    model = folder / "model.gguf"
    written = subprocess.run([sys.executable, PROGRAMS / "frameworks/llama_model.py", model], capture_output=True, text=True, check=True)
    weights = json.loads(written.stdout)
    recording = rig.run(folder, [find_node(), LLAMA / "generate.mjs", model, COUNT], ("--quiet",))
    result = recording.result()
    assert result["generated"] == COUNT, result
    recording.check_whole()
    recording.check_against_the_device()

    report = recording.report("--top", "100")
    rows = [row for row in report["rows"] if row["device"] == 0]
    for name, (function, category) in BUFFERS.items():
        (row,) = [row for row in rows if has(row, function)]
        reported = result["sizes"][f"CUDA0 {name} buffer"]
        assert abs(row["bytes"] / MIB - reported) < 0.01, (name, row["bytes"], reported)
        assert row["category"] == category, row
    # The embedding stays on the host.
    on_device = sum(size for tensor, size in weights.items() if tensor != "token_embd.weight")
    assert max(row["bytes"] for row in rows) == on_device, (rows[0], on_device)
    assert any(has(row, POOL) for row in rows) and sum(row["bytes"] for row in rows) == recording.peak(), rows
    launches = [event for event in recording.events() if event["kind"] == "graph" and event["action"] == "launch"]
    assert launches, "no graph was launched"


if __name__ == "__main__":
    if find_node() is None or not (LLAMA / "node_modules").exists():
        print("skipped: llama.cpp is not installed (scripts/setup --all)")
        sys.exit(77)
    sys.exit(main_of_cases([("generation", generation)], __doc__, torch=False))
