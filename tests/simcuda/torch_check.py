#!/usr/bin/env python3
"""Runs tests/programs with an unmodified PyTorch on the simulated device.

Compares what PyTorch says with what the simulated driver was asked.

Usage: torch_check.py --python PYTHON [--build DIR] [--scenarios] [NAME...]

PYTHON has a CUDA build of PyTorch; DIR is the build folder that holds simcuda/. NAMEs select cases,
and, as scenario_NAME, the scenarios of tests/programs/torch; without them all cases and the short
scenarios run, with --scenarios all scenarios and nothing else. The last line of the output is
"N passed, N failed".
"""

import argparse
import collections
import concurrent.futures
import functools
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
# What a communicator takes for itself (nccl_communicator.h).
NCCL_STATE, NCCL_CHANNEL = 192 << 10, 4 << 20

sys.path.insert(0, str(PROGRAMS / "torch"))
from scenarios import SCENARIOS  # noqa: E402


class Run:
    """One finished program: its exit code, its output and the log of each process's driver."""

    def __init__(self, code, stdout, stderr, logs):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.logs = logs

    @property
    def log(self):
        assert len(self.logs) <= 1, f"{len(self.logs)} processes used the device"
        return self.logs[0] if self.logs else []

    def result(self):
        assert self.code == 0, f"exit code {self.code}\n{self.stderr[-2000:]}"
        return json.loads(self.stdout.strip().splitlines()[-1])

    def results(self):
        """The logs, one for each rank."""
        assert self.code == 0, f"exit code {self.code}\n{self.stderr[-2000:]}"
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]

    def calls(self, name, result=0):
        """The logged calls of that name that returned that code."""
        return [r for r in self.log if r["call"] == name and r["result"] == result]

    def counts(self):
        return collections.Counter(r["call"] for r in self.log if r["result"] == 0)


class Rig:
    def __init__(self, python, build):
        self.python = python
        self.build = build

    def run(self, program, *arguments, variant="simcuda", **environment):
        command = [self.python, str(PROGRAMS / program), *arguments]
        return self.run_command(command, environment, variant)

    def run_scenario(self, scenario):
        return self.run_command(
            scenario.command(self.python), scenario.environment_for(self.build), "simcuda"
        )

    def run_command(self, command, environment, variant):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [str(self.build / variant / "with-simcuda"), *command],
                env={**os.environ, **environment, "SIMCUDA_LOG": f"{folder}/%p"},
                capture_output=True,
                text=True,
                timeout=500,
            )
            logs = [
                [json.loads(line) for line in log.read_text().splitlines()]
                for log in sorted(pathlib.Path(folder).iterdir())
            ]
        return Run(done.returncode, done.stdout, done.stderr, logs)


def expect(actual, wanted, what):
    assert actual == wanted, f"{what}: {actual}, not {wanted}"


def check_log(run):
    for log in run.logs:
        check_one_log(log)


def check_one_log(log):
    """Checks that the log is complete, and that no address is allocated twice without a free in between."""
    expect([r["seq"] for r in log], list(range(len(log))), "sequence numbers")
    live = {}
    for record in log:
        if record["result"] != 0:
            continue
        if record["call"] in ("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemHostAlloc"):
            assert record["address"] not in live, f"allocated twice: {record}"
            live[record["address"]] = record
        elif record["call"] in ("cuMemFree_v2", "cuMemFreeAsync", "cuMemFreeHost"):
            expect(live.pop(record["address"])["size"], record["size"], "size of a free")


def peak(log):
    """Returns the maximum of live cuMemAlloc memory, which PyTorch calls reserved."""
    current = highest = 0
    for record in log:
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
    expect(peak(run.log), result["max_memory_reserved"], "peak of the log")
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
    # PyTorch frees its cache and retries, so two failures in a row are needed.
    run = rig.run("train_mlp.py", SIMCUDA_FAIL="cuMemAlloc_v2:3,cuMemAlloc_v2:4")
    expect(run.code, 1, "exit code")
    assert "torch.OutOfMemoryError" in run.stderr, run.stderr


def ddp(rig):
    """Each rank has a communicator, whose memory is not PyTorch's."""
    scenario = next(s for s in SCENARIOS if s.name == "ddp")
    run = rig.run_scenario(scenario)
    results = {result["rank"]: result["devices"] for result in run.results()}
    check_log(run)
    expect(sorted(results), [0, 1], "ranks")
    expect(len(run.logs), 2, "processes that used the device")
    for rank, devices in results.items():
        logs = [[r for r in log if r["result"] == 0] for log in run.logs]
        (done,) = [log for log in logs if log[0]["device"] == rank]
        sizes = [r["size"] for r in done if r["call"] == "cuMemAlloc_v2"]
        expect(sizes.count(NCCL_STATE), 1, "communicators")
        expect(len(sizes) - 1, devices[rank]["num_device_alloc"], "cuMemAlloc_v2 calls")
        created = [r["size"] for r in done if r["call"] == "cuMemCreate"]
        expect(created, [NCCL_CHANNEL, NCCL_CHANNEL], "cuMemCreate calls")
        expect([r["call"] for r in done].count("cuMemUnmap"), 2, "channels that were given back")


def torchrun(rig):
    scenario = next(s for s in SCENARIOS if s.name == "fsdp2")
    program = str(PROGRAMS / "torch" / scenario.program)
    command = [rig.python, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    run = rig.run_command([*command, program], scenario.environment, "simcuda")
    expect(sorted(result["rank"] for result in run.results()), [0, 1], "ranks")
    check_log(run)


def conv_net_with_handles_and_workspaces(rig):
    """PyTorch counts the workspaces but does not know what the handles take."""
    small = rig.run("torch/convnet.py").results()[0]["devices"][0]
    run = rig.run("torch/convnet.py", SIMCUDA_WORKSPACE="96M", SIMCUDA_HANDLE="640K")
    (result,) = run.results()
    large = result["devices"][0]
    check_log(run)
    grown = large["max_memory_allocated"] - small["max_memory_allocated"]
    assert 16 * MIB < grown <= 96 * MIB, f"peak with a workspace of 96 MiB is {grown} larger"
    handles = [r for r in run.calls("cuMemAlloc_v2") if r["size"] == 640 << 10]
    assert len(handles) >= 2, f"{len(handles)} handles of cuBLAS and cuDNN took memory"
    expect(
        len(run.calls("cuMemAlloc_v2")) - len(handles),
        large["num_device_alloc"],
        "cuMemAlloc_v2 calls",
    )


# The driver's log calls for each kind of work in a profile.
WORK = {
    "kernel": ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel"),
    "Memcpy": ("cuMemcpyAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"),
    "Memset": ("cuMemsetD8Async", "cuMemsetD32Async"),
}
KERNEL_TIME = 50_000


def check_profiles(run):
    """Each profile contains all work submitted to the driver while it ran, with its duration."""
    profiles = run.result()["profiles"]
    for complaint in ("CUPTI", "not record", "INTERNAL ASSERT", "out of range"):
        assert complaint not in run.stderr, run.stderr
    for profile in profiles:
        inside = [r for r in run.log if profile["begin_ns"] <= r["t_ns"] <= profile["end_ns"]]
        for kind, calls in WORK.items():
            asked = sum(r["call"] in calls for r in inside)
            expect(profile["counts"].get(kind, 0), asked, f"{kind} that the profile saw")
        kernels = profile["counts"]["kernel"]
        assert kernels > 10, f"{kernels} kernels"
        assert profile["counts"]["Memcpy"] >= 6, profile["counts"]  # in and out, in each step
        # PyTorch converts times to its own clock and then rounds them.
        mean = profile["nanoseconds"]["kernel"] / kernels
        assert abs(mean - KERNEL_TIME) < KERNEL_TIME / 100, f"kernels of {mean} ns"
    return profiles


PROFILED = {
    "SIMCUDA_KERNEL_TIME": f"{KERNEL_TIME}ns",
    "SIMCUDA_BANDWIDTH": "10G",
    "SIMCUDA_LOG_STREAMS": "1",
}


def profiler_sees_the_work(rig):
    run = rig.run("torch/profiled.py", **PROFILED)
    expect(len(check_profiles(run)), 2, "profiles")


def profiler_that_ends_cupti_after_each_profile(rig):
    run = rig.run("torch/profiled.py", "--profiles", "3", TEARDOWN_CUPTI="1", **PROFILED)
    expect(len(check_profiles(run)), 3, "profiles")


def profiler_without_cupti(rig):
    """The program continues to run, and its profiles contain no device work."""
    for mode in ("off", "refuse"):
        run = rig.run("torch/profiled.py", SIMCUDA_CUPTI=mode)
        for profile in run.result()["profiles"]:
            expect(profile["counts"], {}, f"work that was seen with SIMCUDA_CUPTI={mode}")


def check_scenario(rig, scenario):
    """The program succeeds, and the driver's log matches what PyTorch reports."""
    if missing := scenario.missing():
        raise AssertionError(f"cannot run here: {missing}")
    run = rig.run_scenario(scenario)
    results = run.results()
    check_log(run)
    expect(len(results), scenario.ranks, "ranks that reported their outcome")
    conf = scenario.environment.get("PYTORCH_CUDA_ALLOC_CONF", "")
    only_pytorch = scenario.ranks == 1 and "SIMCUDA_HANDLE" not in scenario.environment
    if not only_pytorch or not scenario.caching or "expandable" in conf or scenario.name == "one_of_eight":
        return
    counts = run.counts()
    for key, call in (("num_device_alloc", "cuMemAlloc_v2"), ("num_device_free", "cuMemFree_v2")):
        expect(counts[call], sum(d[key] for d in results[0]["devices"]), f"{call} calls")
    for number, device in enumerate(results[0]["devices"]):
        log = [r for r in run.log if r["device"] == number]
        expect(peak(log), device["max_memory_reserved"], f"peak of the log, device {number}")


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
    ddp,
    torchrun,
    conv_net_with_handles_and_workspaces,
    profiler_sees_the_work,
    profiler_that_ends_cupti_after_each_profile,
    profiler_without_cupti,
]


def selected(rig, names, all_scenarios):
    """Returns pairs of a name and the function that checks it."""
    cases = {case.__name__: functools.partial(case, rig) for case in CASES}
    scenarios = {
        f"scenario_{s.name}": functools.partial(check_scenario, rig, s)
        for s in SCENARIOS
        if names or all_scenarios or s.short
    }
    checks = scenarios if all_scenarios else {**cases, **scenarios}
    if unknown := set(names) - set(checks):
        sys.exit(f"torch_check.py: no such case: {', '.join(sorted(unknown))}")
    return [(name, check) for name, check in checks.items() if not names or name in names]


def error_of(check):
    """Runs a check. Returns why it failed, or None."""
    try:
        check()
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return str(error) or "no reason given"
    except Exception:  # a broken check is a failure too, with its place
        return traceback.format_exc()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="has a CUDA build of PyTorch")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--scenarios", action="store_true", help="all scenarios and nothing else")
    parser.add_argument("names", nargs="*", help="what to run")
    args = parser.parse_args()

    rig = Rig(args.python, args.build.resolve())
    names, checks = zip(*selected(rig, args.names, args.scenarios))
    failed = 0
    # The checks wait for processes that they start, so each processor can have one.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, error in zip(names, pool.map(error_of, checks)):
            failed += error is not None
            print(f"FAILED {name}: {error}" if error else f"passed {name}", flush=True)
    passed = len(names) - failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
