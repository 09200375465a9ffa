#!/usr/bin/env python3
"""Measures how well `advise` knows what a change saves: training scripts (tests/programs/torch/trainings.py) are
recorded, and then run again with the advised change, or with the settings of the allocator that were found.

The truth is PyTorch's own peak of allocated memory in both runs, without what libraries take beside it; for settings, the
peak of reserved memory as recorded from the driver's calls. What is saved comes from the first recording alone.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "evaluate"))
from evaluation import Evaluation  # noqa: E402

PROGRAM = ROOT / "tests" / "programs" / "torch" / "trainings.py"
MIB = 1 << 20
ENVIRONMENT = {**os.environ, "SIMCUDA_MEMORY": str(24 << 30), "SIMCUDA_CONTEXT": str(20 * MIB)}
TWO_MICRO_BATCHES = ("--micro-batches", "2", "--batch-scale", "0.5")
# By script: advice, and the arguments with which the script follows it.
CHANGES = {
    "fixed_batch": {"set_to_none": ("--zero-grad-after",), "half_precision": ("--autocast",),
                    "micro_batch": TWO_MICRO_BATCHES, "checkpoint": ("--checkpoint",),
                    "fused_optimizer": ("--optimizer", "fused")},
    # This one accumulates already: its micro-batches become smaller.
    "accumulation": {"half_precision": ("--autocast",), "micro_batch": ("--batch-scale", "0.5"),
                     "checkpoint": ("--checkpoint",)},
    "varying_lengths": {"half_precision": ("--autocast",), "checkpoint": ("--checkpoint",)},
    "sorted_lengths": {"half_precision": ("--autocast",), "checkpoint": ("--checkpoint",)},
    "no_momentum": {"set_to_none": ("--zero-grad-after",), "checkpoint": ("--checkpoint",)},
    "small_batch": {"set_to_none": ("--zero-grad-after",), "fused_optimizer": ("--optimizer", "fused")},
    "attention_written_out": {"attention": ("--fused-attention",)},
    "rmsprop_clipped": {"single_tensor_optimizer": ("--optimizer", "single")},
    # Never zeroes its gradients.
    "last_batch_larger": {"set_to_none": ("--zero-grad",), "half_precision": ("--autocast",)},
    "leaking_losses": {"fix_leak": ("--no-leak",), "set_to_none": ("--zero-grad-after",)},
}
# Scripts for which settings of the allocator are searched.
SEARCHED = ("varying_lengths", "sorted_lengths", "recurrent_lengths", "image_sizes", "growing_cycles", "batch_15_times")
QUICK = {"fixed_batch": {name: CHANGES["fixed_batch"][name] for name in ("half_precision", "checkpoint")}}
# A promise is kept if the real peak is at most this much higher than the promised one.
TOLERANCE = 0.05


class Runs:
    def __init__(self, evaluation):
        self.build, self.python, self.device = evaluation.build, evaluation.python(), evaluation.device
        self.tool = str(self.build / "bin" / "gpumemtrace")

    def run(self, before, program, seed, *arguments):
        """Returns PyTorch's peak."""
        command = [*before, *self.device, self.python, "-B", str(PROGRAM), program, "--seed", str(seed), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
        if done.returncode != 0:
            sys.exit(f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
        return max(json.loads(done.stdout)["peaks"])

    def reserved(self, recording):
        report = json.loads(subprocess.run([self.tool, "report", recording, "--json"], capture_output=True, text=True, check=True).stdout)
        (device,) = (device for device in report["devices"] if device["index"] == 0)
        return next(heap["peak_reserved_bytes"] for heap in device["heaps"] if heap["heap"] == "pytorch")

    def searched(self, program, seed):
        """Returns the settings that were found, with what was promised to be reserved and what was; None if none was found."""
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            base, followed = str(pathlib.Path(name) / "base.gmt"), str(pathlib.Path(name) / "followed.gmt")
            record = (self.tool, "run", "--quiet", "--exit-wait", "100s", "-o")
            self.run((*record, base, "--"), program, seed)
            answer = json.loads(subprocess.run([self.tool, "advise", base, "--json"], capture_output=True, text=True, check=True).stdout)
            (found,) = (advice for advice in answer["advice"] if advice["name"] == "allocator_settings")
            if not found["applies"]:
                return None
            self.run((*record, followed, "--", "env", found["do"]), program, seed)
            return {"program": program, "seed": seed, "setting": found["do"].split("=", 1)[1], "base": self.reserved(base),
                    "promised": found["reserved_bytes"], "real": self.reserved(followed)}

    def case(self, program, seed, changes):
        """Returns for each change what was promised, and what became true."""
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            recording = str(pathlib.Path(name) / "base.gmt")
            peak = self.run((self.tool, "run", "--quiet", "--exit-wait", "100s", "-o", recording, "--"), program, seed)
            answer = json.loads(subprocess.run([self.tool, "advise", recording, "--json"], capture_output=True, text=True,
                                               check=True).stdout)
        advice = {advice["name"]: advice for advice in answer["advice"]}
        return [{"program": program, "seed": seed, "name": name, "advice": advice[name], "base": peak,
                 "promised": peak - advice[name]["saved_bytes"],
                 "real": self.run((), program, seed, *arguments), "sum": sum(a["further_bytes"] for a in answer["advice"]),
                 "together": answer["together_bytes"]}
                for name, arguments in changes.items()]


def error(pair):
    return pair["promised"] / pair["real"] - 1


def main():
    evaluation = Evaluation("advise", "What a change saves", seeds=1, quick_seeds=1)
    runs = Runs(evaluation)
    programs = QUICK if evaluation.options.quick else CHANGES
    keys = [(program, seed, changes) for program, changes in programs.items() for seed in evaluation.seeds]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        cases = list(pool.map(lambda key: runs.case(*key), keys))
        searched = [] if evaluation.options.quick else list(pool.map(
            lambda key: runs.searched(*key), [(program, seed) for program in SEARCHED for seed in evaluation.seeds]))
    pairs = [pair for of in cases for pair in of]
    kept = [pair["real"] <= pair["promised"] * (1 + TOLERANCE) for pair in pairs]
    near = [abs(error(pair)) <= TOLERANCE for pair in pairs]
    for pair, is_kept in zip(pairs, kept):
        if not is_kept or evaluation.repeating:
            evaluation.missed(pair["seed"], f"{pair['program']}, {pair['name']}: promised {pair['promised'] / MIB:.1f} MiB, "
                                            f"really {pair['real'] / MIB:.1f} of {pair['base'] / MIB:.1f} MiB")
    evaluation.text(
        f"{len(programs)} training scripts are recorded, and `advise` says what {len(pairs)} changes would save. Then each script "
        "is really run with the change, and PyTorch reports its peak. A negative error is a promise that was too good. "
        "The second table follows the settings of the allocator that were found; its bytes are reserved. "
        "These results were seen while the rules were developed, so they are no test on unseen programs.")
    evaluation.table(("script", "change", "peak", "promised", "really", "error"),
                     [(pair["program"], pair["name"], *(f"{pair[key] / MIB:.1f} MiB" for key in ("base", "promised", "real")),
                       f"{error(pair):+.1%}") for pair in pairs])
    followed = [pair for pair in searched if pair]
    if followed:
        evaluation.table(("script", "settings that were found", "reserved", "promised at most", "really", "error"),
                         [(pair["program"], pair["setting"], *(f"{pair[key] / MIB:.0f} MiB" for key in ("base", "promised", "real")),
                           f"{error(pair):+.1%}") for pair in followed])
        evaluation.at_least("found settings: reserved at most 5 % more than promised",
                            sum(pair["real"] <= pair["promised"] * (1 + TOLERANCE) for pair in followed), len(followed), 1)
        evaluation.at_least("found settings: less reserved than before", sum(pair["real"] < pair["base"] for pair in followed),
                            len(followed), 1)
    for pair in followed:
        if pair["real"] > pair["promised"] * (1 + TOLERANCE) or evaluation.repeating:
            evaluation.missed(pair["seed"], f"{pair['program']} with {pair['setting']}: promised {pair['promised'] / MIB:.0f} MiB, "
                                            f"really {pair['real'] / MIB:.0f} of {pair['base'] / MIB:.0f} MiB")
    evaluation.at_least("real peak at most 5 % above the promised one", sum(kept), len(kept), 1)
    evaluation.at_least("real peak within 5 % of the promised one", sum(near), len(near), 0.8)
    evaluation.holds("what changes save together is the sum of what each adds",
                     all(pair["sum"] == pair["together"] for pair in pairs))
    evaluation.holds("no change saves more than it frees at the peak",
                     all(pair["advice"]["saved_bytes"] <= pair["advice"]["freed_bytes"] for pair in pairs))
    return evaluation.finish()


if __name__ == "__main__":
    sys.exit(main())
