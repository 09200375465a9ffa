#!/usr/bin/env python3
"""Measures how well `advise` knows what a change saves: training scripts (tests/programs/torch/trainings.py) are
recorded, and then run again with the advised change.

The truth is PyTorch's own peak of allocated memory in both runs, without what libraries take beside it. What is saved
comes from the first recording alone.
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
    "last_batch_larger": {"set_to_none": ("--zero-grad",)},
    "leaking_losses": {"fix_leak": ("--no-leak",), "set_to_none": ("--zero-grad-after",)},
}
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
        "These results were seen while the rules were developed, so they are no test on unseen programs.")
    evaluation.table(("script", "change", "peak", "promised", "really", "error"),
                     [(pair["program"], pair["name"], *(f"{pair[key] / MIB:.1f} MiB" for key in ("base", "promised", "real")),
                       f"{error(pair):+.1%}") for pair in pairs])
    evaluation.at_least("real peak at most 5 % above the promised one", sum(kept), len(kept), 1)
    evaluation.at_least("real peak within 5 % of the promised one", sum(near), len(near), 0.8)
    evaluation.holds("what changes save together is the sum of what each adds",
                     all(pair["sum"] == pair["together"] for pair in pairs))
    evaluation.holds("no change saves more than it frees at the peak",
                     all(pair["advice"]["saved_bytes"] <= pair["advice"]["freed_bytes"] for pair in pairs))
    return evaluation.finish()


if __name__ == "__main__":
    sys.exit(main())
