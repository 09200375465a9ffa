#!/usr/bin/env python3
"""Records jobs of four ranks, one of which differs (tests/programs/torch/uneven_ranks.py), and checks that `ranks` names
it and the cause.

Usage: compare_check.py --build DIR [--python PYTHON] [NAME...]
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as rigs  # noqa: E402
import schemas  # noqa: E402

PROGRAM = rigs.PROGRAMS / "torch" / "uneven_ranks.py"
MAX_DIGEST_BYTES = 200_000


def verb(rig, folder, *words, code=0):
    done = subprocess.run([rig.program, "ranks", *map(str, words)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == code, done
    return done


def compare(rig, folder, cause, **environment):
    """Returns the comparison as JSON and as text."""
    jobs = folder / "out"
    jobs.mkdir()
    done = subprocess.run(
        [rig.program, "run", "--quiet", "--exit-wait", "100s", "-o", str(jobs / "r%r.gmt"), "--",
         *rig.simulated([rig.python, PROGRAM, cause])],
        env=rig.environment(folder, {"SIMCUDA_DEVICES": "4", **environment}), cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    # `run` has written the digests; what it compares is what the recordings say.
    assert sorted(path.name for path in jobs.iterdir()) == [
        f"r{rank}.gmt{suffix}" for rank in range(4) for suffix in ("", ".digest")], list(jobs.iterdir())
    sizes = [path.stat().st_size for path in jobs.glob("*.digest")]
    assert max(sizes) <= MAX_DIGEST_BYTES, sizes
    answers = {options: verb(rig, folder, *options, "out") for options in ((), ("--json",), ("--json", "--steps"))}
    for options, answer in answers.items():
        read = verb(rig, folder, *options, "--no-digest", "out")
        assert (answer.stdout, answer.stderr) == (read.stdout, read.stderr), (answer, read)
    text = answers[()].stdout
    problems = list(schemas.problems(["ranks"], answers["--json", "--steps"].stdout))
    assert problems == [], problems
    ranks = json.loads(answers["--json", "--steps"].stdout)
    assert [row["rank"] for row in ranks["ranks"]] == [0, 1, 2, 3], ranks
    for row in ranks["ranks"]:
        by_step = row["by_step"]
        groups = -(-row["steps"] // by_step["steps_per_group"])
        for peaks in (by_step["peak_bytes"], *by_step["categories"].values(), *by_step["stacks"].values()):
            assert len(peaks) == groups > 0, row
    print("       " + text.splitlines()[0])
    return ranks, text


def ranks_that_are_alike_agree(rig, folder):
    ranks, text = compare(rig, folder, "none")
    assert ranks["outliers"] == [] and text.startswith("4 ranks agree: peak "), text
    one = verb(rig, folder, "out/r0.gmt").stdout
    assert one.startswith("Only one recording: rank 0 has a peak of "), one
    # A damaged file is named, and the others are compared.
    (folder / "out" / "r9.gmt").write_bytes(b"not a recording")
    text = verb(rig, folder, "out").stdout
    assert text.startswith("4 ranks agree") and "Not read\n  out/r9.gmt" in text, text
    assert "no recording" in verb(rig, folder, "sessions", code=1).stderr


def larger_batch_is_named_by_its_activations(rig, folder):
    ranks, text = compare(rig, folder, "batch")
    assert ranks["outliers"] == [2], ranks
    assert text.startswith("Rank 2 has a peak of ") and "activations +" in text.splitlines()[0], text
    assert "uneven_ranks.py" in text, text


def larger_shard_is_named_by_parameters_and_state(rig, folder):
    ranks, text = compare(rig, folder, "shard")
    assert ranks["outliers"] == [1], ranks
    assert "parameters, gradients and optimizer state +" in text, text


def leak_of_one_rank_is_named_with_its_line(rig, folder):
    ranks, text = compare(rig, folder, "leak")
    assert ranks["outliers"] == [3] and ranks["next_to_fail"] == 3, ranks
    assert "leaks 4.00 MiB per step at uneven_ranks.py:" in text, text
    # 220 steps are joined by four. The median differs by more than 32 MiB after eight steps of 4 MiB.
    assert ranks["ranks"][3]["differing_steps"] == [9, 220] and "differs from step 9 on" in text, text


def contexts_of_other_ranks_are_named(rig, folder):
    ranks, text = compare(rig, folder, "stray", SIMCUDA_SHARED=str(folder / "shared"), SIMCUDA_CONTEXT="300M")
    assert ranks["outliers"] == [0], ranks
    assert "contexts of ranks 1, 2, 3 on its GPU: " in text and "set_device" in text, text


CASES = [ranks_that_are_alike_agree, larger_batch_is_named_by_its_activations, larger_shard_is_named_by_parameters_and_state,
         leak_of_one_rank_is_named_with_its_line, contexts_of_other_ranks_are_named]


if __name__ == "__main__":
    sys.exit(rigs.main_of_cases([(case.__name__, case) for case in CASES], __doc__))
