#!/usr/bin/env python3
"""Device properties and memory by process in recordings, compared with what CUDA reported to the program and with the
configured answers of the simulated machine's NVML.

Usage: devices_check.py [--build DIR] [--python PYTHON] [NAME...]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import MIB, ROOT, Rig, find_python, run_cases  # noqa: E402
from waiting import wait_for  # noqa: E402

GIB = 1 << 30


def clean(environment):
    """Removes variables under which this check itself may run."""
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GPUMEMTRACE_NVML"):
        os.environ.pop(name, None)
    return environment


def hold(rig, *words):
    return [rig.build / "tests" / "devices" / "hold", *map(str, words)]


def record(rig, folder, *words, **environment):
    recording = rig.run(folder, hold(rig, *words), **clean(environment))
    recording.check_whole()
    return recording


def record_until_sampled(rig, folder, *memory, **environment):
    """Records a program that holds memory until NVML has answered."""
    with rig.running(folder, hold(rig, "input", *memory), **clean(environment)) as recording:
        wait_for("a reading", lambda: any(e["kind"] == "sample" for e in recording.events_so_far()), pause_s=0.1)
    recording.check_whole()
    return recording


def shared(folder, **more):
    return {"SIMCUDA_SHARED": str(folder / "shared"), "SIMCUDA_DEVICES": "4", **more}


def scripted(folder, *lines, **more):
    (folder / "script").write_text("\n".join(lines) + "\n")
    return shared(folder, SIMCUDA_NVML=str(folder / "script"), **more)


def samples(recording, device=None, source="nvml"):
    return [e for e in recording.events() if e["kind"] == "sample" and e["source"] == source
            and device in (None, e["device"])]


def exit_samples(recording):
    snapshots = [e for e in recording.events() if e["kind"] == "live_set" and e["name"] == "exit"]
    assert len(snapshots) == 1, snapshots
    return {(s["device"], s["source"]): s for s in snapshots[0].get("samples", [])}


def holds_of(sample):
    return {p["pid"]: p.get("bytes") for p in sample.get("processes", [])}


def physical_index_of(device):
    return int(device["pci_bus_id"].split(":")[1], 16) - 1


def devices_are_those_that_cuda_names_whatever_their_order(rig, folder):
    uuid = "GPU-{:02x}2d7369-6d75-6c61-7465-642d67707500"
    orders = {
        "as they are": {},
        "numbers": {"CUDA_VISIBLE_DEVICES": "3,1"},
        "UUIDs": {"CUDA_VISIBLE_DEVICES": f"{uuid.format(0x32)},{uuid.format(0x30)}"},
        "how UUIDs begin": {"CUDA_VISIBLE_DEVICES": "GPU-31,GPU-33"},
        "fastest first": {"SIMCUDA_ORDER": "2,3,0,1"},
        "fastest first, by bus": {"SIMCUDA_ORDER": "2,3,0,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        "fastest first, numbers": {"SIMCUDA_ORDER": "2,3,0,1", "CUDA_VISIBLE_DEVICES": "1,3"},
    }
    for name, order in orders.items():
        place = folder / name.replace(" ", "-").replace(",", "")
        (place / "sessions").mkdir(parents=True, mode=0o700)
        recording = record(rig, place, 100, "0:100", "1:60", **shared(place, **order))
        reported = {d["index"]: d for d in recording.result()["devices"]}
        info = recording.info()
        assert info["sources"]["nvml"] == "on", info["sources"]
        assert [d["index"] for d in info["devices"]] == [0, 1], info["devices"]
        for device in info["devices"]:
            mine = reported[device["index"]]
            assert (device["uuid"], device["pci_bus_id"]) == (mine["uuid"], mine["pci_bus_id"]), (name, device, mine)
            assert device["physical_index"] == physical_index_of(mine), (name, device)
            assert device["name"] == "Simulated CUDA device" and device["total_bytes"] == 24 * GIB, device
            assert device["compute_capability"] == "8.0", device
        for index, held in ((0, 100 * MIB), (1, 60 * MIB)):
            sample = exit_samples(recording)[index, "nvml"]
            pid = recording.result()["pid"]
            assert holds_of(sample) == {pid: held} and sample["used_bytes"] == held, (name, sample)


def memory_of_other_processes_is_seen_with_their_names(rig, folder):
    environment = shared(folder)
    other = subprocess.Popen(rig.simulated(hold(rig, "input", "1:512")), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=rig.environment(folder, clean(environment)))
    try:
        other_pid = json.loads(other.stdout.readline())["pid"]
        recording = record(rig, folder, 200, "0:100", **{**environment, "CUDA_VISIBLE_DEVICES": "1"})
    finally:
        other.kill()
        other.wait()
    sample = exit_samples(recording)[0, "nvml"]
    assert holds_of(sample) == {recording.result()["pid"]: 100 * MIB, other_pid: 512 * MIB}, sample
    assert {p["name"] for p in sample["processes"]} == {"hold"}, sample
    assert sample["used_bytes"] == 612 * MIB, sample


def process_that_comes_and_goes_is_a_sample_each_time(rig, folder):
    environment = shared(folder)
    with rig.running(folder, hold(rig, "input", "0:100"), **clean(environment)) as recording:
        other = subprocess.Popen(rig.simulated(hold(rig, "input", "0:512")), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True, env=rig.environment(folder, environment))
        other_pid = json.loads(other.stdout.readline())["pid"]

        def is_there():
            readings = [e for e in recording.events_so_far() if e["kind"] == "sample" and e["source"] == "nvml"]
            return bool(readings) and other_pid in holds_of(readings[-1])

        wait_for("a reading with the other process", is_there, pause_s=0.1)
        other.stdin.close()
        assert other.wait() == 0
        wait_for("a reading without it", lambda: not is_there(), pause_s=0.1)
    assert recording.done.returncode == 0, recording.done
    readings = samples(recording, 0)
    seen = [other_pid in holds_of(s) for s in readings]
    changes = [b for a, b in zip([None] + seen, seen) if a != b]
    assert changes in ([False, True, False], [True, False]), seen
    # Samples without changes are not in the file, except at the end.
    reported = [(s["used_bytes"], holds_of(s)) for s in readings]
    assert sum(a == b for a, b in zip(reported, reported[1:])) <= 1, reported


def absent_nvml_is_reported_and_the_program_own_query_is_used(rig, folder):
    recording = record(rig, folder, "--ask", 100, "0:100", **shared(folder, GPUMEMTRACE_NVML=str(folder / "none")))
    source = recording.info()["sources"]["nvml"]
    assert source.startswith("off: ") and "none" in source and "from the program's own queries" in source, source
    assert samples(recording) == []
    reported = samples(recording, 0, "cudaMemGetInfo")
    assert reported and reported[-1]["used_bytes"] == 100 * MIB, reported
    assert list(exit_samples(recording)) == [(0, "cudaMemGetInfo")], exit_samples(recording)
    device = recording.info()["devices"][0]
    assert device["name"] == "Simulated CUDA device" and device["uuid"].startswith("GPU-"), device
    assert device["physical_index"] is None, device


def nvml_may_be_switched_off(rig, folder):
    recording = record(rig, folder, 100, "0:100", **shared(folder, GPUMEMTRACE_NVML="off"))
    assert recording.info()["sources"]["nvml"] == "off: GPUMEMTRACE_NVML=off", recording.info()["sources"]
    assert samples(recording) == []


def machine_unknown_to_nvml_is_reported(rig, folder):
    """Each process has its own simulated device: NVML of another one finds no driver."""
    recording = record(rig, folder, 2000, "0:100")
    assert recording.info()["sources"]["nvml"] == "off: NVML says: Driver Not Loaded", recording.info()["sources"]


def nvml_is_found_beside_the_driver_or_where_the_variable_says(rig, folder):
    recording = record_until_sampled(rig, folder, "0:100", **shared(folder))
    assert recording.info()["sources"]["nvml"] == "on"
    for number, place in enumerate((rig.build / "simcuda", rig.build / "simcuda" / "libnvidia-ml.so.1")):
        where = folder / str(number)
        (where / "sessions").mkdir(parents=True, mode=0o700)
        recording = record_until_sampled(rig, where, "0:100", **shared(where, GPUMEMTRACE_NVML=str(place)))
        assert recording.info()["sources"]["nvml"] == "on", (place, recording.info()["sources"])


def slow_nvml_delays_neither_program_nor_recording(rig, folder):
    """During one slow query, more calls are made than a small ring holds, but slowly enough for a reader that does not
    wait for the query."""
    environment = scripted(folder, "latency * 20s", GPUMEMTRACE="ring=1MiB")
    command = rig.driver_alloc("--threads", "2", "--count", "6000", "--pause", "200")
    recording = rig.run(folder, command, **clean(environment))
    recording.check_whole()
    recording.check_against_the_device()


def refusals_are_no_failures(rig, folder):
    cases = {
        "process lists": (["error nvmlDeviceGetComputeRunningProcesses_v3 4",
                           "error nvmlDeviceGetComputeRunningProcesses_v2 4",
                           "error nvmlDeviceGetComputeRunningProcesses 4"], "on"),
        "new forms": (["error nvmlDeviceGetMemoryInfo_v2 13"], "on"),
        "memory": (["error nvmlDeviceGetMemoryInfo_v2 3", "error nvmlDeviceGetMemoryInfo 3"],
                   "off: GPU 0: NVML says: Not Supported"),
        "start": (["error nvmlInit_v2 18"], "off: NVML says: Driver/library version mismatch"),
        "device": (["error nvmlDeviceGetHandleByUUID 6"], "off: GPU 0: NVML does not know it"),
    }
    for name, (lines, source) in cases.items():
        place = folder / name.replace(" ", "-").replace(",", "")
        (place / "sessions").mkdir(parents=True, mode=0o700)
        recording = record(rig, place, 100, "0:100", **scripted(place, *lines))
        assert recording.info()["sources"]["nvml"] == source, (name, recording.info()["sources"])
        for sample in samples(recording):
            assert ("processes" in sample) == (name == "new forms"), (name, sample)
            assert ("reserved_bytes" in sample) == (name != "new forms"), (name, sample)


def process_with_unreported_memory_keeps_it_unknown(rig, folder):
    recording = record(rig, folder, 100, "0:100",
                       **scripted(folder, "device 0 reserved=600M process=4000001:- process=4000002:2G"))
    sample = exit_samples(recording)[0, "nvml"]
    held = holds_of(sample)
    assert held[4000001] is None and held[4000002] == 2 * GIB, sample
    assert sample["reserved_bytes"] == 600 * MIB, sample
    assert sample["used_bytes"] == 2 * GIB + 700 * MIB, sample


def instance_of_a_device_has_its_own_memory(rig, folder):
    """To NVML, the device that CUDA shows is an instance of the machine's device 2 (MIG)."""
    digits = "302d7369-6d75-6c61-7465-642d67707500"
    environment = scripted(folder, f"device 2/1 uuid=MIG-{digits} total=10G used=1G",
                           "error nvmlDeviceGetHandleByUUID 6 times=1")
    recording = record(rig, folder, 100, "0:100", **environment)
    device = recording.info()["devices"][0]
    assert device["uuid"] == f"MIG-{digits}" and device["physical_index"] == 2, device
    assert exit_samples(recording)[0, "nvml"]["total_bytes"] == 10 * GIB


def refused_allocation_has_a_sample_of_that_moment(rig, folder):
    environment = scripted(folder, "device 0 process=4000001:20G",
                           SIMCUDA_FAIL="cuMemAlloc_v2:2=2")
    with rig.running(folder, hold(rig, "input", "0:100"), **clean(environment)) as recording:
        wait_for("a first reading", lambda: any(e["kind"] == "sample" for e in recording.events_so_far()), pause_s=0.1)
    snapshots = [e for e in recording.events() if e["kind"] == "live_set" and e["reason"] == "oom"]
    assert len(snapshots) == 1, snapshots
    sample = snapshots[0]["samples"][0]
    assert sample["source"] == "nvml" and holds_of(sample)[4000001] == 20 * GIB, sample


def report_compares_what_is_recorded_with_what_the_device_says(rig, folder):
    """200 MiB of a process are recorded, which holds 300 MiB more in its context; another process holds 2 GiB."""
    recording = record(rig, folder, 100, "0:200",
                       **scripted(folder, "device 0 reserved=512M process=4000001:2G", SIMCUDA_CONTEXT="300M"))
    use, = recording.report()["devices"][0]["device_use"]
    assert use["source"] == "nvml" and use["samples"] >= 1, use
    last = {key: use["last"][key] // MIB for key in use["last"] if key not in ("t_ns", "total_bytes")}
    assert last == {"recorded_bytes": 200, "process_bytes": 500, "others_bytes": 2048, "used_bytes": 3060,
                    "reserved_bytes": 512, "free_bytes": 24 * 1024 - 3060}, use
    text = recording.verb("report", recording.path)
    assert "nvml: 2.99 GiB of 24.0 GiB used at" in text, text
    assert "this process 500 MiB, recorded 200 MiB; other processes 2.00 GiB" in text, text


def report_knows_size_and_name_of_the_device(rig, folder):
    recording = record(rig, folder, 100, "0:700", **shared(folder, SIMCUDA_MEMORY="1G"))
    device = recording.report()["devices"][0]
    assert device["name"] == "Simulated CUDA device" and device["total_bytes"] == GIB, device
    for limit, code in (("80%", 0), ("60%", 3)):
        # 700 MiB and a second allocation of the same size, which fails
        done = subprocess.run([rig.program, "report", "--fail-above", limit, recording.path],
                              capture_output=True, text=True)
        assert done.returncode == code, (limit, done.returncode, done.stderr)


ASK_NVML = """
import json
import pynvml as nvml
nvml.nvmlInit()
devices = []
for index in range(nvml.nvmlDeviceGetCount()):
    device = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(device, version=nvml.nvmlMemory_v2)
    devices.append({
        "uuid": nvml.nvmlDeviceGetUUID(device), "bus": nvml.nvmlDeviceGetPciInfo(device).busId,
        "index": nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(device))),
        "free": memory.free, "used": memory.used, "reserved": memory.reserved,
        "used_and_reserved": nvml.nvmlDeviceGetMemoryInfo(device).used,
        "processes": {p.pid: p.usedGpuMemory for p in nvml.nvmlDeviceGetComputeRunningProcesses(device)}})
nvml.nvmlShutdown()
print(json.dumps(devices))
"""


def module_of_nvidia_reads_the_simulated_machine(rig, folder):
    """nvidia-ml-py, with its own structures and error codes."""
    environment = scripted(folder, "device 1 reserved=1G process=12:2G process=13:-",
                           SIMCUDA_DEVICES="2", CUDA_VISIBLE_DEVICES="1")
    done = subprocess.run(rig.simulated([rig.python, "-c", ASK_NVML]), capture_output=True, text=True,
                          env={**rig.environment(folder, {}), **environment})
    assert done.returncode == 0, done.stderr
    devices = json.loads(done.stdout)
    assert [d["index"] for d in devices] == [0, 1], devices
    assert [d["bus"] for d in devices] == ["00000000:01:00.0", "00000000:02:00.0"], devices
    assert devices[1]["uuid"] == "GPU-312d7369-6d75-6c61-7465-642d67707500", devices
    assert devices[0]["free"] == 24 * GIB and devices[0]["processes"] == {}, devices
    assert devices[1]["used"] == 2 * GIB and devices[1]["reserved"] == GIB, devices
    assert devices[1]["used_and_reserved"] == 3 * GIB and devices[1]["free"] == 21 * GIB, devices
    assert devices[1]["processes"] == {"12": 2 * GIB, "13": None}, devices


def has_module(python):
    return python is not None and subprocess.run([python, "-c", "import pynvml"],
                                                 stderr=subprocess.DEVNULL).returncode == 0


CASES = [
    devices_are_those_that_cuda_names_whatever_their_order,
    memory_of_other_processes_is_seen_with_their_names,
    process_that_comes_and_goes_is_a_sample_each_time,
    absent_nvml_is_reported_and_the_program_own_query_is_used,
    nvml_may_be_switched_off,
    machine_unknown_to_nvml_is_reported,
    nvml_is_found_beside_the_driver_or_where_the_variable_says,
    slow_nvml_delays_neither_program_nor_recording,
    refusals_are_no_failures,
    process_with_unreported_memory_keeps_it_unknown,
    instance_of_a_device_has_its_own_memory,
    refused_allocation_has_a_sample_of_that_moment,
    report_compares_what_is_recorded_with_what_the_device_says,
    report_knows_size_and_name_of_the_device,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--python", help="a Python with nvidia-ml-py; without it that case is skipped")
    args = parser.parse_args()
    python = find_python(args.python)
    if has_module(python):
        CASES.append(module_of_nvidia_reads_the_simulated_machine)
    else:
        print("skipped: no Python with nvidia-ml-py; scripts/setup --test installs it")
    cases = [(case.__name__, case) for case in CASES if not args.names or case.__name__ in args.names]
    return run_cases(Rig(args.build.resolve(), python), cases)


if __name__ == "__main__":
    sys.exit(main())
