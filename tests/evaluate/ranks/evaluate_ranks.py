#!/usr/bin/env python3
"""Measures how often `ranks` names the rank that differs, and why. Jobs of two to eight ranks are trained with
DistributedDataParallel, FSDP2 and as a pipeline (train_ranks.py), each with a planted cause or none.
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "evaluate"))
from evaluation import Evaluation  # noqa: E402

PROGRAM = pathlib.Path(__file__).resolve().with_name("train_ranks.py")
# What a cause of the rank must say.
CAUSES = {
    "batch": r"^activations \+", "leak": r"^(probably )?leaks .* per step at train_ranks\.py:", "communicator": r"^NCCL \+.* communicator",
    "stray": r"^contexts of ranks? ", "shard": r"^parameters, gradients and optimizer state \+", "gathers": r"gathered",
}
JOBS = {
    "ddp": ("none", "batch", "leak", "communicator", "stray"),
    "fsdp2": ("none", "batch", "leak", "communicator", "shard", "gathers"),
    "pipeline": ("none", "leak", "communicator", "stray", "shard"),
}
WORLDS = (2, 4, 8)
QUICK = {"fsdp2": ("none", "batch")}


class Runs:
    def __init__(self, evaluation):
        self.python, self.device = evaluation.python(), evaluation.device
        self.tool = str(evaluation.build / "bin" / "gpumemtrace")

    def job(self, parallel, world, cause, seed):
        """Returns the answer as JSON, and the rank that differs."""
        culprit = random.Random(f"{parallel} {world} {cause} {seed}").randrange(world)
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            folder = pathlib.Path(name)
            environment = {**os.environ, "SIMCUDA_DEVICES": str(world), "SIMCUDA_SHARED": str(folder / "shared"),
                           "SIMCUDA_CONTEXT": "300M", "SIMCUDA_DATA": "1M" if parallel == "ddp" else "0",
                           "TORCH_DIST_INIT_BARRIER": "0"}
            command = [self.tool, "run", "--quiet", "--exit-wait", "100s", "-o", str(folder / "out" / "r%r.gmt"), "--", *self.device,
                       self.python, "-B", str(PROGRAM), parallel, str(world), str(culprit), cause, str(folder / "store")]
            (folder / "out").mkdir()
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command[-5:])} ended with {done.returncode}:\n{done.stderr[-3000:]}")
            answer = subprocess.run([self.tool, "ranks", "--json", str(folder / "out")], capture_output=True, text=True, check=True)
        return json.loads(answer.stdout), culprit


def main():
    evaluation = Evaluation("ranks", "The rank that differs", seeds=1, quick_seeds=1)
    runs = Runs(evaluation)
    jobs, worlds = (QUICK, (4,)) if evaluation.options.quick else (JOBS, WORLDS)
    rows, right_rank, named, alone, quiet, planted, alike = [], 0, 0, 0, 0, 0, 0
    for parallel, causes in jobs.items():
        for cause in causes:
            for world in worlds:
                for seed in evaluation.seeds:
                    answer, culprit = runs.job(parallel, world, cause, seed)
                    outliers = [answer["ranks"][i] for i in answer["outliers"]]
                    words = "; ".join(f"rank {row['rank']}: {', '.join(row['causes'])}" for row in outliers) or "all agree"
                    if cause == "none":
                        alike += 1
                        is_right = not outliers
                        quiet += is_right
                    else:
                        planted += 1
                        is_first = bool(outliers) and outliers[0]["rank"] == culprit
                        is_right = is_first and any(re.search(CAUSES[cause], text) for text in outliers[0]["causes"])
                        right_rank += is_first
                        named += is_right
                        alone += all(row["rank"] == culprit for row in outliers)
                    rows.append((parallel, world, cause, f"rank {culprit}" if cause != "none" else "", words, "yes" if is_right else "**no**"))
                    if not is_right or evaluation.repeating:
                        evaluation.missed(seed, f"{parallel}, {world} ranks, {cause} in rank {culprit}: {words}")
    evaluation.text(
        "A GPT is trained on 2, 4 and 8 GPUs of " + evaluation.device_name + ", with DistributedDataParallel, with FSDP2 and as a "
        "pipeline. One rank has a larger batch, keeps memory in each step, has further communicators, a larger share of the model, keeps "
        "gathered parameters longer, or has the contexts of the others on its GPU. A cause counts as named if the rank comes first and "
        "one of its causes says it.")
    evaluation.table(("parallel", "ranks", "planted", "in", "answer", "right"), rows)
    evaluation.at_least("cause and rank are named", named, planted, 0.95)
    evaluation.at_least("the rank is named", right_rank, planted, 0.95)
    evaluation.at_least("no other rank is named", alone, planted, 0.95)
    evaluation.at_least("jobs without a difference: all agree", quiet, alike, 1)
    return evaluation.finish()


if __name__ == "__main__":
    sys.exit(main())
