#!/usr/bin/env python3
"""Compares the answers about snapshots that people made of their own PyTorch programs with a file of facts.

Usage: judge_snapshots.py --build DIR [--truth FILE] FOLDER      (scripts/evaluate --snapshots FOLDER)
section.md describes FILE.
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
NEAR = 0.05  # allowed error as a share of a category's bytes
NOTHING = 0.005  # allowed error of an empty category as a share of all bytes
REPLAYED = 0.01  # allowed error of a replay: a history has requested sizes, not those of blocks
SETS = {"made": "used to develop the rules", "judged": "held out"}

Miss = collections.namedtuple("Miss", "snapshot what true reported")


def read_truth(path):
    """Returns a dict from (file, device) to a dict of keys and texts."""
    truth = collections.defaultdict(dict)
    if not path.exists():
        return truth
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if number == 1 or not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 4 or not cells[1].isdigit():
            sys.exit(f"{path}:{number}: expected file, device, key and value, separated by tabs")
        known = BYTES + VERDICTS + CATEGORIES + ("name", "set", "steps")
        if cells[2] not in known:
            sys.exit(f"{path}:{number}: unknown key '{cells[2]}'; known keys: {', '.join(known)}")
        truth[cells[0], int(cells[1])][cells[2]] = cells[3]
    return truth


class Answers:
    """The answers of gpumemtrace about one snapshot."""

    def __init__(self, program, snapshot):
        self._program, self._snapshot = program, snapshot
        self.peak, self.end = (self._devices("--heap", "pytorch", "--at", when) for when in ("peak", "end"))
        self.leaks = self._leaks()
        self.oom = self._ask("oom")["verdict"]
        self.replayed = self._replay()

    def _ask(self, verb, *options):
        done = subprocess.run([self._program, verb, "--json", *options, self._snapshot], capture_output=True, text=True)
        if not done.stdout.startswith("{"):
            sys.exit(f"gpumemtrace {verb} {self._snapshot}: {done.stderr}")
        return json.loads(done.stdout)

    def _devices(self, *options):
        return {device["index"]: device for device in self._ask("report", *options)["devices"]}

    def _leaks(self):
        reported = self._ask("leaks")
        if not reported["enough"]:
            return "too_early"
        return "leak" if reported["suspects"] else "no_leak"

    def _replay(self):
        """Returns whether whatif reproduces the history; None if there are no segment calls in it."""
        done = subprocess.run([self._program, "whatif", "--json", self._snapshot], capture_output=True, text=True)
        answer = json.loads(done.stdout) if done.stdout.startswith("{") else None
        return not answer["refused"] if answer and answer["replay"]["segment_events"] else None

    def bytes(self, device):
        if device not in self.end:  # nothing was ever allocated on it
            return dict.fromkeys(BYTES, 0)
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

    def count(self, what, is_right, snapshot, key, true, reported):
        self.all[what] += 1
        self.right[what] += is_right
        if not is_right:
            self.misses.append(Miss(snapshot, key, true, reported))

    def device(self, answers, device, truth, snapshot):
        name = snapshot if len(answers.peak) == 1 else f"{snapshot}; GPU {device}"
        for key, reported in answers.bytes(device).items():
            if key in truth:
                self.count("bytes", reported == int(truth[key]), name, key, truth[key], reported)
        for key in VERDICTS:
            if key in truth:
                reported = getattr(answers, key)
                self.count("verdicts", reported == truth[key], name, key, truth[key], reported)
        if device not in answers.peak:
            return
        if "steps" in truth:
            self.count("steps", answers.steps(device) == int(truth["steps"]), name, "steps", truth["steps"], answers.steps(device))
        whole = answers.peak[device]["bytes"]
        for key in CATEGORIES:
            if key not in truth:
                continue
            true, reported = int(truth[key]), answers.category(device, key)
            allowed = NEAR * true if true else NOTHING * whole
            self.count("categories", abs(reported - true) <= allowed, name, key, f"{true:,}", f"{reported:,}")

    def replay(self, answers, path, name):
        for device, use in torch_snapshot.totals(torch_snapshot.load(path)).items():
            for key, true in use.items():
                reported = answers.bytes(device)[key]
                near = abs(reported - true) <= (REPLAYED * true if key.startswith("peak") else 0)
                self.count("bytes", near, name, f"{key} of GPU {device}", true, reported)


def judge_all(options, judges):
    truth = read_truth(options.truth)
    paths = sorted(path for path in options.folder.iterdir() if path.name.endswith((".pickle", ".pickle.gz")))
    for path in paths:
        file = path.name.removesuffix(".gz")
        devices = {device: of for (name, device), of in truth.items() if name == file}
        labels = {key: text for of in devices.values() for key, text in of.items() if key in ("name", "set")}
        judge, name = judges[labels.get("set", "judged")], labels.get("name", file)
        answers = Answers(options.build / "bin/gpumemtrace", path)
        for device, of in sorted(devices.items()):
            judge.device(answers, device, of, name)
        if answers.replayed is not None:
            judge.count("histories replayed", answers.replayed, name, "whatif", "reproduced", "refused")
        if not devices:
            judge.replay(answers, path, name)
    return len(paths)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--truth", type=pathlib.Path, help="default: FOLDER/truth.tsv")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.truth = options.truth or options.folder / "truth.tsv"
    judges = {of: Judge() for of in SETS}
    count = judge_all(options, judges)
    if count == 0:
        sys.exit(f"{options.folder} contains no .pickle or .pickle.gz file")

    evaluation = Evaluation("snapshots", "Snapshots from real GPUs", arguments=["--build", str(options.build)])
    evaluation.command = "scripts/evaluate --snapshots FOLDER"
    evaluation.text((HERE / "section.md").read_text().strip().format(count=count))
    for of, judge in judges.items():
        for what, goal in (("bytes", 1.0), ("steps", 1.0), ("categories", 0.9), ("verdicts", 1.0),
                           ("histories replayed", 1.0)):
            if judge.all[what]:
                evaluation.at_least(f"{what}; {SETS[of]}", judge.right[what], judge.all[what], goal)
    misses = [(of, miss) for of, judge in judges.items() for miss in judge.misses]
    evaluation.table(("missed", "what", "true", "reported", "set"), [(*miss, of) for of, miss in misses])
    total_right, total = (sum((getattr(judge, of) for judge in judges.values()), collections.Counter()) for of in ("right", "all"))
    evaluation.shown("in total", f"{total_right.total()} of {total.total()}")
    sys.exit(evaluation.finish())


if __name__ == "__main__":
    main()
