#!/usr/bin/env python3
"""The callbacks for training libraries, in the libraries' own loops: marks, figures in their logs, in TensorBoard and in Weights
& Biases, the report.

Usage: callbacks_check.py [--build DIR] [NAME...]
Needs the libraries: those that scripts/setup installs, or GMT_LIBRARIES_PYTHON. Otherwise exits with 77.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import ROOT, main_of_cases  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 6
PEAK = "gpu_memory/0/pytorch_peak_bytes"


def python_with_libraries():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("GMT_LIBRARIES_PYTHON") or f"{cache}/gpumemtrace/libraries/bin/python"


def environment(rig):
    path = f"{rig.build / 'bin'}:{os.environ['PATH']}"  # `python -m gpumemtrace` finds the program there
    return {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1", "PATH": path, "WANDB_MODE": "offline",
            "WANDB_SILENT": "true"}


def as_float32(value):
    """As TensorBoard keeps it."""
    return struct.unpack("f", struct.pack("f", value))[0]


def logged(folder):
    """Returns the contents of the files of TensorBoard and of Weights & Biases."""
    done = subprocess.run([python_with_libraries(), HERE / "logged.py"], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def values_of(series):
    """Returns the values of the peak, whatever the library has put before its name."""
    (name,) = [name for name in series if name.endswith(PEAK)]
    return series[name]


def train(rig, folder, library):
    """Trains under the recorder. Returns the recording, and what the library logged."""
    recording = rig.run(folder, [python_with_libraries(), HERE / "train.py", library], **environment(rig))
    result = recording.result()
    recorded = [float(entry[PEAK]) for entry in result["logs"] if entry.get(PEAK)]
    assert recorded, result["logs"]
    assert recorded == sorted(recorded) and 0 < recorded[0] and recorded[-1] <= result["peak"], (recorded, result["peak"])
    written = logged(folder)
    assert values_of(written["tensorboard"]) == list(map(as_float32, recorded)), (written["tensorboard"], recorded)
    assert values_of(written["wandb"]) == recorded, (written["wandb"], recorded)
    return recording, result["logs"]


def marks(recording, name):
    return [event["index"] for event in recording.events() if event["kind"] == "mark" and event["name"] == name]


def regions(recording, name):
    return [event["kind"] for event in recording.events() if event["kind"].startswith("range_") and event["name"] == name]


def check_report(recording):
    assert "peak " in recording.done.stderr and " allocated on GPU 0" in recording.done.stderr, recording.done.stderr


def transformers_trainer(rig, folder):
    recording, logs = train(rig, folder, "transformers")
    assert marks(recording, "step") == list(range(1, STEPS + 1)), marks(recording, "step")
    assert regions(recording, "evaluation") == ["range_begin", "range_end"] * 2, regions(recording, "evaluation")
    assert all(PEAK in entry for entry in logs), logs
    check_report(recording)


def lightning_trainer(rig, folder):
    recording, logs = train(rig, folder, "lightning")
    # Two batches make a step, and an epoch has three steps.
    assert marks(recording, "step") == list(range(1, STEPS + 1)), marks(recording, "step")
    # The first one is Lightning's check of the validation before training.
    assert regions(recording, "evaluation") == ["range_begin", "range_end"] * 3, regions(recording, "evaluation")
    assert [int(entry["step"]) for entry in logs if entry[PEAK]] == [2, 4, 6], logs
    check_report(recording)


def accelerate_loop(rig, folder):
    recording, logs = train(rig, folder, "accelerate")
    assert marks(recording, "log") == list(range(STEPS)), marks(recording, "log")
    assert len(logs) == STEPS, logs
    check_report(recording)


def nothing_happens_without_recording(rig, folder):
    for library in ("transformers", "lightning", "accelerate"):
        done = subprocess.run(rig.simulated([python_with_libraries(), HERE / "train.py", library]), cwd=folder,
                              env={**os.environ, **environment(rig)}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        written = logged(folder)
        assert written["tensorboard"] and written["wandb"], written
        entries = [*json.loads(done.stdout.splitlines()[-1])["logs"], *written.values()]
        assert not any("gpu_memory" in name for entry in entries for name in entry), entries
        assert "gpumemtrace:" not in done.stderr and " allocated on GPU" not in done.stderr, done.stderr


if __name__ == "__main__":
    asked = [python_with_libraries(), "-c", "import transformers, lightning, accelerate, tensorboard, wandb"]
    if not os.path.exists(asked[0]) or subprocess.run(asked, capture_output=True, check=False).returncode != 0:
        print(f"skipped: {asked[0]} lacks the training libraries; scripts/setup installs them")
        sys.exit(77)
    cases = [transformers_trainer, lightning_trainer, accelerate_loop, nothing_happens_without_recording]
    sys.exit(main_of_cases([(case.__name__, case) for case in cases], __doc__, torch=False))
