#!/usr/bin/env python3
"""`gpumemtrace advise` about training scripts (tests/programs/torch/trainings.py): the setting that it found must reserve no
more than promised when the script is run with it, what is said after an out of memory must help, and a program without a
caching allocator must get the same advice.

Usage: advise_check.py --build DIR [--python PYTHON] [NAME...]
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import schemas  # noqa: E402
from rig import MIB, main_of_cases  # noqa: E402

CONTEXT = 20 * MIB
# Two runs with the same setting differ by a page, because addresses of blocks do.
PAGE = 20 * MIB


def train(rig, folder, name, *arguments, memory=24 << 30, **environment):
    place = folder / name
    (place / "sessions").mkdir(parents=True, mode=0o700)
    return rig.run(place, rig.torch("torch/trainings.py", *arguments), SIMCUDA_MEMORY=str(memory), SIMCUDA_CONTEXT=str(CONTEXT),
                   SIMCUDA_SHARED=str(place / "device"), GPUMEMTRACE_NVML=str(rig.build / "simcuda" / "libnvidia-ml.so.1"),
                   **environment)


def advise(recording, *options):
    words = ["advise", recording.path, *options]
    text = recording.verb(*words, "--json")
    assert not list(schemas.problems(words, text)), list(schemas.problems(words, text))
    answer = json.loads(text)
    return answer, {advice["name"]: advice for advice in answer["advice"]}


def peak_reserved(recording):
    (device,) = (device for device in recording.report()["devices"] if device["index"] == 0)
    return max(heap["peak_reserved_bytes"] for heap in device["heaps"] if heap["heap"] == "pytorch")


def found_settings_reserve_no_more_than_promised(rig, folder):
    base = train(rig, folder, "base", "recurrent_lengths")
    _, advice = advise(base)
    found = advice["allocator_settings"]
    assert found["applies"] and found["saved_bytes"] > 0, found
    variable, setting = found["do"].split("=", 1)
    run = train(rig, folder, "followed", "recurrent_lengths", **{variable: setting})
    assert run.result()["finished"], run.done.stderr[-1000:]
    assert peak_reserved(run) <= peak_reserved(base) - found["saved_bytes"] + PAGE, (found, peak_reserved(base), peak_reserved(run))


def after_an_out_of_memory_a_change_helps(rig, folder):
    needs = max(train(rig, folder, "whole", "varying_lengths").result()["peaks"])
    memory = int(needs * 0.9) + CONTEXT
    failed = train(rig, folder, "failed", "varying_lengths", memory=memory)
    assert "OutOfMemoryError" in failed.done.stderr, failed.done.stderr[-1000:]
    answer, advice = advise(failed)
    assert answer["out_of_memory"] and answer["next"], answer
    assert "shard" in advice and "offload_state" in advice, list(advice)
    half = advice["half_precision"]
    assert half["perhaps_enough"] and not half["enough"] and half["saved_bytes"] > 0, half
    assert train(rig, folder, "followed", "varying_lengths", "--autocast", memory=memory).result()["finished"]
    text = failed.verb("advise", failed.path, "--all")
    assert "torch.autocast" in text, text


def memory_of_the_driver_is_judged_as_blocks_are(rig, folder):
    _, cached = advise(train(rig, folder, "cached", "fixed_batch"))
    answer, uncached = advise(train(rig, folder, "uncached", "fixed_batch", PYTORCH_NO_CUDA_MEMORY_CACHING="1"))
    assert not answer["refused"] and not answer["replayable"], answer
    for name in ("set_to_none", "half_precision", "micro_batch", "checkpoint", "eight_bit_optimizer", "offload_state"):
        with_cache, without = cached[name]["saved_bytes"], uncached[name]["saved_bytes"]
        assert abs(with_cache - without) <= 0.03 * answer["peak_bytes"], (name, with_cache, without)


CASES = [(function.__name__, function) for function in (
    found_settings_reserve_no_more_than_promised,
    after_an_out_of_memory_a_change_helps,
    memory_of_the_driver_is_judged_as_blocks_are,
)]


if __name__ == "__main__":
    sys.exit(main_of_cases(CASES, __doc__.splitlines()[0]))
