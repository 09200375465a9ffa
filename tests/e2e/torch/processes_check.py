#!/usr/bin/env python3
"""Records PyTorch when it has no blocks to show, when other libraries allocate memory too, and when
several processes train: which files there are, and what they contain.

Usage: processes_check.py --build DIR [--python PYTHON] [NAME...]
"""

import collections
import pathlib
import subprocess
import sys

import oracle_check
from replay import Replay
from rig import Recording, main_of_cases

TRAINING = oracle_check.PROGRAMS.parent / "train_gpt.py"


def recordings(rig, folder, done):
    """Returns all recordings that a run left."""
    found = []
    for path in sorted(folder.glob("*.gmt")):
        recording = Recording(rig, folder, done)
        recording.path = path
        found.append(recording)
    return found


# ---- No blocks ----------------------------------------------------------------------------------


def check_tensors(recording, lines):
    """The driver's memory has the types and shapes of PyTorch's tensors, except for what libraries allocate."""
    allocs = [line for line in lines if line["kind"] == "alloc" and line["heap"] == "driver"]
    typed = [line for line in allocs if line.get("dtype")]
    assert all(line["requested"] == line["size"] and line["shape"] for line in typed), typed[:3]
    sizes, known = (sum(line["size"] for line in some) for some in (allocs, typed))
    assert known > 0.9 * sizes, f"types are known of {known} of {sizes} bytes"
    rows = {row["label"]: row["bytes"] for row in recording.report("--by", "dtype")["rows"]}
    assert rows["float32"] > rows["no tensor"] and rows["no tensor"] < 0.2 * sum(rows.values()), rows


def check_without_blocks(rig, folder, reason, heap_api, **environment):
    recording = rig.run(folder, [rig.python, TRAINING, "--json"], **environment)
    result = recording.result()
    info = recording.check_whole()
    reported = info["sources"]["pytorch"]
    assert reported not in ("on", "off") and reason in reported, f"sources.pytorch: {reported}"
    lines = recording.events()
    heaps = collections.Counter(line.get("heap") for line in lines)
    assert "pytorch" not in heaps, heaps
    apis = {line["api"] for line in lines if line["kind"] == "alloc" and line["heap"] == "driver"}
    assert heap_api in apis, apis
    check_tensors(recording, lines)
    recording.check_against_the_device()
    return recording, result


def the_async_allocator_has_no_blocks(rig, folder):
    recording, result = check_without_blocks(
        rig,
        folder,
        "cudaMallocAsync",
        "cudaMallocAsync",
        PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync",
    )
    # PyTorch reports what the driver's pool holds, which rounds each allocation up.
    peak, reported = recording.peak(), result["max_memory_allocated"]
    assert 0.999 * reported < peak <= reported, (peak, reported)


def no_caching_has_no_blocks(rig, folder):
    check_without_blocks(
        rig,
        folder,
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "cudaMalloc",
        PYTORCH_NO_CUDA_MEMORY_CACHING="1",
    )


# ---- Other libraries ----------------------------------------------------------------------------


def libraries_beside(recording):
    """Returns library -> bytes, of the driver's memory that the caching allocator did not
    allocate."""
    replay = Replay(recording.events())
    stacks = replay.stacks()
    found = collections.Counter()
    for line in replay.lines:
        if line.get("heap") != "driver" or line["kind"] not in ("alloc", "create"):
            continue
        modules = [f.get("module") or "" for f in stacks[line["stack"]]["frames"]]
        names = [pathlib.Path(module).name for module in modules]
        takers = [n for n in names if n.startswith(("libnccl", "libcublas", "libcudnn", "libc10"))]
        assert takers, f"no known library is on the stack: {names}"
        found[takers[0]] += line["size"]
    segments = sum(s.size for s in replay.driver.all_segments() if s.mapped is None)
    assert found.pop("libc10_cuda.so", 0) == segments, (found, segments)
    return found


def memory_of_handles_is_taken_by_their_libraries(rig, folder):
    (scenario,) = [s for s in oracle_check.SCENARIOS if s.name == "convnet_amp"]
    found = libraries_beside(oracle_check.Scene(rig, folder, scenario).recording)
    assert set(found) == {"libcublas.so.13", "libcudnn.so.9"}, found
    for library, size in found.items():
        assert size % (64 << 10) == 0, f"{library}: {size}"


def memory_of_communicators_is_taken_by_nccl(rig, folder):
    (scenario,) = [s for s in oracle_check.SCENARIOS if s.name == "ddp"]
    for recording in oracle_check.Scene(rig, folder, scenario).files().values():
        found = libraries_beside(recording)
        assert found == {"libnccl.so.2": (192 << 10) + 2 * (4 << 20)}, found


# ---- Several processes --------------------------------------------------------------------------

LOADS = """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 16
    def __getitem__(self, index): return torch.full((1000,), float(index))
if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, pin_memory=True)
    print(sum(batch.cuda().shape[0] for batch in loader))
"""

RANK = """
import os, torch
torch.cuda.set_device(0)
kept = torch.empty((int(os.environ["RANK"]) + 1) << 20, dtype=torch.uint8, device="cuda")
print(os.getpid())
"""

SPAWNS = """
import os, torch
def work(rank, world):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(world)
    kept = torch.empty((rank + 1) << 20, dtype=torch.uint8, device="cuda")
if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (3,), nprocs=3)
"""


def workers_that_load_data_leave_no_files(rig, folder):
    program = folder / "loads.py"
    program.write_text(LOADS)
    recording = rig.run(folder, [rig.python, program])
    assert recording.done.returncode == 0, recording.done.stderr
    assert recording.done.stdout.split() == ["16"], recording.done.stdout
    assert [r.path.name for r in recordings(rig, folder, recording.done)] == ["run.gmt"]


def check_ranks(rig, folder, done, ranks, **also):
    found = recordings(rig, folder, done)
    reported = {}
    for recording in found:
        recording.check_whole()
        target = recording.info()["target"]
        rank = target["rank"]
        assert rank not in reported, f"two files of rank {rank}: {[r.path.name for r in found]}"
        reported[rank] = target
        (row,) = [
            h for d in recording.report()["devices"] for h in d["heaps"] if h["heap"] == "pytorch"
        ]
        assert row["peak_live_bytes"] == (rank + 1) << 20, (rank, row)
    assert sorted(reported) == list(range(ranks)), f"ranks {sorted(reported)} of {ranks}"
    for rank, target in reported.items():
        for key, value in {"world_size": ranks, **also}.items():
            want = value(rank) if callable(value) else value
            assert target[key] == want, f"rank {rank}: {key} is {target[key]}, not {want}"


def torchrun_makes_a_file_for_each_rank(rig, folder):
    program = folder / "rank.py"
    program.write_text(RANK)
    command = [rig.python, "-m", "torch.distributed.run", "--nproc-per-node", 2, program]
    recording = rig.run(folder, command, TORCHELASTIC_RUN_ID="")
    assert recording.done.returncode == 0, recording.done.stderr
    check_ranks(rig, folder, recording.done, 2, local_rank=lambda rank: rank)


def spawned_ranks_have_files_of_their_own(rig, folder):
    program = folder / "spawns.py"
    program.write_text(SPAWNS)
    recording = rig.run(folder, [rig.python, program])
    assert recording.done.returncode == 0, recording.done.stderr
    check_ranks(rig, folder, recording.done, 3)


def ranks_are_in_the_names_of_files(rig, folder):
    program = folder / "rank.py"
    program.write_text(RANK)
    launched = [rig.python, "-m", "torch.distributed.run", "--nproc-per-node", "2", program]
    done = subprocess.run(
        [rig.program, "run", "--quiet", "-o", str(folder / "of-%r.gmt"), "--"]
        + rig.simulated(launched),
        env=rig.environment(folder, {}),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in folder.glob("*.gmt"))
    assert names == ["of-0.gmt", "of-1.gmt"], names
    check_ranks(rig, folder, done, 2)


CASES = (
    the_async_allocator_has_no_blocks,
    no_caching_has_no_blocks,
    memory_of_handles_is_taken_by_their_libraries,
    memory_of_communicators_is_taken_by_nccl,
    workers_that_load_data_leave_no_files,
    torchrun_makes_a_file_for_each_rank,
    spawned_ranks_have_files_of_their_own,
    ranks_are_in_the_names_of_files,
)


if __name__ == "__main__":
    named = [(c.__name__, c) for c in CASES]
    sys.exit(main_of_cases(named, __doc__.splitlines()[0]))
