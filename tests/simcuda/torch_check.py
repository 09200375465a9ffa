#!/usr/bin/env python3
"""Runs tests/programs with an unmodified PyTorch on the simulated device.

Compares what PyTorch says with what the simulated driver was asked.

Usage: torch_check.py --python PYTHON [--build DIR] [NAME...]

PYTHON has a CUDA build of PyTorch; DIR is the build folder that holds simcuda/. NAMEs select cases.
The last line of the output is "N passed, N failed".
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
MIB = 1 << 20


class Run:
    """One finished program: its exit code, its output and the driver's log."""

    def __init__(self, code, stdout, stderr, log):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.log = log

    def result(self):
        assert self.code == 0, f"exit code {self.code}\n{self.stderr[-2000:]}"
        return json.loads(self.stdout.strip().splitlines()[-1])

    def calls(self, name, result=0):
        """Logged calls of that name that returned that code."""
        return [r for r in self.log if r["call"] == name and r["result"] == result]

    def counts(self):
        return collections.Counter(r["call"] for r in self.log if r["result"] == 0)


class Rig:
    def __init__(self, python, build):
        self.python = python
        self.build = build

    def run(self, program, *arguments, variant="simcuda", **environment):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            command = [str(self.build / variant / "with-simcuda"), self.python]
            command += [str(PROGRAMS / program), *arguments]
            done = subprocess.run(
                command,
                env={**os.environ, **environment, "SIMCUDA_LOG": str(log)},
                capture_output=True,
                text=True,
                timeout=300,
            )
            lines = log.read_text().splitlines() if log.exists() else []
        return Run(done.returncode, done.stdout, done.stderr, [json.loads(line) for line in lines])


def expect(actual, wanted, what):
    assert actual == wanted, f"{what}: {actual}, not {wanted}"


def check_log(run):
    """The log is whole, and no address is given out twice without a free in between."""
    expect([r["seq"] for r in run.log], list(range(len(run.log))), "sequence numbers")
    live = {}
    for record in run.log:
        if record["result"] != 0:
            continue
        if record["call"] in ("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemHostAlloc"):
            assert record["address"] not in live, f"allocated twice: {record}"
            live[record["address"]] = record
        elif record["call"] in ("cuMemFree_v2", "cuMemFreeAsync", "cuMemFreeHost"):
            expect(live.pop(record["address"])["size"], record["size"], "size of a free")


def peak(run):
    """The largest sum of live cuMemAlloc memory: what PyTorch calls reserved."""
    current = highest = 0
    for record in run.log:
        if record["result"] == 0 and record["call"] == "cuMemAlloc_v2":
            current += record["size"]
            highest = max(highest, current)
        elif record["result"] == 0 and record["call"] == "cuMemFree_v2":
            current -= record["size"]
    return highest


def check_caching_allocator(run):
    result = run.result()
    check_log(run)
    expect(len(run.calls("cuMemAlloc_v2")), result["num_device_alloc"], "cuMemAlloc_v2 calls")
    expect(len(run.calls("cuMemFree_v2")), result["num_device_free"], "cuMemFree_v2 calls")
    expect(peak(run), result["max_memory_reserved"], "peak of the log")
    return result


def mlp(rig):
    result = check_caching_allocator(rig.run("train_mlp.py", "--json"))
    expect(result["device"], "cuda", "device")


def mlp_pinned(rig):
    run = rig.run("train_mlp.py", "--json", "--pinned")
    check_caching_allocator(run)
    assert run.calls("cuMemHostAlloc"), "no pinned memory"


def mlp_on_the_second_device(rig):
    run = rig.run("train_mlp.py", "--json", "--device", "cuda:1", SIMCUDA_DEVICES="2")
    check_caching_allocator(run)
    expect({r["device"] for r in run.calls("cuMemAlloc_v2")}, {1}, "devices")


def mlp_without_caching(rig):
    run = rig.run("train_mlp.py", "--json", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    run.result()
    check_log(run)
    assert len(run.calls("cuMemAlloc_v2")) > 100, "every tensor is a cuMemAlloc"


def mlp_with_lagging_events(rig):
    check_caching_allocator(rig.run("train_mlp.py", "--json", "--pinned", SIMCUDA_LAG="50"))


def mlp_on_the_got_variant(rig):
    check_caching_allocator(rig.run("train_mlp.py", "--json", variant="simcuda-got"))


def gpt(rig):
    check_caching_allocator(rig.run("train_gpt.py", "--json"))


def gpt_fp32_with_checkpointing(rig):
    check_caching_allocator(rig.run("train_gpt.py", "--json", "--no-amp", "--checkpoint"))


def gpt_with_cuda_graph(rig):
    run = rig.run("train_gpt.py", "--json", "--graph")
    check_caching_allocator(run)
    assert "graph is empty" not in run.stderr, run.stderr


def gpt_with_expandable_segments(rig):
    run = rig.run("train_gpt.py", "--json", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    result = run.result()
    check_log(run)
    counts = run.counts()
    expect(counts["cuMemAlloc_v2"], 0, "cuMemAlloc_v2 calls")
    expect(counts["cuMemCreate"], counts["cuMemMap"], "cuMemCreate and cuMemMap calls")
    created = sum(r["size"] for r in run.calls("cuMemCreate"))
    expect(created, result["max_memory_reserved"], "physical memory")


def gpt_with_the_async_backend(rig):
    run = rig.run("train_gpt.py", "--json", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    run.result()
    check_log(run)
    counts = run.counts()
    expect(counts["cuMemAlloc_v2"], 0, "cuMemAlloc_v2 calls")
    assert counts["cuMemAllocAsync"] > 100, counts
    # Interpreter exit may leave a few tensors; nothing else stays.
    assert 0 <= counts["cuMemAllocAsync"] - counts["cuMemFreeAsync"] < 200, counts


def check_out_of_memory(run):
    result = run.result()
    check_log(run)
    message = result["message"]
    assert message.startswith("CUDA out of memory. Tried to allocate 1024.00 MiB."), message
    assert "GPU 0 has a total capacity of 24.00 GiB" in message, message
    assert "this process has 2" in message, message
    expect(result["num_ooms"], 1, "num_ooms")


def oom(rig):
    run = rig.run("oom.py", "--catch", "--json")
    check_out_of_memory(run)
    expect(run.result()["tensors"], 24, "tensors")
    expect(len(run.calls("cuMemAlloc_v2", result=2)), 2, "failed cuMemAlloc_v2 calls")


def oom_with_expandable_segments(rig):
    run = rig.run(
        "oom.py", "--catch", "--json", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
    )
    check_out_of_memory(run)
    assert run.calls("cuMemCreate", result=2), "no failed cuMemCreate"


def oom_uncaught(rig):
    run = rig.run("oom.py", SIMCUDA_MEMORY="4G")
    expect(run.code, 1, "exit code")
    assert "torch.OutOfMemoryError: CUDA out of memory." in run.stderr, run.stderr
    assert "total capacity of 4.00 GiB" in run.stderr, run.stderr


def oom_beside_other_processes(rig):
    run = rig.run("oom.py", "--catch", "--json", SIMCUDA_FOREIGN="4G")
    check_out_of_memory(run)
    expect(run.result()["tensors"], 20, "tensors")


def injected_failure_is_an_out_of_memory_error(rig):
    # PyTorch frees its cache and tries again: two failures in a row are needed.
    run = rig.run("train_mlp.py", SIMCUDA_FAIL="cuMemAlloc_v2:3,cuMemAlloc_v2:4")
    expect(run.code, 1, "exit code")
    assert "torch.OutOfMemoryError" in run.stderr, run.stderr


CASES = [
    mlp,
    mlp_pinned,
    mlp_on_the_second_device,
    mlp_without_caching,
    mlp_with_lagging_events,
    mlp_on_the_got_variant,
    gpt,
    gpt_fp32_with_checkpointing,
    gpt_with_cuda_graph,
    gpt_with_expandable_segments,
    gpt_with_the_async_backend,
    oom,
    oom_with_expandable_segments,
    oom_uncaught,
    oom_beside_other_processes,
    injected_failure_is_an_out_of_memory_error,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="has a CUDA build of PyTorch")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("names", nargs="*", help="cases to run; default: all")
    args = parser.parse_args()

    unknown = set(args.names) - {case.__name__ for case in CASES}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    rig = Rig(args.python, args.build.resolve())
    passed = failed = 0
    for case in CASES:
        if args.names and case.__name__ not in args.names:
            continue
        try:
            case(rig)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"FAILED {case.__name__}: {error}", flush=True)
        except Exception:  # a broken check is a failure too, with its place
            failed += 1
            print(f"FAILED {case.__name__}: {traceback.format_exc()}", flush=True)
        else:
            passed += 1
            print(f"passed {case.__name__}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
