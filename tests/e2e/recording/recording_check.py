#!/usr/bin/env python3
"""Records real programs on the simulated device and checks the recordings.

Usage: recording_check.py --build DIR [--part plain|torch] [--python PYTHON] [NAME...]

DIR is the build directory. PYTHON (default: $GMT_TORCH_PYTHON, otherwise the one installed by scripts/setup) has a CUDA
build of PyTorch. NAMEs select cases. The last line of the output is "N passed, N failed".
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import truth
from rig import MIB, Recording, Rig, find_python, run_cases
from waiting import HANG_S, keeps_waiting, wait_for

# ---- Plain programs ---------------------------------------------------------------------------------


def plain_every_call_of_many_threads_is_recorded(rig, folder):
    command = rig.driver_alloc("--threads", "4", "--count", "500", "--leak", "3")
    recording = rig.run(folder, command)
    recording.result()
    info = recording.check_whole()
    exit = info["target"]["exit"]
    assert (exit["kind"], exit["code"]) == ("exited", 0), exit
    recording.check_against_the_device()


def plain_frees_by_another_thread_are_recorded(rig, folder):
    recording = rig.run(folder, rig.driver_alloc("--threads", "4", "--count", "300", "--handover"))
    recording.check_whole()
    recording.check_against_the_device()


def plain_stream_ordered_memory_is_recorded(rig, folder):
    recording = rig.run(folder, rig.driver_alloc("--threads", "2", "--count", "200", "--async"))
    recording.check_whole()
    recording.check_against_the_device()


def plain_pinned_memory_is_a_heap_of_the_host(rig, folder):
    recording = rig.run(folder, rig.driver_alloc("--threads", "2", "--count", "200", "--host"))
    recording.check_whole()
    recording.check_against_the_device()
    assert recording.peak("host", device=None) > 0, recording.report()


def plain_more_stacks_than_there_is_room_for_lose_no_event(rig, folder):
    count = 300_000
    recording = rig.run(folder, rig.built("new_stacks", count, 40), ["--ring-size", "256MiB"])
    recording.result()
    info = recording.check_whole()
    assert info["events"]["alloc"] == count, info["events"]
    assert 0 < info["losses"]["stacks_full"] < count, info["losses"]
    assert "the stack table was full" in recording.verb("report", recording.path), "the loss is not reported"


def plain_what_leaks_is_in_the_exit_snapshot(rig, folder):
    recording = rig.run(folder, rig.driver_alloc("--threads", "2", "--count", "50", "--leak", "5"))
    snapshots = {s["name"]: s for s in recording.info()["snapshots"]}
    assert snapshots["exit"]["allocations"] == 10, snapshots
    at_end = recording.report("--at", "end")
    live = sum(h["live_bytes"] for d in at_end["devices"] for h in d["heaps"])
    assert live > 0 and live == sum(row["bytes"] for row in at_end["rows"]), at_end


def plain_child_of_a_fork_is_recorded_unless_run_excludes_it(rig, folder):
    parent, child = MIB, 2 * MIB
    for options, expected in (([], {parent, child}), (["--follow-fork"], {parent, child}), (["--no-follow-fork"], {parent})):
        there = folder / "".join(["with", *options])
        there.mkdir()
        recording = rig.run(there, rig.built("nvtx_calls", "fork"), options)
        assert recording.done.returncode == 0, recording.done.stderr
        sizes = [event["size"] for path in there.glob("*.gmt") for event in recording.events(path) if event["kind"] == "alloc"]
        assert sorted(sizes) == sorted(expected), (options, sizes)


def plain_frees_have_stacks_if_run_wants_them(rig, folder):
    for options in ([], ["--free-stacks"]):
        there = folder / ("with" if options else "without")
        there.mkdir()
        recording = rig.run(there, rig.driver_alloc("--threads", "1", "--count", "20"), options)
        frees = [event for event in recording.events() if event["kind"] == "free"]
        assert len(frees) == 20 and all(("stack" in event) == bool(options) for event in frees), frees


def plain_metrics_are_served_where_run_says(rig, folder):
    address = folder / "metrics"
    hold = [rig.build / "tests" / "devices" / "hold", "input", "0:100"]
    with rig.running(folder, hold, ["--listen", f"unix:{address}"]) as recording:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(HANG_S)
            wait_for("the socket of the metrics", address.exists)
            client.connect(str(address))
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            reply = b"".join(iter(lambda: client.recv(65536), b"")).decode()
    assert " 200 OK" in reply and "gpumemtrace_device_memory_inuse_bytes{" in reply, reply
    recording.check_whole()


def plain_failed_free_is_undone(rig, folder):
    recording = rig.run(
        folder,
        rig.driver_alloc("--threads", "1", "--count", "20"),
        SIMCUDA_FAIL="cuMemFree_v2:3=700",
    )
    recording.check_whole()
    recording.check_against_the_device()
    assert recording.info()["events"]["free_failed"] == 1
    assert recording.done.returncode == 1, "the program sees the same failure as without recording"


def plain_last_error_of_the_runtime_is_left_alone(rig, folder):
    program = [rig.build / "tests" / "programs" / "last_error"]
    alone = subprocess.run(rig.simulated(program), capture_output=True, text=True, check=True)
    recording = rig.run(folder, program)
    assert "cudaErrorMemoryAllocation" in alone.stdout, alone.stdout
    assert recording.done.stdout == alone.stdout, recording.done.stdout
    recording.check_against_the_device()


def plain_preload_alone_records_the_same(rig, folder):
    recording = rig.preload(folder, rig.driver_alloc("--threads", "3", "--count", "100"))
    assert recording.done.returncode == 0, recording.done.stderr
    info = recording.check_whole()
    assert info["target"]["exit"]["kind"] == "exited", info
    recording.check_against_the_device()


def plain_killed_process_leaves_a_complete_recording(rig, folder):
    threads = 2
    command = rig.driver_alloc("--threads", threads, "--count", "100000000")
    recording_began = "until [ -s run.gmt ]; do sleep 0.01; done"
    kill = f"{' '.join(map(str, command))} & {recording_began}; sleep 0.2; kill -9 $!; wait $!"
    for via in (rig.run, rig.preload):
        place = folder / via.__name__
        (place / "sessions").mkdir(parents=True, mode=0o700)
        recording = via(place, ["/bin/sh", "-c", kill])
        info = recording.info()
        assert info["complete"], info
        exit = info["target"]["exit"]
        # The shell is its parent, so only a kernel that reports it (Linux 6.15) lets us know how
        # it ended.
        assert exit["kind"] == "lost" or (exit["kind"], exit["code"]) == ("signalled", 9), exit
        want = truth.expected(place / "log", info["target"]["pid"])
        have = truth.recorded(recording.events())
        lost = info["losses"]["written"] - info["losses"]["delivered"]
        # Each thread was in at most one call, which only one side has seen.
        assert lost > 0 or abs(len(want) - len(have)) <= threads, (len(want), len(have))


def plain_session_without_a_collector_is_collected_later(rig, folder):
    command = rig.driver_alloc("--threads", "2", "--count", "50", "--leak", "2")
    library = subprocess.run(
        [rig.program, "preload-path"], capture_output=True, text=True, check=True
    ).stdout.strip()
    more = {"LD_PRELOAD": library, "GPUMEMTRACE_COLLECTOR": "/none", "GPUMEMTRACE": "output=run.gmt"}
    done = subprocess.run(
        rig.simulated(command),
        env=rig.environment(folder, more),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert "gpumemtrace collect " in done.stderr, done.stderr
    (session,) = (folder / "sessions").glob("*.session")
    recording = Recording(rig, folder, done)
    recording.verb("collect", session)
    recording.check_whole()
    recording.check_against_the_device()


def plain_run_can_be_interrupted_after_its_command_has_ended(rig, folder):
    hold = " ".join(map(str, [rig.build / "tests" / "devices" / "hold", "input", "0:100"]))
    script = f"exec 3<&0; {hold} <&3 >held & until [ -s held ]; do sleep 0.01; done; cat held"
    for number in (signal.SIGINT, signal.SIGTERM):
        there = folder / number.name
        (there / "sessions").mkdir(parents=True, mode=0o700)
        run = subprocess.Popen(
            [rig.program, "run", "-o", str(there / "run.gmt"), "--",
             *rig.simulated(["/bin/sh", "-c", script])],
            env=rig.environment(there, {}), cwd=there, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        held = json.loads(run.stdout.readline())
        children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children")
        wait_for("the command to end", lambda: not children.read_text())
        keeps_waiting(run)
        run.send_signal(number)
        assert run.wait(timeout=HANG_S) == 128 + number, run.returncode
        assert not list((there / "sessions").glob("*.run")), "the log of the run is left"
        run.communicate(timeout=HANG_S)  # ends the input of the background process
        recording = Recording(rig, there, run)
        wait_for("the recording to be complete", lambda: not list((there / "sessions").glob("*.session")))
        info = recording.check_whole()
        assert info["target"]["pid"] == held["pid"] and info["events"]["alloc"] == 2, info


def plain_exit_code_is_the_programs_where_stderr_is_full(rig, folder):
    traced = " ".join(rig.simulated(rig.driver_alloc()))
    done = subprocess.run(
        f"{rig.program} run -o {folder}/run.gmt -- {traced} >/dev/null 2>/dev/full",
        env=rig.environment(folder, {}),
        shell=True,
        check=False,
    )
    assert done.returncode == 0, done.returncode


def plain_second_process_of_a_run_has_its_own_file(rig, folder):
    alloc = " ".join(map(str, rig.driver_alloc("--threads", "1", "--count", "10")))
    recording = rig.run(folder, ["/bin/sh", "-c", f"{alloc} && {alloc}"])
    files = sorted(folder.glob("run*.gmt"))
    assert len(files) == 2, files
    pids = {recording.info(f)["target"]["pid"] for f in files}
    assert len(pids) == 2
    assert all(f"process {pid}: " in recording.done.stderr for pid in pids), recording.done.stderr


def plain_process_that_failed_is_reported_in_full(rig, folder):
    big = " ".join(map(str, rig.driver_alloc("--count", "400")))
    failing = " ".join(map(str, rig.driver_alloc("--count", "5")))
    script = f"{big} && SIMCUDA_FAIL=cuMemFree_v2:1=700 {failing}"
    recording = rig.run(folder, ["/bin/sh", "-c", script])
    assert recording.done.returncode == 1, recording.done.returncode
    last = recording.done.stderr.strip().splitlines()[-1]
    failed = pathlib.Path(last.removeprefix("Recording: "))
    assert recording.info(failed)["target"]["exit"]["code"] == 1, last


def plain_python_script_is_run_with_an_interpreter(rig, folder):
    script = folder / "train.py"
    script.write_text("import sys; print(sys.executable, *sys.argv)")
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name in ("python3", "other python"):
        (bin_folder / name).symlink_to(sys.executable)
    path = f"{bin_folder}:{os.environ['PATH']}"

    def output(command, **environment):
        done = rig.run(folder, [command, "-o", "x"], simulated=False, PATH=path, **environment).done
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert output("train.py") == f"{bin_folder}/python3 train.py -o x"
    named = str(bin_folder / "other python")
    assert output("train.py", GPUMEMTRACE_PYTHON=named) == f"{named} train.py -o x"
    # A script that can be executed chooses its interpreter, unless one is named.
    script.write_text("#!/bin/sh\necho shell $0 $* $GPUMEMTRACE_PYTHON.\n")
    script.chmod(0o755)
    assert output("./train.py") == "shell ./train.py -o x ."
    # What is not a file in this place is a command as before.
    missing = rig.run(folder, ["missing.py"], simulated=False).done
    assert missing.returncode == 127 and "missing.py: No such file" in missing.stderr, missing


def plain_later_run_never_overwrites(rig, folder):
    rig.run(folder, rig.driver_alloc("--count", "5"))
    before = (folder / "run.gmt").read_bytes()
    rig.run(folder, rig.driver_alloc("--count", "6"))
    assert (folder / "run.gmt").read_bytes() == before
    assert (folder / "run.1.gmt").exists()


def plain_driver_that_hands_out_our_own_hooks_does_not_recurse(rig, folder):
    recording = rig.run(
        folder,
        rig.driver_alloc("--threads", "2", "--count", "50"),
        LD_PRELOAD=str(rig.build / "simcuda-got" / "libcuda.so.1"),
    )
    recording.result()
    recording.check_whole()
    recording.check_against_the_device()


# ---- PyTorch ----------------------------------------------------------------------------------------


def check_training(recording):
    result = recording.result()
    recording.check_whole()
    recording.check_against_the_device()
    assert recording.peak() == result["max_memory_reserved"], (recording.peak(), result)
    return result


def torch_mlp(rig, folder):
    check_training(rig.run(folder, rig.torch("train_mlp.py", "--json")))


def torch_gpt(rig, folder):
    recording = rig.run(folder, rig.torch("train_gpt.py", "--json"))
    check_training(recording)
    info = recording.info()
    assert info["libraries"]["torch"].startswith("2."), info["libraries"]
    assert info["libraries"]["python"].startswith("3."), info["libraries"]
    assert info["libraries"]["cuda_runtime"], info["libraries"]
    rows = recording.report()["rows"]
    named = [f["function"] for row in rows for f in row["frames"] if f["function"]]
    assert any("at::native" in name for name in named), named[:20]


def torch_gpt_by_preload_alone(rig, folder):
    check_training(rig.preload(folder, rig.torch("train_gpt.py", "--json")))


def torch_gpt_with_expandable_segments(rig, folder):
    recording = rig.run(
        folder,
        rig.torch("train_gpt.py", "--json"),
        PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
    )
    check_training(recording)
    kinds = {line["kind"] for line in recording.events()}
    assert {"reserve", "create", "map"} <= kinds, kinds
    settings = recording.events()[0]["settings"]
    assert settings["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True", settings


def torch_gpt_with_the_async_allocator(rig, folder):
    recording = rig.run(
        folder,
        rig.torch("train_gpt.py", "--json"),
        PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync",
    )
    recording.result()
    recording.check_whole()
    recording.check_against_the_device()


def torch_out_of_memory(rig, folder):
    recording = rig.run(folder, rig.torch("oom.py", "--catch", "--json"), SIMCUDA_MEMORY="6G")
    recording.result()
    recording.check_whole()
    recording.check_against_the_device()
    info = recording.info()
    assert info["events"]["alloc_failed"] >= 1, info["events"]
    assert any(s["name"].startswith("oom-") for s in info["snapshots"]), info["snapshots"]
    at_oom = recording.report("--at", "oom")
    held = sum(h["live_bytes"] for d in at_oom["devices"] for h in d["heaps"] if d["index"] == 0)
    assert held >= 4 << 30, held


def torch_out_of_memory_that_ends_the_process(rig, folder):
    recording = rig.run(folder, rig.torch("oom.py"), SIMCUDA_MEMORY="6G")
    assert recording.done.returncode == 1
    assert "torch.OutOfMemoryError" in recording.done.stderr
    info = recording.check_whole()
    assert info["target"]["exit"]["code"] == 1, info["target"]


def torch_import_without_a_gpu_call_leaves_nothing(rig, folder):
    script = "import torch; torch.cuda.is_available(); torch.cuda.device_count()"
    recording = rig.run(folder, [rig.python, "-c", script])
    assert recording.done.returncode == 0, recording.done.stderr
    assert "no GPU call was made" in recording.done.stderr, recording.done.stderr
    assert not list(folder.glob("*.gmt"))


def torch_killed_in_the_middle(rig, folder):
    script = (
        "import os, signal, torch\n"
        "kept = [torch.empty(32 << 20, device='cuda', dtype=torch.uint8) for _ in range(4)]\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    recording = rig.run(folder, [rig.python, "-c", script])
    assert recording.done.returncode == 128 + signal.SIGKILL, recording.done.returncode
    info = recording.check_whole()
    exit = info["target"]["exit"]
    assert (exit["kind"], exit["code"]) == ("signalled", 9), exit
    assert recording.peak() == 128 * MIB, recording.peak()
    recording.check_against_the_device()


# ---- The runner -------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=("plain", "torch"))
    parser.add_argument("--python")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    python = find_python(args.python)
    rig = Rig(args.build.resolve(), python)
    cases = [
        (name, case)
        for name, case in globals().items()
        if name.startswith((args.part or "plain", args.part or "torch"))
        and callable(case)
        and (not args.names or name in args.names)
    ]
    if python is None and any(name.startswith("torch_") for name, _ in cases):
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")

    return run_cases(rig, cases)


if __name__ == "__main__":
    sys.exit(main())
