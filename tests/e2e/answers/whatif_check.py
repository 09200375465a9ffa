#!/usr/bin/env python3
"""`gpumemtrace whatif` about a language model: other inputs must need what a run with them needs, the largest batch must
fit and a larger one must not, and --verify must run the command again.

Usage: whatif_check.py --build DIR [--python PYTHON] [NAME...]
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import schemas  # noqa: E402
from rig import MIB, main_of_cases  # noqa: E402

MODEL = ("--hidden", "128", "--vocabulary", "4000", "--layers", "3", "--steps", "4", "--json")
TOLERANCE = 0.05
CONTEXT = 20 * MIB


def record(rig, folder, name, batch=8, length=128, memory=None):
    return run(rig, folder, name, ("train_gpt.py", "--batch", batch, "--seq", length, *MODEL), memory)


def run(rig, folder, name, program, memory):
    place = folder / name
    (place / "sessions").mkdir(parents=True, mode=0o700)
    limits = {"GPUMEMTRACE_NVML": str(rig.build / "simcuda" / "libnvidia-ml.so.1"), "SIMCUDA_SHARED": str(place / "device"),
              "SIMCUDA_SCATTER": "1"}
    if memory:
        limits |= {"SIMCUDA_MEMORY": str(memory), "SIMCUDA_CONTEXT": str(CONTEXT)}
    return rig.run(place, rig.torch(*program), **limits)


def whatif(recording, *options):
    words = ["whatif", recording.path, *options]
    text = recording.verb(*words, "--json")
    assert not list(schemas.problems(words, text)), list(schemas.problems(words, text))
    return json.loads(text)


def larger_batches_and_longer_sequences_need_what_is_predicted(rig, folder):
    answer = whatif(record(rig, folder, "base"), "--batch", "2x", "--seq", "256", "--batch", "4")
    assert answer["inputs"]["samples"] == 8 and answer["inputs"]["tokens"] == 128, answer
    for scenario, real in zip(answer["scenarios"][1:], ({"batch": 16}, {"batch": 4}, {"length": 256})):
        peak = record(rig, folder, scenario["name"].replace(" ", "_"), **real).result()["max_memory_allocated"]
        assert abs(scenario["peak_allocated_bytes"] - peak) < TOLERANCE * peak, (scenario, peak)


def largest_batch_fits_and_a_larger_one_does_not(rig, folder):
    base = record(rig, folder, "base", memory=2 << 30)
    memory = 2 * whatif(base)["scenarios"][0]["peak_reserved_bytes"] + CONTEXT
    (fit,) = whatif(base, "--fit", memory)["fits"]
    assert fit["capacity_bytes"] == memory - CONTEXT, fit
    fitting = record(rig, folder, "fitting", batch=fit["batch"], memory=memory)
    assert fitting.done.returncode == 0, (fit, fitting.done.stderr[-1000:])
    larger = record(rig, folder, "larger", batch=fit["batch"] * 5 // 4 + 1, memory=memory)
    assert "OutOfMemoryError" in larger.done.stderr, (fit, larger.done.stderr[-1000:])


def fit_after_a_failure(failed, memory):
    assert "OutOfMemoryError" in failed.done.stderr, failed.done.stderr[-1000:]
    (fit,) = whatif(failed, "--fit", memory)["fits"]
    return fit["batch"], failed.verb("whatif", failed.path, "--fit", memory).splitlines()[0]


def largest_batch_after_a_late_failure_fits(rig, folder):
    memory = 1 << 30

    def train(name, rows):
        return run(rig, folder, name, ("late_batch.py", rows), memory)

    batch, said = fit_after_a_failure(train("failed", 1 << 17), memory)
    assert "a step needs about" in said, said
    assert train("fitting", batch).done.returncode == 0, batch
    assert "OutOfMemoryError" in train("larger", batch * 5 // 4).done.stderr, batch


def failure_in_the_first_step_has_an_upper_limit(rig, folder):
    memory = 1 << 30
    batch, said = fit_after_a_failure(record(rig, folder, "failed", batch=256, memory=memory), memory)
    assert "at most, because the recorded run failed" in said, said
    assert batch < 256, batch
    assert "OutOfMemoryError" in record(rig, folder, "larger", batch=batch * 5 // 4, memory=memory).done.stderr, batch


def implementations_of_the_optimizer_need_what_is_predicted(rig, folder):
    def train(name, *arguments):
        return run(rig, folder, name, ("torch/trainings.py", "small_batch", *arguments), None)

    def peak(recording):
        return max(recording.result()["peaks"])

    real = {kind: train(kind, "--optimizer", kind) for kind in ("single", "fused")} | {"foreach": train("foreach")}
    for recorded, others in (("single", ("foreach", "fused")), ("foreach", ("single", "fused"))):
        scenarios = whatif(real[recorded], *(word for kind in others for word in ("--optimizer", kind)))["scenarios"][1:]
        for kind, scenario in zip(others, scenarios):
            assert scenario["name"] == f"optimizer {kind}", scenario
            wanted = peak(real[kind])
            assert abs(scenario["peak_allocated_bytes"] - wanted) < TOLERANCE * wanted, (recorded, scenario, wanted)


def autocast_and_padded_lengths_need_what_is_predicted(rig, folder):
    in_fp32 = run(rig, folder, "fp32", ("train_gpt.py", "--batch", 8, "--seq", 128, "--no-amp", *MODEL), None)
    shorter = record(rig, folder, "shorter", length=100)
    peak = record(rig, folder, "bf16").result()["max_memory_allocated"]
    for base, option, value in ((in_fp32, "--dtype", "bf16"), (shorter, "--bucket-seq", "64")):
        _, scenario = whatif(base, option, value)["scenarios"]
        assert abs(scenario["peak_allocated_bytes"] - peak) < TOLERANCE * peak, (option, scenario, peak)


def verify_runs_the_command_with_the_setting(rig, folder):
    base = record(rig, folder, "base")
    command = rig.simulated([rig.program, "whatif", base.path, "--expandable-segments", "--verify"])
    run = {"capture_output": True, "text": True, "cwd": folder, "env": rig.environment(folder, {}), "check": False}
    done = subprocess.run([*command, "--json"], **run)
    assert done.returncode == 0, done
    assert "expandable_segments:True" in done.stderr and "max_memory_allocated" in done.stderr, done.stderr
    recorded, scenario = json.loads(done.stdout)["scenarios"]
    assert "verified" not in recorded and not scenario["verified"]["oom"], scenario
    real = scenario["verified"]["peak_reserved_bytes"]
    assert abs(scenario["peak_reserved_bytes"] - real) < TOLERANCE * real, scenario
    assert "; really " in subprocess.run(command, **run).stdout


def what_cannot_be_answered_is_an_error(rig, folder):
    base = record(rig, folder, "base")
    for words, code, message in (
        (("--verify",), 2, "name one with --set"),
        (("--batch", "many"), 2, "neither a multiple"),
        (("--fit", "Voodoo2"), 2, "nor a known GPU"),
        (("--checkpoint", "Nothing"), 1, "no layers of this class"),
    ):
        done = subprocess.run([rig.program, "whatif", base.path, *words], capture_output=True, text=True, check=False)
        assert done.returncode == code and message in done.stderr, (words, done)


CASES = [(function.__name__, function) for function in (
    larger_batches_and_longer_sequences_need_what_is_predicted,
    largest_batch_fits_and_a_larger_one_does_not,
    largest_batch_after_a_late_failure_fits,
    failure_in_the_first_step_has_an_upper_limit,
    implementations_of_the_optimizer_need_what_is_predicted,
    autocast_and_padded_lengths_need_what_is_predicted,
    verify_runs_the_command_with_the_setting,
    what_cannot_be_answered_is_an_error,
)]


if __name__ == "__main__":
    sys.exit(main_of_cases(CASES, __doc__.splitlines()[0]))
