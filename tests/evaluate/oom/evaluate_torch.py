#!/usr/bin/env python3
"""Measures how often `oom` and `frag` are right, on PyTorch programs that run out of memory for a known
reason (tests/programs/torch/oom_reasons.py) on the simulated device. The truth about free memory is
PyTorch's own snapshot.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "evaluate"))
from evaluation import Evaluation  # noqa: E402

PROGRAM = ROOT / "tests" / "programs" / "torch" / "oom_reasons.py"
GIB = 1 << 30
MEMORY = 6 * GIB
REASONS = (
    "capacity",
    "single_request",
    "fragmentation",
    "leak",
    "outside",
    "cap",
    "other_process",
    "private_pool",
    "stream_deferred",
    "none",
)
# Reasons whose bytes are given by figures of the evidence.
FIGURES = {
    "leak": ("leaked_bytes",),
    "outside": ("outside_bytes",),
    "other_process": ("other_processes_bytes", "not_apart_bytes"),
}


def environment_of(reason, seed):
    more = {"SIMCUDA_MEMORY": str(MEMORY), "SIMCUDA_CONTEXT": "200M"}
    chance = random.Random(seed)
    if reason == "other_process":
        more["SIMCUDA_FOREIGN"] = str(int(MEMORY * chance.uniform(0.4, 0.7)))
    if reason == "stream_deferred":
        more["SIMCUDA_LAG"] = "100000"
    # Not for fragmentation, which expandable segments prevent.
    if reason in ("capacity", "leak", "cap", "outside", "other_process") and chance.random() < 0.4:
        more["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    return more


class Case:
    def __init__(self, evaluation, reason, seed):
        self.reason = reason
        program = str(evaluation.build / "bin" / "gpumemtrace")
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as folder:
            path = pathlib.Path(folder) / "run.gmt"
            command = [program, "run", "--quiet", "--exit-wait", "100s", "-o", str(path), "--",
                       str(evaluation.build / "simcuda" / "with-simcuda"), evaluation.python(), "-B",
                       str(PROGRAM), reason, "--seed", str(seed)]
            environment = {**os.environ, **environment_of(reason, seed)}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
                sys.exit(f"{reason}, seed {seed}: the program ended with {done.returncode}:\n{done.stderr[-3000:]}")
            self.truth = json.loads(done.stdout)
            self.oom = self.ask(program, "oom", path)
            self.frag = self.ask(program, "frag", path, "--at", "end")
        if self.truth["failed"] != (reason != "none"):
            sys.exit(f"{reason}, seed {seed}: the program did not end as expected")

    @staticmethod
    def ask(program, verb, path, *options):
        done = subprocess.run([program, verb, str(path), "--json", *options], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"{verb} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def is_right(self):
        return self.oom["verdict"] == self.reason

    def adds_up(self):
        """Returns whether the parts and the driver's free memory add up to the device's memory."""
        evidence = self.oom["evidence"]
        if self.reason == "none" or evidence["driver_free_bytes"] is None:
            return True
        parts = ("live", "free", "outside", "other_processes", "not_apart", "system", "unexplained", "driver_free")
        return sum(evidence[f"{part}_bytes"] for part in parts) == evidence["total_bytes"]

    def has_bytes(self):
        figures = FIGURES.get(self.reason)
        if figures is None or not self.is_right():
            return None
        found = sum(self.oom["evidence"][figure] for figure in figures)
        return abs(found - self.truth["bytes"]) <= self.truth["bytes"] * 0.1 + (256 << 20)

    def split(self):
        """Returns frag's split in the program's terms, with one figure for free memory beside blocks of
        any stream."""
        found = dict(self.frag["split"])
        return {"allocated": self.frag["allocated_bytes"], "releasable": found["releasable"],
                "beside": found["pinned"] + found["stream"], "private": found["private_pool"],
                "awaiting": found["awaiting_stream"]}

    def split_is_right(self):
        truth, found = dict(self.truth["split"]), self.split()
        if not self.truth["named_pools"]:  # the analysis cannot identify a MemPool, so its free memory counts as ordinary
            for split in (truth, found):
                split["releasable"] += split.pop("private") + split.pop("beside")
        return found == truth


def main():
    evaluation = Evaluation("oom_torch", "Out of memory in PyTorch", seeds=8, quick_seeds=1)
    verdicts = {reason: [0, 0] for reason in REASONS}
    splits, sums, figures = [0, 0], [0, 0], [0, 0]

    def count(rate, right):
        rate[0] += bool(right)
        rate[1] += 1

    for seed in evaluation.seeds:
        for reason in REASONS:
            case = Case(evaluation, reason, seed)
            count(verdicts[reason], case.is_right())
            count(sums, case.adds_up())
            count(splits, case.split_is_right())
            if case.has_bytes() is not None:
                count(figures, case.has_bytes())
            if not case.is_right():
                evaluation.missed(seed, f"{reason} reported as {case.oom['verdict']}: {case.oom['evidence']}")
            if not case.split_is_right():
                evaluation.missed(seed, f"{reason}: frag reports {case.split()}, PyTorch {case.truth['split']}")
            if not case.adds_up() or case.has_bytes() is False:
                evaluation.missed(seed, f"{reason}: {case.truth['bytes']} bytes: {case.oom['evidence']}")
    evaluation.text(
        "PyTorch programs on the simulated device (6 GiB) that fail for a known reason: PyTorch's allocator, "
        "streams, captures, pools and limits; partly with expandable segments. Free memory and its cause are "
        "compared at the end of the program with `torch.cuda.memory_snapshot()`, to the byte. Free memory of a "
        "`MemPool` counts as ordinary free memory there, because PyTorch does not identify it."
    )
    for reason, (right, of) in verdicts.items():
        evaluation.at_least(reason, right, of, 0.95)
    evaluation.at_least("bytes of the cause, within a tenth", *figures, 0.95)
    evaluation.at_least("frag: every part to the byte", *splits, 0.95)
    evaluation.holds("the parts add up to the device", sums[0] == sums[1])
    return evaluation.finish()


if __name__ == "__main__":
    sys.exit(main())
