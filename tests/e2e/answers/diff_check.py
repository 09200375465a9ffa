#!/usr/bin/env python3
"""`gpumemtrace diff` on two versions of a PyTorch program; the second one has an additional line.

The program reports the peak of PyTorch's allocated memory for each step. The new version is in another directory, and a
comment has shifted its lines.

Usage: diff_check.py --build DIR [--python PYTHON] [NAME...]
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import MIB, main_of_cases  # noqa: E402

PROGRAM = '''
import json
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(512, 1024)
        self.last = torch.nn.Linear(1024, 512)

    def forward(self, inputs):
        hidden = torch.relu(self.first(inputs))
        return self.last(hidden)

def main():
    torch.manual_seed(0)
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    peaks = []
    for step in range(6):
        torch.cuda.reset_peak_memory_stats()
        inputs = torch.randn(256, 512).cuda()
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        peaks.append(torch.cuda.max_memory_allocated())
    print(json.dumps({"peaks": peaks}))

main()
'''
LINE = "        return self.last(hidden)\n"
MORE = "        # Kept for a picture of it.\n        self.picture = hidden.detach().clone()\n" + LINE
PICTURE = 256 * 1024 * 4


def record(rig, folder, name, program):
    place = folder / name
    (place / "sessions").mkdir(parents=True, mode=0o700)
    (place / "train.py").write_text(program)
    recording = rig.run(place, [rig.python, place / "train.py"])
    return recording, recording.result()["peaks"]


def both(rig, folder):
    base, base_peaks = record(rig, folder, "base", PROGRAM)
    changed, new_peaks = record(rig, folder, "new", PROGRAM.replace(LINE, MORE))
    return base, base_peaks, changed, new_peaks


def diff(rig, *words):
    done = subprocess.run([rig.program, "diff", *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def check_sum(found):
    assert sum(row["delta_bytes"] for row in found["rows"]) == found["delta_bytes"], found
    assert found["new_bytes"] - found["base_bytes"] == found["delta_bytes"], found


def added_line_is_the_row(rig, folder):
    base, base_peaks, changed, new_peaks = both(rig, folder)
    code, out, err = diff(rig, base.path, changed.path, "--json")
    assert code == 0, err
    found = json.loads(out)
    check_sum(found)
    word, step = found["aligned_on"].split()
    assert word == "step" and int(step) > 2, found["aligned_on"]
    assert found["base_bytes"] == base_peaks[int(step) - 1], (found["base_bytes"], base_peaks)
    assert found["new_bytes"] == new_peaks[int(step) - 1], (found["new_bytes"], new_peaks)
    first = found["rows"][0]
    assert first["base_id"] is None and first["delta_bytes"] in (PICTURE, 2 * PICTURE), first
    lines = [(f["function"], f["line"]) for f in first["frames"] if (f["file"] or "").endswith("train.py")]
    moved = 1 + (PROGRAM[: PROGRAM.index(LINE)] + MORE).split("\n").index(MORE.split("\n")[1])
    assert lines[0] == ("Net.forward", moved), (lines, moved)
    # Unchanged stacks are matched, although their lines have moved and the directory differs.
    assert found["moved_stacks"] > 0 and found["gone_stacks"] == 0, found


def limit_is_a_gate(rig, folder):
    base, _, changed, _ = both(rig, folder)
    code, out, _ = diff(rig, base.path, changed.path, "--fail-above", "1%")
    assert code == 3 and "FAIL, the limit is 1 %" in out.splitlines()[0], out
    code, out, _ = diff(rig, changed.path, base.path, "--fail-above", "1%")
    assert code == 0 and "passes the limit" in out.splitlines()[0], out
    code, out, _ = diff(rig, base.path, changed.path, "--fail-above", "1GiB", "--markdown")
    assert code == 0 and out.startswith("**GPU memory, GPU 0: +"), out
    assert len(out) < 65536 and "self.picture" not in out, out


def same_program_twice_is_the_same(rig, folder):
    base, peaks = record(rig, folder, "base", PROGRAM)
    again, other_peaks = record(rig, folder, "again", PROGRAM)
    assert peaks == other_peaks, (peaks, other_peaks)
    code, out, err = diff(rig, base.path, again.path, "--json", "--fail-above", "0%")
    assert code == 0, err
    found = json.loads(out)
    assert found["rows"] == [] and found["delta_bytes"] == 0, found


def recording_of_another_kind_is_compared(rig, folder):
    """The event log of a recording and PyTorch's snapshot of it contain the same blocks."""
    base, _ = record(rig, folder, "base", PROGRAM)
    (folder / "base.jsonl").write_text(base.verb("cat", "--json", base.path))
    code, out, err = diff(rig, base.path, folder / "base.jsonl", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == [], out
    base.verb("export", "--format", "torch", base.path, "-o", folder / "base.pickle")
    code, out, err = diff(rig, base.path, folder / "base.pickle", "--json", "--at", "peak")
    assert code == 0, err
    found = json.loads(out)
    check_sum(found)
    kept = found["unchanged"]["bytes"] / found["base_bytes"]
    assert kept >= 0.9, (kept, [(row["delta_bytes"], row["frames"][:3]) for row in found["rows"]])
    assert found["base_bytes"] >= 4 * MIB, found["base_bytes"]


CASES = [(function.__name__, function) for function in (
    added_line_is_the_row,
    limit_is_a_gate,
    same_program_twice_is_the_same,
    recording_of_another_kind_is_compared,
)]

if __name__ == "__main__":
    sys.exit(main_of_cases(CASES, __doc__))
