#!/usr/bin/env python3
"""Records vLLM while it generates text on the simulated device. The recording must have the calls that the device logged, the peak
that PyTorch counts, and the size of vLLM's cache of keys and values.

Usage: vllm_check.py --build DIR

Needs GMT_VLLM_PYTHON: a Python with vLLM, which is too large for scripts/setup (docs/vllm.md); otherwise exits with 77.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import PROGRAMS, main_of_cases  # noqa: E402

PYTHON = os.environ.get("GMT_VLLM_PYTHON")


def generation(rig, folder):
    (folder / "model").mkdir()
    recording = rig.run(folder, [PYTHON, PROGRAMS / "frameworks/vllm_generate.py", folder / "model"], ("--quiet",),
                        TRITON_LIBCUDA_PATH=str(rig.build / "simcuda"), PYTHONDONTWRITEBYTECODE="1")
    result = recording.result()
    assert result["generated"] == 4, result
    recording.check_whole()
    recording.check_against_the_device()
    assert recording.peak("pytorch") == result["allocated"] and recording.peak("driver") == result["reserved"], result
    report = recording.report("--by", "category")
    held = {row["category"]: row["bytes"] for row in report["rows"] if row["device"] == 0}
    assert held["kv_cache"] == result["kv_cache"], (held, result)
    # Blocks are rounded up, and vLLM computes a table of angles with its parameters.
    assert result["parameters"] <= held["parameters"] <= result["parameters"] * 1.02, (held, result)


if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: GMT_VLLM_PYTHON is not set")
        sys.exit(77)
    sys.exit(main_of_cases([("generation", generation)], __doc__, torch=False))
