#!/usr/bin/env python3
"""Evaluates the categories of memory in real PyTorch programs on the simulated device.

Each program of train.py trains a model of random size and writes which storages are its parameters,
gradients, optimizer state, inputs, saved and recomputed activations. judge_categories compares them
with the recording. The score is for the moment with the most bytes in blocks.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
from evaluation import Evaluation  # noqa: E402

EAGER = (
    "mlp foreach",
    "mlp fused kept_batch",
    "mlp single zeroed",
    "mlp sgd in_backward",
    "gpt fused",
    "gpt foreach clip accumulate",
    "gpt bf16 fused",
    "gpt fp16 foreach clip",
    "gpt checkpoint fused",
    "gpt checkpoint_reentrant foreach late_zero_grad",
    "gpt two_optimizers fused",
    "gpt ema fused",
    "gpt frozen fused",
    "gpt in_backward fused",
    "gpt ddp fused accumulate",
    "gpt fsdp2 fused",
    "convnet sgd",
    "convnet sgd bf16 channels_last",
    "convnet foreach zeroed accumulate",
    "recurrent foreach",
    "gpt closure fused",
    "convnet closure sgd",
    "gpt inference",
    "convnet inference",
    "gpt uncached fused",
    "gpt async fused",
)
# Its four ranks need four GPUs.
ONLY_SIMULATED = {"gpt fsdp2 fused"}
COMPILED = ("mlp compile fused", "gpt compile fused", "gpt compile bf16 foreach", "convnet compile sgd")
QUICK = {"mlp foreach", "gpt checkpoint fused", "gpt foreach clip accumulate", "convnet sgd"}


def environment(evaluation, folder, program):
    build = evaluation.build
    caches = build / "compiled"
    return {
        **os.environ,
        "GPUMEMTRACE_DIR": str(folder),
        "GMT_TRUTH": str(folder / "truth"),
        "SIMCUDA_WORKSPACE": "3M",
        **({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if "uncached" in program else {}),
        **({"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"} if "async" in program else {}),
        "SIMCUDA_DATA": "1M" if "ddp" in program else "0",
        **({} if evaluation.options.gpu else {"TRITON_LIBCUDA_PATH": str(build / "simcuda")}),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
    }


def training(program):
    """Returns train.py with the arguments for `program`."""
    model, *ways = program.split()
    return ["train.py", "--model", model, "--way", *ways]


def run(evaluation, python, program, seed, roles="on", command_of=training):
    """Records one program and returns its moments with their scores."""
    build = evaluation.build
    script, *arguments = command_of(program)
    train = [python, "-B", HERE / script, "--seed", str(seed), *arguments]
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-evaluate.") as name:
        folder = pathlib.Path(name)
        command = [build / "bin" / "gpumemtrace", "run", "--quiet", "--exit-wait", "100s"]
        command += ["--roles", roles, "-o", folder / "run.gmt", "--", *evaluation.device, *train]
        done = subprocess.run(
            command, env=environment(evaluation, folder, program), cwd=folder, capture_output=True, text=True, timeout=500
        )
        if done.returncode != 0:
            sys.exit(f"{program} (seed {seed}) ended with {done.returncode}: {done.stderr[-1500:]}")
        judge = [build / "evaluate" / "judge_categories", folder / "run.gmt", folder / "truth"]
        lines = subprocess.run(judge, capture_output=True, text=True, check=True, timeout=100).stdout
        if evaluation.repeating:
            shutil.copy(folder / "run.gmt", f"{program.replace(' ', '_')}.{seed}.roles_{roles}.gmt")
    return [json.loads(line) for line in lines.splitlines()]


def fullest(moments):
    return max(moments, key=lambda moment: moment["bytes"])


def worst(moments):
    """Returns a text about the error with the most bytes in all moments."""
    wrong = {}
    for moment in moments:
        for error in moment["wrong"]:
            key = f"{error['truth']} classified as {error['said']}"
            wrong[key] = max(wrong.get(key, 0), error["bytes"] / moment["bytes"])
    if not wrong:
        return ""
    text, share = max(wrong.items(), key=lambda item: item[1])
    return f"{text} (up to {share:.1%})" if share >= 0.0005 else ""


def share(part, whole):
    return part / whole if whole else 1.0


class Judged:
    """The score of all runs of a program with or without roles."""

    def __init__(self):
        self.moments, self.right, self.bytes, self.claimed = [], 0, 0, 0

    def add(self, moments):
        self.moments += moments
        peak = fullest(moments)
        self.right += peak["right"]
        self.bytes += peak["bytes"]
        self.claimed += peak["claimed"]
        return peak

    def at_peak(self):
        return share(self.right, self.bytes)

    def least(self):
        return min(share(m["right"], m["bytes"]) for m in self.moments)


def evaluate(evaluation, python, programs, goals, what, command_of=training):
    """Adds a table of `programs`, recorded with and without roles. `goals`: the shares of bytes at the
    peak to reach with and without roles."""
    rows, totals, lowest = [], {"on": Judged(), "off": Judged()}, {"on": 1.0, "off": 1.0}
    lowest_moment = 1.0  # with roles
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)
    runs = {(program, roles, seed): pool.submit(run, evaluation, python, program, seed, roles, command_of)
            for program in programs for roles in totals for seed in evaluation.seeds}
    for program in programs:
        judged = {"on": Judged(), "off": Judged()}
        for roles, of in judged.items():
            for seed in evaluation.seeds:
                moments = runs[program, roles, seed].result()
                totals[roles].add(moments)
                peak = of.add(moments)
                if share(peak["right"], peak["bytes"]) < goals[roles]:
                    evaluation.missed(seed, f"{program}, roles {roles}: {peak['wrong']}")
            lowest[roles] = min(lowest[roles], of.at_peak())
        on, off = judged["on"], judged["off"]
        lowest_moment = min(lowest_moment, on.least())
        rows.append(
            (program, f"{on.at_peak():.3f}", f"{on.least():.3f}", f"{off.at_peak():.3f}", f"{share(on.claimed, on.bytes):.2f}",
             worst(on.moments))
        )
        print(rows[-1], file=sys.stderr, flush=True)
    evaluation.table(
        (what, "right at the peak", "at the worst moment", "at the peak, without roles", "known to the program",
         "most wrong at any moment"),
        rows,
    )
    evaluation.holds(f"at least {goals['on']:g} of the bytes right at every moment of every program, {what}, with roles",
                     lowest_moment >= goals["on"])
    for roles, words in (("on", "with roles"), ("off", "without roles")):
        total = totals[roles]
        evaluation.share_at_least(f"bytes at the peak, {what}, {words}", total.right, total.bytes, goals[roles])
        evaluation.shown(f"the worst of {len(rows)} programs, {what}, {words}", f"{lowest[roles]:.3f}")


def main():
    evaluation = Evaluation("categories", "Categories", seeds=3, quick_seeds=1)
    python = evaluation.python()
    quick = evaluation.options.quick
    evaluation.text(
        f"PyTorch programs that train models of random size on {evaluation.device_name}. Each program itself records which "
        "storages are its parameters and buffers, `.grad`, optimizer states, batches, outputs, tensors that autograd "
        "saved, and recomputed tensors. Everything else must be classified as temporaries, workspaces or "
        "communication. Unknown is never correct. The score counts the bytes of blocks at the moment with the most of "
        "them. Each program is recorded twice: by default, with the roles that PyTorch reports, and with `--roles "
        "off`, so that only rules decide."
    )
    eager = [p for p in EAGER if (not quick or p in QUICK) and not (evaluation.options.gpu and p in ONLY_SIMULATED)]
    evaluate(evaluation, python, eager, {"on": 0.995, "off": 0.85}, "eager")
    if not quick and (shutil.which("gcc") or shutil.which("clang")):
        evaluate(evaluation, python, COMPILED, {"on": 0.995, "off": 0.80}, "compiled")
    sys.exit(evaluation.finish())


if __name__ == "__main__":
    main()
