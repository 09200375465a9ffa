#!/usr/bin/env python3
"""Measures how well `whatif` predicts: training scripts (tests/programs/torch/trainings.py) are recorded with
PyTorch's default settings, and then run again with another setting, on a device of another size, changed, or with
other inputs.

The truth is the second run: its peak of reserved memory as recorded from its driver calls, and whether it ran out
of memory. The prediction comes from the first recording alone.
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
from evaluation import Evaluation, python_with_libraries  # noqa: E402

PROGRAM = ROOT / "tests" / "programs" / "torch" / "trainings.py"
SHARDED = ROOT / "tests" / "evaluate" / "whatif" / "train_sharded.py"
MIB = 1 << 20
LARGE, CONTEXT = 24 << 30, 20 * MIB
PROGRAMS = ("fixed_batch", "varying_lengths", "accumulation", "checkpointed", "recurrent_lengths", "image_sizes",
            "adversarial", "inference")
SETTINGS = ("expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4",
            "large_segment_size_mb:64")
# The memory of another device as a share of the peak that is reserved on a large one.
SHARES = (0.7, 0.95, 1.05)
# By script: options of `whatif` for a changed program, and the arguments that change the script so.
CHANGES = {
    "fixed_batch": ((("--set-to-none",), ("--zero-grad-after",)),),
    "leaking_losses": ((("--without", "leak/1"), ("--no-leak",)), (("--set-to-none",), ("--zero-grad-after",))),
    "last_batch_larger": ((("--set-to-none",), ("--zero-grad",)),),
}
# Scripts that are run with the 8-bit optimizers of bitsandbytes.
EIGHT_BIT = ("fixed_batch", "accumulation", "checkpointed", "small_batch", "evaluation_between", "last_batch_larger",
             "image_sizes", "leaking_losses", "growing_cycles", "adversarial")
EIGHT_BIT_OPTION = ("--optimizer", "8bit")
# Layers, width and batch of models that are divided among GPUs, and the numbers of GPUs. The prediction was developed
# with the first ones.
MODELS = ((8, 1024, 4), (4, 512, 4), (8, 512, 16), (12, 768, 2), (4, 1024, 32), (6, 640, 8), (16, 384, 4), (2, 2048, 1),
          (24, 512, 1), (10, 896, 12), (3, 1536, 2))
OTHER_MODELS = ((7, 768, 6), (20, 640, 3), (12, 256, 24), (5, 1280, 10))
WORLDS = (2, 4)
# Scripts that are run with twice and half the batch, and those with longer sequences.
BATCHES = ("fixed_batch", "varying_lengths", "last_batch_larger", "accumulation", "checkpointed", "images_autocast",
           "growing_cycles", "batch_15_times", "recurrent_lengths", "evaluation_between", "no_momentum",
           "sorted_lengths", "autocast_accumulation", "image_sizes", "adversarial", "rmsprop_clipped",
           "adagrad_embeddings", "momentum_validated", "own_optimizer", "inference", "attention_written_out",
           "small_batch", "updated_by_hand")
LENGTHS = {"fixed_batch": 2, "varying_lengths": 1.5, "last_batch_larger": 2, "accumulation": 2, "checkpointed": 2,
           "growing_cycles": 2, "batch_15_times": 2, "recurrent_lengths": 2, "sorted_lengths": 2,
           "autocast_accumulation": 2, "rmsprop_clipped": 2, "own_optimizer": 2, "attention_written_out": 2,
           "updated_by_hand": 2}
# Scripts for which the largest batch is predicted for a device with this multiple of what they reserve.
FITS = ("fixed_batch", "varying_lengths", "accumulation", "checkpointed", "image_sizes", "no_momentum",
        "attention_written_out", "own_optimizer")
FIT_SHARE = 2
# A batch that is this much larger than the largest one is not to fit.
TOO_LARGE = 1.15


class Refusal(Exception):
    """No prediction was made."""


class Runs:
    def __init__(self, evaluation):
        self.build, self.python, self.device = evaluation.build, evaluation.python(), evaluation.device
        self.shares = SHARES if not evaluation.options.gpu else ()  # a GPU has the memory that it has
        self.tool = str(self.build / "bin" / "gpumemtrace")
        self.nvml = {} if evaluation.options.gpu else {"GPUMEMTRACE_NVML": str(self.build / "simcuda" / "libnvidia-ml.so.1")}

    def record(self, program, seed, recording, *arguments, memory=LARGE, setting=None):
        """Returns whether the script finished."""
        python = python_with_libraries("bitsandbytes") if arguments[:2] == EIGHT_BIT_OPTION else self.python
        command = [self.tool, "run", "--quiet", "--exit-wait", "100s", "-o", str(recording), "--",
                   *self.device, python, "-B", str(PROGRAM), program, "--seed",
                   str(seed), *arguments]
        settings = {"PYTORCH_CUDA_ALLOC_CONF": setting} if setting else {}
        if self.nvml:
            settings["SIMCUDA_SHARED"] = f"{recording}.device"
        done = subprocess.run(
            command, capture_output=True, text=True, check=False,
            env={**os.environ, "SIMCUDA_MEMORY": str(memory), "SIMCUDA_CONTEXT": str(CONTEXT),
                 "SIMCUDA_SCATTER": str(seed), **self.nvml, **settings})
        if not done.stdout.startswith("{"):
            sys.exit(f"{program} with {setting}: ended with {done.returncode}:\n{done.stderr[-3000:]}")
        return json.loads(done.stdout)["finished"]

    def answer(self, verb, recording, *options):
        done = subprocess.run([self.tool, verb, str(recording), "--json", *options], capture_output=True, text=True,
                              check=False)
        answer = json.loads(done.stdout or "{}")
        if not answer or answer.get("refused"):
            raise Refusal(f"{verb} {' '.join(options)} ended with {done.returncode}: {answer.get('replay') or done.stderr.strip()}")
        return answer

    def peak_reserved(self, recording):
        (device,) = (device for device in self.answer("report", recording)["devices"] if device["index"] == 0)
        (heap,) = (heap for heap in device["heaps"] if heap["heap"] == "pytorch")
        return heap["peak_reserved_bytes"]

    def case(self, program, seed):
        """Returns the answer's replay, and pairs of a prediction and the truth."""
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            folder = pathlib.Path(name)
            self.record(program, seed, folder / "base.gmt")
            peak = self.peak_reserved(folder / "base.gmt")
            capacities = [int(peak * share) for share in self.shares]
            options = [word for setting in SETTINGS for word in ("--set", setting)]
            options += [word for capacity in capacities for word in ("--capacity", str(capacity))]
            answer = self.answer("whatif", folder / "base.gmt", *options)
            pairs = []
            for number, scenario in enumerate(answer["scenarios"][1:]):
                recording = folder / f"{number}.gmt"
                if number < len(SETTINGS):
                    finished = self.record(program, seed, recording, setting=SETTINGS[number])
                else:
                    # The capacity is what the driver can provide: the context comes on top.
                    memory = capacities[number - len(SETTINGS)] + CONTEXT
                    finished = self.record(program, seed, recording, memory=memory)
                pairs.append({"program": program, "seed": seed, "scenario": scenario, "finished": finished,
                              "peak": self.peak_reserved(recording), "base": peak})
            return answer, pairs

    def inputs(self, program, seed, kind, factor):
        """Returns a pair of peaks of allocated and of reserved memory with other inputs, predicted and true. `kind`:
        batch or length."""
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            base, other = pathlib.Path(name) / "base.gmt", pathlib.Path(name) / "other.gmt"
            self.record(program, seed, base)
            option = "--batch" if kind == "batch" else "--seq"
            recorded, predicted = self.answer("whatif", base, option, f"{factor:g}x")["scenarios"]
            self.record(program, seed, other, f"--{kind}-scale", str(factor))
            real = self.answer("whatif", other)["scenarios"][0]
            return {"program": program, "seed": seed, "kind": kind, "factor": factor, "recorded": recorded,
                    "predicted": predicted, "real": real}

    def fit(self, program, seed):
        """Returns the batch that is said to be the largest, and whether the script finishes with it, and with one that is
        larger."""
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            base, other = pathlib.Path(name) / "base.gmt", pathlib.Path(name) / "other.gmt"
            self.record(program, seed, base)
            memory = int(self.peak_reserved(base) * FIT_SHARE) + CONTEXT
            (fit,) = self.answer("whatif", base, "--fit", str(memory))["fits"]
            finished = {}
            for factor in (fit["factor"], fit["factor"] * TOO_LARGE):
                # Batch sizes are rounded down, so ask for slightly more than the exact number.
                finished[factor] = self.record(program, seed, other, "--batch-scale", str(factor * 1.0001), memory=memory)
            return {"program": program, "seed": seed, "fit": fit, "memory": memory, "fits": finished[fit["factor"]],
                    "larger_fails": not finished[fit["factor"] * TOO_LARGE]}

    def change(self, program, seed, option, arguments):
        """Returns a pair for a changed program."""
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            base, changed = pathlib.Path(name) / "base.gmt", pathlib.Path(name) / "changed.gmt"
            self.record(program, seed, base)
            recorded, scenario = self.answer("whatif", base, *option)["scenarios"][:2]
            finished = self.record(program, seed, changed, *arguments)
            real = self.answer("whatif", changed)["scenarios"][0]
            return {"program": program, "seed": seed, "scenario": scenario, "finished": finished, "real": real, "recorded": recorded,
                    "predicted": scenario, "peak": self.peak_reserved(changed), "base": self.peak_reserved(base)}


    def shard(self, model, world):
        """Returns the predicted and the real peak of allocated memory of a model that is divided among GPUs."""
        with tempfile.TemporaryDirectory(prefix="gmt-evaluate.") as name:
            folder = pathlib.Path(name)
            environment = {**os.environ, "SIMCUDA_DEVICES": str(world), "SIMCUDA_SHARED": str(folder / "shared"),
                           "SIMCUDA_CONTEXT": str(CONTEXT), "SIMCUDA_MEMORY": str(LARGE), "SIMCUDA_DATA": "0",
                           "TORCH_DIST_INIT_BARRIER": "0"}
            base, numbers = folder / "base.gmt", [str(number) for number in model]
            peaks = []
            for gpus, before in ((1, [self.tool, "run", "--quiet", "--exit-wait", "100s", "-o", str(base), "--"]), (world, [])):
                command = [*before, *self.device, self.python, "-B", str(SHARDED), str(gpus), str(folder / "store"), *numbers]
                done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
                if not done.stdout.startswith("{"):
                    sys.exit(f"{' '.join(command)}: ended with {done.returncode}:\n{done.stderr[-3000:]}")
                peaks.append(json.loads(done.stdout))
            scenario = self.answer("whatif", base, "--shard", str(world))["scenarios"][1]
            return {"model": model, "world": world, "base": peaks[0], "scenario": scenario, "real": peaks[1]}


def error(pair):
    return pair["scenario"]["peak_reserved_bytes"] / pair["peak"] - 1


def scaled_error(pair, key):
    return pair["predicted"][key] / pair["real"][key] - 1


def shard_error(job):
    return job["scenario"]["peak_allocated_bytes"] / job["real"]["allocated"] - 1


def describe(pair):
    scenario = pair["scenario"]
    return (f"{pair['program']}, {scenario['name']}: predicted {scenario['peak_reserved_bytes'] / MIB:.1f} MiB"
            f"{', out of memory' if scenario['oom'] else ''}; really {pair['peak'] / MIB:.1f} MiB"
            f"{'' if pair['finished'] else ', out of memory'}; without the setting {pair['base'] / MIB:.1f} MiB")


def main():
    evaluation = Evaluation("whatif", "What another setting would have done", seeds=1, quick_seeds=1)
    runs = Runs(evaluation)
    programs = PROGRAMS[:1] if evaluation.options.quick else PROGRAMS
    refusals = []

    def measure(pool, function, keys):
        """Returns the results of `function` for all of `keys` without a refusal."""
        def measure_one(key):
            try:
                return function(*key)
            except Refusal as refusal:
                refusals.append(key)
                print(f"{' '.join(map(str, key))}: {refusal}", file=sys.stderr, flush=True)
                return None

        return [result for result in pool.map(measure_one, keys) if result is not None]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        cases = measure(pool, runs.case, [(p, s) for p in programs for s in evaluation.seeds])
        wanted = {"fixed_batch": CHANGES["fixed_batch"]} if evaluation.options.quick else CHANGES
        changed = measure(pool, runs.change, [(program, seed, *change) for program, of in wanted.items() for change in of
                                              for seed in evaluation.seeds])
        eight_bit = measure(pool, runs.change, [(program, seed, EIGHT_BIT_OPTION, EIGHT_BIT_OPTION)
                                                for program in EIGHT_BIT[:1 if evaluation.options.quick else None]
                                                for seed in evaluation.seeds])
        models = MODELS[:1] if evaluation.options.quick else MODELS + OTHER_MODELS
        # One GPU has no others to divide a model among.
        sharded = measure(pool, runs.shard, [(model, world) for model in models for world in WORLDS] if runs.shares else [])
        inputs = [("batch", program, factor) for program in BATCHES for factor in (2, 0.5)]
        inputs += [("length", program, factor) for program, factor in LENGTHS.items()]
        if evaluation.options.quick:
            inputs = inputs[:1]
        scaled = measure(pool, runs.inputs, [(program, seed, kind, factor) for kind, program, factor in inputs
                                             for seed in evaluation.seeds])
        fits = measure(pool, runs.fit, [(program, seed) for program in FITS for seed in evaluation.seeds]
                       if runs.shares and not evaluation.options.quick else [])
    for pair in scaled:
        if abs(scaled_error(pair, "peak_allocated_bytes")) > 0.05 or evaluation.repeating:
            evaluation.missed(pair["seed"], f"{pair['program']}, {pair['kind']} {pair['factor']:g}x: "
                              + ", ".join(f"{pair[of]['peak_allocated_bytes'] / MIB:.1f} MiB {of}"
                                          for of in ("recorded", "predicted", "real")))
    for fit in fits:
        if not (fit["fits"] and fit["larger_fails"]) or evaluation.repeating:
            evaluation.missed(fit["seed"], f"{fit['program']}: {fit['fit']} on {fit['memory'] / MIB:.0f} MiB: "
                                           f"fits: {fit['fits']}, a larger one fails: {fit['larger_fails']}")
    for pair in changed + eight_bit:
        if abs(error(pair)) > 0.05 or evaluation.repeating:
            evaluation.missed(pair["seed"], describe(pair))
    pairs = [pair for _, of in cases for pair in of]
    judged = [pair for pair in pairs if pair["finished"] and not pair["scenario"]["oom"]]
    for pair in pairs:
        right = pair["scenario"]["oom"] != pair["finished"] and (pair not in judged or abs(error(pair)) <= 0.03)
        if not right or evaluation.repeating:
            evaluation.missed(pair["seed"], describe(pair))
    replays = [answer["replay"] for answer, _ in cases]
    evaluation.text(
        f"{len(programs)} training scripts are recorded with default settings on a large device. `whatif` predicts their "
        f"peak of reserved memory with {len(SETTINGS)} other settings"
        + (f" and on devices with {SHARES[0]:g} to {SHARES[-1]:g} of the memory that was reserved" if runs.shares else "")
        + ", the peaks of changed programs, of 8-bit optimizers (bitsandbytes), of a model that fully_shard() divides among GPUs, of larger and smaller batches and longer sequences, and the largest batch that fits a "
          "device. Then each is really run that way. The simulated device gives the segments of each run other random addresses, as a "
          "driver does. PyTorch takes the lowest of equally large free blocks, so that two runs with the same setting may "
          "differ; the predicted range covers that.")
    evaluation.holds("a prediction for every recording", not refusals)
    evaluation.at_least("segment calls reproduced with the recorded settings", sum(r["reproduced"] for r in replays),
                        sum(r["segment_events"] for r in replays), 0.99)
    evaluation.at_least("peak of reserved memory within 3 %", sum(abs(error(pair)) <= 0.03 for pair in judged),
                        len(judged), 0.95)
    if judged:
        evaluation.shown("largest error of the peak", f"{max(map(abs, map(error, judged))):.1%}")
    if runs.shares:
        evaluation.at_least("out of memory or not", sum(pair["scenario"]["oom"] != pair["finished"] for pair in pairs),
                            len(pairs), 1)
    inside = [pair["scenario"]["low_bytes"] <= pair["peak"] <= pair["scenario"]["high_bytes"] * 1.001 for pair in judged]
    evaluation.shown("real peak in the predicted range", f"{sum(inside)} of {len(inside)}")
    evaluation.table(("changed program", "change", "reserved", "predicted", "really", "error"),
                     [(pair["program"], pair["scenario"]["name"], *(f"{value / MIB:.0f} MiB" for value in (
                         pair["base"], pair["scenario"]["peak_reserved_bytes"], pair["peak"])), f"{error(pair):+.1%}")
                      for pair in changed])
    evaluation.at_least("changed programs: peak of reserved memory within 5 %",
                        sum(abs(error(pair)) <= 0.05 for pair in changed), len(changed), 1)
    allocated, reserved = "peak_allocated_bytes", "peak_reserved_bytes"
    evaluation.table(("8-bit optimizer", "allocated", "predicted", "really", "error", "reserved", "predicted", "really"),
                     [(pair["program"], f"{pair['recorded'][allocated] / MIB:.0f} MiB",
                       f"{pair['predicted'][allocated] / MIB:.0f} MiB", f"{pair['real'][allocated] / MIB:.0f} MiB",
                       f"{scaled_error(pair, allocated):+.1%}", *(f"{value / MIB:.0f} MiB" for value in (
                           pair["base"], pair["predicted"][reserved], pair["peak"]))) for pair in eight_bit])
    evaluation.at_least("8-bit optimizer: peak of allocated memory within 5 %",
                        sum(abs(scaled_error(pair, allocated)) <= 0.05 for pair in eight_bit), len(eight_bit), 0.95)
    if sharded:
        evaluation.table(("layers, width, batch", "GPUs", "allocated", "predicted", "really", "error", "reserved, predicted", "really"),
                         [(", ".join(map(str, job["model"])), job["world"], f"{job['base']['allocated'] / MIB:.0f} MiB",
                           f"{job['scenario'][allocated] / MIB:.0f} MiB", f"{job['real']['allocated'] / MIB:.0f} MiB",
                           f"{shard_error(job):+.1%}", f"{job['scenario'][reserved] / MIB:.0f} MiB",
                           f"{job['real']['reserved'] / MIB:.0f} MiB") for job in sharded])
        for what, of in (("models used in development", MODELS), ("other models", OTHER_MODELS)):
            jobs = [job for job in sharded if job["model"] in of]
            if jobs:
                evaluation.at_least(f"divided among GPUs, {what}: peak of allocated memory within 10 %",
                                    sum(abs(shard_error(job)) <= 0.1 for job in jobs), len(jobs), 0.9)
    evaluation.table(("other inputs", "", "allocated", "predicted", "really", "error", "reserved", "really", "error"),
                     [(pair["program"], f"{pair['kind']} {pair['factor']:g}x",
                       f"{pair['recorded'][allocated] / MIB:.0f} MiB", f"{pair['predicted'][allocated] / MIB:.0f} MiB",
                       f"{pair['real'][allocated] / MIB:.0f} MiB", f"{scaled_error(pair, allocated):+.1%}",
                       f"{pair['predicted'][reserved] / MIB:.0f} MiB", f"{pair['real'][reserved] / MIB:.0f} MiB",
                       f"{scaled_error(pair, reserved):+.1%}") for pair in scaled])
    for kind in ("batch", "length"):
        of = [abs(scaled_error(pair, allocated)) <= 0.05 for pair in scaled if pair["kind"] == kind]
        if of:
            evaluation.at_least(f"{kind}: peak of allocated memory within 5 %", sum(of), len(of), 0.95)
    evaluation.shown("other inputs: peak of reserved memory within 5 %",
                     f"{sum(abs(scaled_error(pair, reserved)) <= 0.05 for pair in scaled)} of {len(scaled)}")
    evaluation.shown("other inputs: peak of reserved memory in the predicted range",
                     f"{sum(p['predicted']['low_bytes'] * 0.95 <= p['real'][reserved] <= p['predicted']['high_bytes'] * 1.05 for p in scaled)}"
                     f" of {len(scaled)}")
    if fits:
        evaluation.at_least("largest batch: finishes on the device", sum(fit["fits"] for fit in fits), len(fits), 0.95)
        evaluation.shown(f"largest batch: {TOO_LARGE - 1:.0%} more runs out of memory",
                         f"{sum(fit['larger_fails'] for fit in fits)} of {len(fits)}")
    return evaluation.finish()


if __name__ == "__main__":
    sys.exit(main())
