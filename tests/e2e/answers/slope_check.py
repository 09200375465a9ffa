#!/usr/bin/env python3
"""`gpumemtrace report --slope` on two runs of a language model must predict the peak of a third, larger run.

Usage: slope_check.py --build DIR [--python PYTHON] [NAME...]
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import schemas  # noqa: E402
from rig import main_of_cases  # noqa: E402

# Attention that keeps all scores.
ATTENTION = """
import json, sys
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2)
        return x + scores.softmax(-1) @ self.value(x)

tokens = int(sys.argv[1])
model = nn.Sequential(nn.Embedding(5000, 96), *(Attention(96) for _ in range(4)), nn.Linear(96, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    model(torch.randint(5000, (6, tokens)).cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(json.dumps({"max_memory_allocated": torch.cuda.max_memory_allocated()}))
"""
MODEL = ("--hidden", "128", "--vocabulary", "2000", "--layers", "3", "--steps", "4", "--json")
TOLERANCE = 0.05


def record(rig, folder, name, command):
    place = folder / name
    (place / "sessions").mkdir(parents=True, mode=0o700)
    return rig.run(place, command)


def record_batch(rig, folder, batch):
    command = rig.torch("train_gpt.py", "--batch", batch, "--seq", "128", *MODEL)
    return record(rig, folder, f"batch{batch}", command)


def peak_of(recording):
    return recording.result()["max_memory_allocated"]


def slope_of(small, large):
    small.result(), large.result()
    words = ["report", small.path, large.path, "--slope"]
    text = large.verb(*words, "--json")
    assert not list(schemas.problems(words, text)), list(schemas.problems(words, text))
    (device,) = json.loads(text)["devices"]
    parts = {growth: device[f"{growth}_bytes"] for growth in ("constant", "linear", "quadratic", "unclear")}
    assert sum(parts.values()) == device["new_bytes"], device
    for growth, size in parts.items():
        rows = sum(row[f"{growth}_bytes"] for row in device["rows"])
        assert rows <= size if growth == "constant" else rows == size, (growth, rows, size)
    assert parts["unclear"] < TOLERANCE * device["new_bytes"], parts
    return device, parts


def check_prediction(predicted, recording):
    peak = peak_of(recording)
    assert abs(predicted - peak) < TOLERANCE * peak, (predicted, peak)


def longer_sequences(rig, folder):
    (folder / "attention.py").write_text(ATTENTION)
    runs = [record(rig, folder, f"tokens{n}", [rig.python, folder / "attention.py", n]) for n in (256, 512, 1024)]
    device, parts = slope_of(*runs[:2])
    assert device["unit"] == "token" and device["new_inputs"]["tokens"] == 512, device
    assert parts["quadratic"] > parts["linear"] > 0, parts
    check_prediction(parts["constant"] + 2 * parts["linear"] + 4 * parts["quadratic"], runs[2])


def larger_batches(rig, folder):
    runs = [record_batch(rig, folder, batch) for batch in (8, 16, 32)]
    device, parts = slope_of(runs[1], runs[0])
    assert device["unit"] == "sample" and device["new_inputs"]["samples"] == 16, device
    check_prediction(parts["constant"] + 2 * parts["linear"], runs[2])
    check_prediction(parts["constant"] + 32 * device["linear_bytes_per_unit"], runs[2])


def equal_inputs_and_one_file_are_errors(rig, folder):
    run = record_batch(rig, folder, 4)
    run.result()
    for words, code, message in (
        ((run.path, run.path, "--slope"), 1, "another batch size"),
        ((run.path, "--slope"), 2, "expected two recordings"),
        ((run.path, run.path), 2, "gpumemtrace diff"),
        ((run.path, run.path, "--slope", "--by", "layer"), 2, "it takes --device"),
    ):
        done = subprocess.run([rig.program, "report", *words], capture_output=True, text=True, check=False)
        assert done.returncode == code and message in done.stderr, (words, done)


CASES = [(function.__name__, function) for function in (
    longer_sequences,
    larger_batches,
    equal_inputs_and_one_file_are_errors,
)]


if __name__ == "__main__":
    sys.exit(main_of_cases(CASES, __doc__.splitlines()[0]))
