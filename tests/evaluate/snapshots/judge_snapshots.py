#!/usr/bin/env python3
"""What is concluded from snapshots that others made of their programs with PyTorch, against a file that says what is true.

Usage: judge_snapshots.py --build DIR [--truth FILE] FOLDER      (scripts/evaluate --snapshots FOLDER)
The section that it prints says what FILE holds.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import torch_snapshot  # noqa: E402
from evaluation import Evaluation  # noqa: E402

BYTES = ("end_allocated", "end_reserved", "peak_allocated", "peak_reserved")
VERDICTS = ("oom", "leaks")
CATEGORIES = (
    "parameters", "gradients", "optimizer_state", "activations", "recomputed", "temporaries", "inputs", "workspaces",
    "communication", "graph_pools", "kv_cache", "other_libraries", "cache", "unknown",
)
NEAR = 0.05  # of a category's bytes
NOTHING = 0.005  # of all bytes: a category that has none may be said to have so many
REPLAYED = 0.01  # a history has the sizes that were asked for, not those of the blocks
SETS = {"made": "rules were made with them", "judged": "rules were not tuned on them, save one of steps"}

Miss = collections.namedtuple("Miss", "snapshot what true said")


def read_truth(path):
    """By file and device: key to text."""
    truth = collections.defaultdict(dict)
    if not path.exists():
        return truth
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if number == 1 or not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 4 or not cells[1].isdigit():
            sys.exit(f"{path}:{number}: file, device, key and value must stand there, with tabs between them")
        known = BYTES + VERDICTS + CATEGORIES + ("name", "set", "steps")
        if cells[2] not in known:
            sys.exit(f"{path}:{number}: there is no key '{cells[2]}'; known are {', '.join(known)}")
        truth[cells[0], int(cells[1])][cells[2]] = cells[3]
    return truth


class Answers:
    """Of gpumemtrace, about one snapshot."""

    def __init__(self, program, snapshot):
        self._program, self._snapshot = program, snapshot
        self.peak, self.end = (self._devices("--heap", "pytorch", "--at", when) for when in ("peak", "end"))
        self.leaks = self._leaks()
        self.oom = self._ask("oom")["verdict"]

    def _ask(self, verb, *options):
        done = subprocess.run([self._program, verb, "--json", *options, self._snapshot], capture_output=True, text=True)
        if not done.stdout.startswith("{"):
            sys.exit(f"gpumemtrace {verb} {self._snapshot}: {done.stderr}")
        return json.loads(done.stdout)

    def _devices(self, *options):
        return {device["index"]: device for device in self._ask("report", *options)["devices"]}

    def _leaks(self):
        said = self._ask("leaks")
        if not said["enough"]:
            return "too_early"
        return "leak" if said["suspects"] else "no_leak"

    def bytes(self, device):
        heap = [heap for heap in self.end[device]["heaps"] if heap["heap"] == "pytorch"][0]
        return {"end_allocated": heap["live_bytes"], "end_reserved": heap["reserved_bytes"],
                "peak_allocated": heap["peak_live_bytes"], "peak_reserved": heap["peak_reserved_bytes"]}

    def steps(self, device):
        steps = self.peak[device]["steps"]
        return steps["count"] if steps else 0

    def category(self, device, category):
        return sum(use["bytes"] for use in self.peak[device]["categories"] if use["category"] == category)


class Judge:
    def __init__(self):
        self.right, self.all, self.misses = collections.Counter(), collections.Counter(), []

    def count(self, what, is_right, snapshot, key, true, said):
        self.all[what] += 1
        self.right[what] += is_right
        if not is_right:
            self.misses.append(Miss(snapshot, key, true, said))

    def device(self, answers, device, truth, snapshot):
        name = snapshot if len(answers.peak) == 1 else f"{snapshot}; GPU {device}"
        for key, said in answers.bytes(device).items() if device in answers.end else ():
            if key in truth:
                self.count("bytes", said == int(truth[key]), name, key, truth[key], said)
        if device not in answers.peak:
            self.count("bytes", False, name, "the GPU", "there", "missing")
            return
        if "steps" in truth:
            self.count("steps", answers.steps(device) == int(truth["steps"]), name, "steps", truth["steps"], answers.steps(device))
        whole = answers.peak[device]["bytes"]
        for key in CATEGORIES:
            if key not in truth:
                continue
            true, said = int(truth[key]), answers.category(device, key)
            allowed = NEAR * true if true else NOTHING * whole
            self.count("categories", abs(said - true) <= allowed, name, key, f"{true:,}", f"{said:,}")
        for key in VERDICTS:
            if key in truth:
                said = getattr(answers, key)
                self.count("verdicts", said == truth[key], name, key, truth[key], said)

    def replay(self, answers, path, name):
        for device, use in torch_snapshot.totals(torch_snapshot.load(path)).items():
            for key, true in use.items():
                said = answers.bytes(device)[key] if device in answers.end else 0
                near = abs(said - true) <= (REPLAYED * true if key.startswith("peak") else 0)
                self.count("bytes", near, name, f"{key} of GPU {device}", true, said)


def judge_all(options, judges):
    truth = read_truth(options.truth)
    paths = sorted(path for path in options.folder.iterdir() if path.name.endswith((".pickle", ".pickle.gz")))
    for path in paths:
        file = path.name.removesuffix(".gz")
        devices = {device: of for (name, device), of in truth.items() if name == file}
        told = {key: text for of in devices.values() for key, text in of.items() if key in ("name", "set")}
        judge, name = judges[told.get("set", "judged")], told.get("name", file)
        answers = Answers(options.build / "bin/gpumemtrace", path)
        for device, of in sorted(devices.items()):
            judge.device(answers, device, of, name)
        if not devices:
            judge.replay(answers, path, name)
    return len(paths)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--truth", type=pathlib.Path, help="FOLDER/truth.tsv without it")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.truth = options.truth or options.folder / "truth.tsv"
    judges = {of: Judge() for of in SETS}
    count = judge_all(options, judges)
    if count == 0:
        sys.exit(f"{options.folder} has no .pickle and no .pickle.gz")

    evaluation = Evaluation("snapshots", "Snapshots from real GPUs", arguments=["--build", str(options.build)])
    evaluation.command = "scripts/evaluate --snapshots FOLDER"
    evaluation.text((HERE / "section.md").read_text().strip().format(count=count))
    for of, judge in judges.items():
        for what, goal in (("bytes", 1.0), ("steps", 1.0), ("categories", 0.9), ("verdicts", 1.0)):
            if judge.all[what]:
                evaluation.at_least(f"{what}; {SETS[of]}", judge.right[what], judge.all[what], goal)
    misses = [(of, miss) for of, judge in judges.items() for miss in judge.misses]
    evaluation.table(("missed", "what", "true", "said", "set"), [(*miss, of) for of, miss in misses])
    total_right, total = (sum((getattr(judge, of) for judge in judges.values()), collections.Counter()) for of in ("right", "all"))
    evaluation.shown("in all", f"{total_right.total()} of {total.total()}")
    sys.exit(evaluation.finish())


if __name__ == "__main__":
    main()
