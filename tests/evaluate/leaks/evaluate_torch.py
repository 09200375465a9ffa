#!/usr/bin/env python3
"""evaluate_leaks_torch: measures how often `leaks` is right, on PyTorch training loops with known leaks
(training.py) on the simulated device.

Usage: evaluate_torch.py --build DIR [--seeds N] [--seed N] [--tune] [--quick] [--python PYTHON]
"""

import json
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "e2e" / "recording")]
from evaluation import Evaluation  # noqa: E402
from rig import Rig  # noqa: E402

PROGRAM = HERE / "training.py"
LEAKS = {
    "loss_kept": "tensor_kept",
    "graph_kept": "graph_kept",
    "outputs_kept": "tensor_kept",
    "hook_closure": "tensor_kept",
    "some_steps": "tensor_kept",
    "every_evaluation": "tensor_kept",
    "shapes_never_recur": "tensor_kept",
    "concatenated": "cat_growth",
    "gradients_kept": "tensor_kept",
    "pinned": "pinned_host",
    "driver": "driver",
}
CLEAN = (
    "nothing previous_loss queue_of_32 losses_of_an_epoch masks_by_shape copy_of_the_model evaluation"
    " biggest_so_far collected_late"
).split()
QUICK = ("graph_kept", "queue_of_32")


def lines_of_truth():
    """Returns for each habit the numbers of the lines whose memory it leaks."""
    lines = {habit: set() for habit in LEAKS}
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1):
        for habit in (re.search(r"# leaks: (.*)", line) or ["", ""])[1].split():
            lines[habit].add(number)
    return lines


def own_lines(suspect):
    """Yields for each stack of a suspect the lines of the program in it."""
    for stack in suspect["stacks"]:
        frames = stack["frames"] + stack.get("forward_frames", [])
        yield {f["line"] for f in frames if (f["file"] or "").endswith("/" + PROGRAM.name)}


class Habit:
    def __init__(self, rig, name, seed):
        self.name = name
        with tempfile.TemporaryDirectory(prefix="gmt-leaks.") as folder:
            folder = pathlib.Path(folder)
            (folder / "sessions").mkdir(mode=0o700)
            command = [rig.python, "-B", str(PROGRAM), name, "--seed", str(seed)]
            recording = rig.run(folder, command, ("--quiet", "--exit-wait", "100s"))
            self.bytes_per_step = recording.result()["bytes_per_step"]
            self.report = json.loads(recording.verb("leaks", "--json", recording.path))
        self.suspects = [s for s in self.report["suspects"] if s["tier"] != "possible"]

    def is_right(self, suspect, truth):
        lines = list(own_lines(suspect))
        return bool(lines) and all(of & truth[self.name] for of in lines)

    def in_words(self, suspect):
        frame = suspect["common_frame"] or {"file": "?", "line": 0}
        return f"{suspect['tier']} {suspect['kind']} {frame['file']}:{frame['line']}: {suspect['reason']}"


class Score:
    def __init__(self):
        self.right = self.suspects = self.found = self.leaks = self.kinds = self.bytes = 0
        self.quiet = self.clean = 0


def judge_leak(evaluation, seed, habit, truth, score):
    right = [s for s in habit.suspects if habit.is_right(s, truth)]
    score.leaks += 1
    score.found += bool(right)
    if not right:
        evaluation.missed(seed, f"{habit.name}: not found")
        return
    score.kinds += right[0]["kind"] == LEAKS[habit.name]
    if right[0]["kind"] != LEAKS[habit.name]:
        evaluation.missed(seed, f"{habit.name}: {habit.in_words(right[0])}")
    measured = sum(s["bytes_per_cycle"] for s in right)
    close = abs(measured - habit.bytes_per_step) <= 0.05 * habit.bytes_per_step
    score.bytes += close
    if not close:
        evaluation.missed(seed, f"{habit.name}: {measured} bytes per step, truth {habit.bytes_per_step:.0f}")


def judge(evaluation, seed, habit, truth, score):
    assert habit.report["cycles"]["source"] == "Optimizer.step", habit.report["cycles"]
    score.suspects += len(habit.suspects)
    is_leak = habit.name in LEAKS
    for suspect in habit.suspects:
        right = is_leak and habit.is_right(suspect, truth)
        score.right += right
        if not right:
            evaluation.missed(seed, f"{habit.name}: {habit.in_words(suspect)}")
    if is_leak:
        judge_leak(evaluation, seed, habit, truth, score)
    else:
        score.clean += 1
        score.quiet += not habit.suspects


def main():
    evaluation = Evaluation("leaks_torch", "Leaks of training loops of PyTorch", seeds=2, quick_seeds=1)
    rig = Rig(evaluation.build, evaluation.python())
    truth, score, rows = lines_of_truth(), Score(), []
    for seed in evaluation.seeds:
        for name in QUICK if evaluation.options.quick else (*LEAKS, *CLEAN):
            habit = Habit(rig, name, seed)
            judge(evaluation, seed, habit, truth, score)
            first = habit.suspects[0] if habit.suspects else None
            rows.append(
                (
                    seed,
                    name,
                    "leak" if name in LEAKS else "clean",
                    f"{first['tier']}, {first['kind']}" if first else "no leak",
                    f"{habit.bytes_per_step:.0f}",
                    sum(s["bytes_per_cycle"] for s in habit.suspects) or "",
                )
            )
    evaluation.text(
        "240 steps of a small model with AdamW on the simulated device, with one additional habit "
        "(tests/evaluate/leaks/training.py). A suspect is correct if each of its stacks passes through a "
        "line that leaks. The bytes are compared with the growth of PyTorch's own counter."
    )
    columns = ("seed", "habit", "truth", "reported", "bytes per step (PyTorch)", "bytes per step (reported)")
    evaluation.table(columns, rows)
    evaluation.at_least("precision", score.right, score.suspects, 0.95)
    evaluation.at_least("recall", score.found, score.leaks, 0.95)
    evaluation.at_least("kind", score.kinds, score.found, 0.9)
    evaluation.at_least("bytes per step within 5 %", score.bytes, score.found, 0.9)
    evaluation.at_least("clean programs without a suspect", score.quiet, score.clean, 0.95)
    sys.exit(evaluation.finish())


if __name__ == "__main__":
    main()
