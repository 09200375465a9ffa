#!/usr/bin/env python3
"""One recording for each rank of a job, which contains the rank, and none for processes that use no GPU.

Usage: ranks_check.py [--build DIR] [--python PYTHON] [NAME...]
  --build DIR      the build directory (build/dev)
  --python PYTHON  a Python with a CUDA build of PyTorch; without it the cases that need it are skipped
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import PROGRAMS, ROOT, Recording, Rig, find_python, run_cases  # noqa: E402

# Variables of launchers under which this check itself may run.
LAUNCHERS = ("GPUMEMTRACE_", "OMPI_", "PMI", "MV2_", "FLUX_", "PALS_", "SLURM_", "PBS_", "LSB_", "RAY_",
             "TORCHELASTIC_", "HOROVOD_", "MPI_")
SINGLE = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "JOB_COMPLETION_INDEX")
UNKNOWN = {"rank": None, "local_rank": None, "world_size": None, "node_rank": None, "restart_count": None,
           "job": None}


def identity(info):
    return {name: info["target"][name] for name in UNKNOWN}


def recordings(rig, recording, folder):
    """Returns {pid: identity from info} of all recordings of the directory, each of which must be complete."""
    found = {}
    for path in sorted(folder.glob("**/*.gmt")):
        info = recording.info(path)
        assert info["complete"], path
        assert info["events"]["alloc"] > 0, f"{path} has no allocation"
        found[info["target"]["pid"]] = {**identity(info), "path": str(path.relative_to(folder))}
    return found


def check_ranks(rig, recording, folder, world, **expected):
    """Each rank that printed a line has one recording with that rank; no other process has one."""
    assert recording.done.returncode == 0, recording.done.stderr[-3000:]
    # The ranks write to one pipe, so their output may be on the same line.
    printed, rest = [], recording.done.stdout
    while "{" in rest:
        value, end = json.JSONDecoder().raw_decode(rest[rest.index("{"):])
        printed.append(value)
        rest = rest[rest.index("{") + end:]
    assert sorted(p["rank"] for p in printed) == list(range(world)), recording.done.stdout
    found = recordings(rig, recording, folder)
    assert set(found) == {p["pid"] for p in printed}, (found, printed)
    for process in printed:
        wanted = {**UNKNOWN, "rank": process["rank"], "local_rank": process["rank"], "world_size": world,
                  **expected}
        recorded = dict(found[process["pid"]])
        path = recorded.pop("path")
        assert recorded == wanted, (process, recorded, wanted)
        yield process["rank"], path


def torchrun(rig, folder, *options, **more):
    command = [rig.python, "-m", "torch.distributed.run", "--nproc-per-node=2",
               "--rdzv-endpoint=localhost:0", "--rdzv-backend=c10d", *more.pop("launcher", []),
               PROGRAMS / "ranks.py", *options]
    return rig.run(folder, command, SIMCUDA_DEVICES="2", OMP_NUM_THREADS="1", **more)


def torchrun_gives_a_file_for_each_rank_and_none_for_data_loaders(rig, folder):
    recording = torchrun(rig, folder, "--workers", "2", launcher=["--rdzv-id=nightly"],
                         output="job-%j.r%r.l%l.gmt")
    paths = dict(check_ranks(rig, recording, folder, 2, node_rank=0, restart_count=0, job="nightly"))
    assert paths == {0: "job-nightly.r0.l0.gmt", 1: "job-nightly.r1.l1.gmt"}, paths


def ranks_that_share_a_name_do_not_share_a_file(rig, folder):
    recording = torchrun(rig, folder, launcher=["--rdzv-id=none"])
    paths = dict(check_ranks(rig, recording, folder, 2, node_rank=0, restart_count=0))
    assert "run.gmt" in paths.values() and len(set(paths.values())) == 2, paths


def spawn(rig, folder, *options):
    return rig.run(folder, [rig.python, PROGRAMS / "ranks.py", "--spawn", "2", "--store", f"file://{folder}/store",
                            *options], SIMCUDA_DEVICES="2", OMP_NUM_THREADS="1")


def spawned_ranks_say_theirs_in_their_own_environment(rig, folder):
    assert len(dict(check_ranks(rig, spawn(rig, folder), folder, 2))) == 2


def unknown_rank_is_not_invented(rig, folder):
    recording = spawn(rig, folder, "--silent")
    assert len(dict(check_ranks(rig, recording, folder, 2, rank=None, local_rank=None, world_size=None))) == 2


def alone(rig, folder, output="run.gmt", **environment):
    """Returns the identity in a compiled program's recording under these variables, and its path."""
    recording = rig.run(folder, rig.driver_alloc("--count", "2"), output=output, **environment)
    assert recording.done.returncode == 0, recording.done.stderr
    found = recordings(rig, recording, folder)
    assert len(found) == 1, found
    recorded = found.popitem()[1]
    return recorded.pop("path"), recorded


def process_alone_has_no_rank(rig, folder):
    assert alone(rig, folder) == ("run.gmt", UNKNOWN)
    assert not (folder / "run.gmt.digest").exists()


def digest_is_written_for_a_rank_unless_it_is_refused(rig, folder):
    for name, options in {"with": (), "without": ("--no-digest",)}.items():
        recording = rig.run(folder, rig.driver_alloc("--count", "2"), output=f"{name}.gmt", options=options, RANK="3")
        assert recording.done.returncode == 0, recording.done.stderr
    assert sorted(path.name for path in folder.glob("*.gmt*")) == ["with.gmt", "with.gmt.digest", "without.gmt"]


def launchers_are_recognized_by_their_own_variables(rig, folder):
    cases = {
        "accelerate": ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "NODE_RANK": "1"},
                       {"rank": 3, "local_rank": 1, "world_size": 4, "node_rank": 1}),
        "mpirun": ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2",
                    "PMIX_RANK": "1"}, {"rank": 1, "local_rank": 1, "world_size": 2}),
        "srun": ({"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8", "SLURM_NODEID": "2",
                  "SLURM_JOB_ID": "4711", "SLURM_RESTART_COUNT": "1"},
                 {"rank": 5, "local_rank": 1, "world_size": 8, "node_rank": 2, "job": "4711", "restart_count": 1}),
        "torchrun under srun": ({"RANK": "9", "LOCAL_RANK": "1", "WORLD_SIZE": "16", "GROUP_RANK": "1",
                                 "SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_NODEID": "1", "SLURM_JOB_ID": "4711",
                                 "TORCHELASTIC_RUN_ID": "elastic"},
                                {"rank": 9, "local_rank": 1, "world_size": 16, "node_rank": 1, "job": "4711"}),
    }
    for name, (variables, wanted) in cases.items():
        place = folder / name.replace(" ", "-")
        (place / "sessions").mkdir(parents=True, mode=0o700)
        path, recorded = alone(rig, place, "%j.%r.%l.gmt", **variables)
        assert recorded == {**UNKNOWN, **wanted}, (name, recorded)
        assert path == f"{wanted.get('job', '')}.{wanted['rank']}.{wanted['local_rank']}.gmt", path


def text_names_rank_and_job(rig, folder):
    alone(rig, folder, RANK="3", WORLD_SIZE="16", LOCAL_RANK="1", SLURM_JOB_ID="4711", TORCHELASTIC_RESTART_COUNT="2")
    text = rig.run(folder, ["true"], simulated=False).verb("info", folder / "run.gmt")
    assert "rank 3 of 16, local rank 1, restart 2, job 4711" in text, text


PLAIN = [process_alone_has_no_rank, digest_is_written_for_a_rank_unless_it_is_refused,
         launchers_are_recognized_by_their_own_variables, text_names_rank_and_job]
TORCH = [torchrun_gives_a_file_for_each_rank_and_none_for_data_loaders, ranks_that_share_a_name_do_not_share_a_file,
         spawned_ranks_say_theirs_in_their_own_environment, unknown_rank_is_not_invented]


class JobRig(Rig):
    """Names the recordings by a pattern; hides variables of a launcher of this check."""

    def run(self, folder, command, output="run.gmt", simulated=True, options=(), **environment):
        done = subprocess.run(
            [self.program, "run", *options, "-o", f"{folder}/{output}", "--"]
            + (self.simulated(command) if simulated else list(map(str, command))),
            env=self.environment(folder, environment), cwd=folder, capture_output=True, text=True, timeout=300)
        return Recording(self, folder, done)

    def environment(self, folder, more):
        return {name: value for name, value in super().environment(folder, more).items()
                if name in more or not (name in SINGLE or name.startswith(LAUNCHERS)) or name == "GPUMEMTRACE_DIR"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*", help="cases to run; default: all")
    arguments = parser.parse_args()
    rig = JobRig(arguments.build.resolve(), find_python(arguments.python))
    cases = PLAIN + (TORCH if rig.python else [])
    if not rig.python:
        print("Skipped, because there is no PyTorch: " + ", ".join(case.__name__ for case in TORCH))
    chosen = [(case.__name__, case) for case in cases if not arguments.names or case.__name__ in arguments.names]
    if not chosen:
        sys.exit(f"ranks_check: no such case: {' '.join(arguments.names)}")
    return run_cases(rig, chosen)


if __name__ == "__main__":
    sys.exit(main())
