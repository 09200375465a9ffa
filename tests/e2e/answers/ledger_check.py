#!/usr/bin/env python3
"""`gpumemtrace ledger` on programs that report themselves who holds which bytes.

Usage: ledger_check.py --build DIR [--python PYTHON] [NAME...]
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import MIB, main_of_cases  # noqa: E402
from waiting import wait_for  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
CONTEXT = 300 * MIB
PAGE = 2 * MIB
FOR_LONG = 2_000_000  # ms, for a process that is killed before


def environment(folder, **more):
    return {"SIMCUDA_SHARED": str(folder / "shared"), "SIMCUDA_CONTEXT": "300M", "SIMCUDA_HANDLE": "8M",
            "SIMCUDA_DATA": "1M", "TORCH_DIST_INIT_BARRIER": "0", **more}


def hold(rig, *words):
    return [rig.build / "tests" / "devices" / "hold", *map(str, words)]


def rows_of(ledger):
    rows = {}
    for row in ledger["rows"]:
        rows[row["name"]] = rows.get(row["name"], 0) + row["bytes"]
    return rows


def check_sum(ledger):
    for device in [ledger, *ledger["devices"]]:
        total = sum(row["bytes"] for row in device["rows"]) + device["unexplained_bytes"]
        assert total == device["driver_used_bytes"], device


def wait_for_use(recording, used_bytes):
    """Waits until the driver was queried while that much was in use."""
    wait_for(f"a sample of {used_bytes}", lambda: any(
        event["kind"] == "sample" and event["source"] == "nvml" and event["used_bytes"] == used_bytes
        for event in recording.events_so_far()), pause_s=0.1)


def check_all_holders(ledger, reported):
    """Compares every row with the program's measurements around its own calls."""
    check_sum(ledger)
    rows = rows_of(ledger)
    assert rows["live blocks"] == reported["allocated"], (rows, reported)
    reserved = sum(r["bytes"] for r in ledger["rows"] if r["group"] == "reserved")
    assert reserved == reported["reserved"], (rows, reported)
    assert rows["cached"] >= 64 * MIB and rows["holes"] >= 5 * MIB, rows
    assert rows["cuBLAS"] == reported["cublas"] > 0, (rows, reported)
    assert rows["other allocations"] == reported["own"], (rows, reported)
    # The driver allocates pages of 2 MiB; the unrequested part of them counts as context.
    assert reported["nccl"] - 4 * PAGE < rows["NCCL"] <= reported["nccl"], (rows, reported)
    rounding = reported["nccl"] - rows["NCCL"]
    assert rows["contexts and modules"] - rounding == reported["context"] == CONTEXT, (rows, reported)


def rows_are_what_the_program_measured(rig, folder):
    with rig.running(folder, [rig.python, HERE / "all_holders.py"], **environment(folder)) as recording:
        reported = recording.reported  # it ends in this state, so the driver must be queried before
        wait_for_use(recording, reported["used"])
    ledger = json.loads(recording.verb("ledger", "--json", "--at", "end", recording.path))
    assert ledger["source"] == "nvml" and ledger["unexplained_bytes"] == 0, ledger
    assert ledger["driver_used_bytes"] == reported["used"], (ledger, reported)
    check_all_holders(ledger, reported)


def other_processes_have_rows_of_their_own(rig, folder):
    where = environment(folder)
    other = subprocess.Popen(rig.simulated(hold(rig, FOR_LONG, "0:512")), stdout=subprocess.PIPE, text=True,
                             env=rig.environment(folder, where))
    try:
        other_pid = json.loads(other.stdout.readline())["pid"]
        recording = rig.run(folder, hold(rig, 1500, "0:100"), **where)
    finally:
        other.kill()
        other.wait()
    ledger = json.loads(recording.verb("ledger", "--json", "--at", "end", recording.path))
    check_sum(ledger)
    rows = rows_of(ledger)
    assert rows[f"process {other_pid}"] == 512 * MIB + CONTEXT, rows
    assert rows["contexts and modules"] == CONTEXT and rows["other allocations"] == 100 * MIB, rows
    text = recording.verb("ledger", "--at", "end", recording.path)
    assert text.startswith("GPU 0 uses 1.18 GiB: 400 MiB its own, 812 MiB others; all explained\n"), text


def running_process_is_asked_by_its_number(rig, folder):
    where = rig.environment(folder, environment(folder))
    traced = subprocess.Popen(
        [rig.program, "run", "--quiet", "-o", str(folder / "run.gmt"), "--",
         *rig.simulated([rig.python, HERE / "all_holders.py"])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=where, cwd=folder)
    reported = json.loads(traced.stdout.readline())
    ledger = done = None

    def is_all_known():
        nonlocal ledger, done
        done = subprocess.run([rig.program, "ledger", "--json", str(reported["pid"])], capture_output=True,
                              text=True, env=where, check=False)
        ledger = json.loads(done.stdout) if done.returncode == 0 else {}
        return ledger.get("driver_used_bytes") == reported["used"] and ledger["unexplained_bytes"] == 0

    wait_for(lambda: (done.stderr, ledger, reported), is_all_known, pause_s=0.3)
    traced.stdin.close()
    assert ledger["live"], ledger
    check_all_holders(ledger, reported)
    assert traced.wait() == 0


def process_without_a_session_is_reported(rig, folder):
    done = subprocess.run([rig.program, "ledger", "999999999"], capture_output=True, text=True,
                          env=rig.environment(folder, {}), check=False)
    assert done.returncode == 1 and "has no session" in done.stderr, done


def without_nvml_the_program_own_question_is_used(rig, folder):
    recording = rig.run(folder, hold(rig, "--ask", 100, "0:100"),
                        **environment(folder, GPUMEMTRACE_NVML="off"))
    ledger = json.loads(recording.verb("ledger", "--json", "--at", "end", recording.path))
    check_sum(ledger)
    assert ledger["source"] == "cudaMemGetInfo", ledger
    assert ledger["driver_used_bytes"] == 100 * MIB + CONTEXT, ledger
    assert rows_of(ledger)["contexts and others"] == CONTEXT, ledger


def without_any_reading_it_is_at_least_what_is_recorded(rig, folder):
    recording = rig.run(folder, hold(rig, 100, "0:100"), **environment(folder, GPUMEMTRACE_NVML="off"))
    text = recording.verb("ledger", "--at", "end", recording.path)
    assert text.startswith("GPU 0 uses at least 100 MiB"), text
    assert "the driver was not queried" in text and "Not known: the driver's figures" in text, text


def memory_that_no_call_of_ours_takes_is_unexplained(rig, folder):
    """Memory usage reported by NVML increases from the fifth query on, without an allocation."""
    (folder / "script").write_text("device 0 used=1G\ndevice 0 from=5 used=3G\n")
    with rig.running(folder, hold(rig, "input", "0:100"),
                     **environment(folder, SIMCUDA_NVML=str(folder / "script"))) as recording:
        wait_for_use(recording, 3 << 30)
    ledger = json.loads(recording.verb("ledger", "--json", "--at", "end", recording.path))
    check_sum(ledger)
    assert ledger["unexplained_bytes"] == 3 * 1024 * MIB - 100 * MIB - CONTEXT, ledger
    assert ledger["unexplained_in_process_bytes"] == 0, ledger


CASES = [(function.__name__, function) for function in (
    rows_are_what_the_program_measured,
    other_processes_have_rows_of_their_own,
    running_process_is_asked_by_its_number,
    process_without_a_session_is_reported,
    without_nvml_the_program_own_question_is_used,
    without_any_reading_it_is_at_least_what_is_recorded,
    memory_that_no_call_of_ours_takes_is_unexplained,
)]

if __name__ == "__main__":
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GPUMEMTRACE_NVML"):
        os.environ.pop(name, None)
    sys.exit(main_of_cases(CASES, __doc__))
