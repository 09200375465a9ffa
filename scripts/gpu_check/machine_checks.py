"""Properties of the machine: driver, toolkit, kernel, and the output of doctor."""

import ctypes
import datetime
import json
import mmap
import os
import platform
import shutil
import subprocess
import sys

from .rig import PROGRAMS

ASK_TORCH = r"""
import ctypes, json, platform, torch
torch.cuda.init()
said = {"PyTorch": f"{torch.__version__} (CUDA {torch.version.cuda})", "Python": platform.python_version(),
        "device": torch.cuda.get_device_name(), "capability": "%d.%d" % torch.cuda.get_device_capability(),
        "memory": torch.cuda.get_device_properties(0).total_memory, "devices": torch.cuda.device_count(),
        "uuid": str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))}
driver = ctypes.CDLL("libcuda.so.1")
version = ctypes.c_int()
driver.cuDriverGetVersion(ctypes.byref(version))
said["driver API"] = version.value
for name in ("cudnn", "nccl"):
    try:
        said[name] = str(torch.backends.cudnn.version() if name == "cudnn" else torch.cuda.nccl.version())
    except Exception as error:
        said[name] = f"{type(error).__name__}"
loaded = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
words = ("cuda", "cudnn", "cublas", "cupti", "nvidia")
said["libraries"] = sorted(path for path in loaded if any(word in path for word in words))
print(json.dumps(said))
"""

# Compares, name by name, the results of dlsym with the function pointers that the driver returns.
ASK_POINTERS = r"""
import ctypes, json
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
names = [("cuMemAlloc", "cuMemAlloc_v2", 3020), ("cuMemFree", "cuMemFree_v2", 3020),
         ("cuMemAllocAsync", "cuMemAllocAsync", 11020), ("cuMemFreeAsync", "cuMemFreeAsync", 11020),
         ("cuMemCreate", "cuMemCreate", 10020), ("cuMemMap", "cuMemMap", 10020),
         ("cuMemHostAlloc", "cuMemHostAlloc", 2020), ("cuMemAllocManaged", "cuMemAllocManaged", 6000),
         ("cuLaunchKernel", "cuLaunchKernel", 4000), ("cuStreamSynchronize", "cuStreamSynchronize", 2000),
         ("cuGetProcAddress", "cuGetProcAddress_v2", 12000), ("cuMemGetInfo", "cuMemGetInfo_v2", 3020)]
same, other = [], []
for name, symbol, version in names:
    found, status = ctypes.c_void_p(), ctypes.c_int()
    result = driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), version, ctypes.c_uint64(0),
                                        ctypes.byref(status))
    exported = ctypes.cast(getattr(driver, symbol), ctypes.c_void_p).value
    (same if result == 0 and found.value == exported else other).append(symbol)
print(json.dumps({"same": same, "other": other}))
"""


def ask_torch(rig):
    """Returns PyTorch's description of the machine. Ends the script if there is none: nothing could be checked then."""
    done = rig.run(rig.on_device([rig.python, "-c", ASK_TORCH]), seconds=120, fails=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.code != 0 or not lines:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        sys.exit(f"gpu-check: {rig.python} has no PyTorch that can use a GPU here ({reason}).\n"
                 "Select another with --python, or test this script with --simulated BUILD_DIR.")
    return json.loads(lines[-1])


def versions(rig, table, facts):
    smi = shutil.which("nvidia-smi")
    asked = rig.run([smi, "--query-gpu=name,driver_version,memory.total,memory.used,mig.mode.current,compute_mode,"
                     "pci.bus_id,uuid", "--format=csv,noheader"], fails=True) if smi and not rig.simulated else None
    if asked is None:
        table.absent("nvidia-smi", "no nvidia-smi" if not smi else "on the simulated device")
    else:
        table.note("nvidia-smi", asked.stdout.strip() or asked.stderr.strip())
    nvcc = rig.nvcc()
    if nvcc:
        table.note("nvcc", rig.run([nvcc, "--version"], fails=True).stdout.strip().splitlines()[-1])
    else:
        table.absent("nvcc", "no nvcc")
    said = dict(rig.machine)
    table.keep("libraries", said.pop("libraries"))
    for name, value in said.items():
        table.note(name, value)
    version = rig.run([rig.program, "--version"]).stdout.strip()
    kernel = f"{platform.system()} {platform.release()}"
    table.note("kernel", f"{kernel}, glibc {platform.libc_ver()[1]}, {os.cpu_count()} processors"
               + (", gVisor" if _is_gvisor() else ""))
    facts.update({"date": datetime.date.today().isoformat(), "product": version, "device": f"{said['device']}, {said['memory'] >> 20} MiB",
                  "driver": (asked.stdout.split(",")[1].strip() if asked and asked.stdout.count(",") > 2 else "unknown")
                  + f" (API {said['driver API']})",
                  "PyTorch": said["PyTorch"], "Python": said["Python"], "kernel": kernel})
    if rig.simulated:
        facts["device"] += " - SIMULATED: this tests the checks, not a GPU"


def _is_gvisor():
    try:
        with open("/proc/version", encoding="ascii", errors="replace") as version:
            return "gVisor" in version.read() or platform.release() == "4.4.0"
    except OSError:
        return False


def devices(rig, table):
    """The device data in the recording equals that of PyTorch and NVML; NVML is read during the run."""
    run = rig.record("devices", [rig.python, PROGRAMS / "on_gpu" / "copies.py"], seconds=60,
                     SIMCUDA_SHARED=str(rig.folder / "shared"))
    info = run.info()
    table.note("source of device usage", info["sources"].get("nvml") or "not recorded")
    if not info["devices"]:
        table.fail("devices of the recording", "none", "one")
        return
    device, torch = info["devices"][0], rig.machine
    table.keep("device", device)
    table.expect("name of the device", device.get("name"), torch["device"])
    table.expect_bytes("its memory", device.get("total_bytes"), torch["memory"], within=1 << 20)
    table.expect("its UUID", device.get("uuid"), f"GPU-{torch['uuid']}",
                 ok=torch["uuid"] and torch["uuid"] in str(device.get("uuid")))
    table.note("its index in NVML", f"{device.get('physical_index')}, {device.get('pci_bus_id')}, "
               f"compute capability {device.get('compute_capability')}")
    samples = [e for e in run.of_kind("sample") if e.get("source") == "nvml"]
    table.keep("samples", samples[:5])
    if not info["sources"].get("nvml", "").startswith("on"):
        table.absent("samples of NVML", info["sources"].get("nvml"))
        return
    at_most = max((e["used_bytes"] for e in samples), default=0)
    table.expect("device usage by NVML covers the recorded memory", f"at most {at_most} B, {len(samples)} samples",
                 f"at least {32 << 20} B", ok=at_most >= 32 << 20)
    listed = [e for e in samples if "processes" in e]
    table.note("processes listed by NVML", f"at most {max((len(e['processes']) for e in listed), default=0)}"
               if listed else "not available")


def doctor(rig, table):
    done = rig.run([rig.program, "doctor"], fails=True, seconds=60)
    table.keep("doctor", done.stdout)
    table.expect("gpumemtrace doctor", f"exit code {done.code}", "exit code 0")
    for line in done.stdout.splitlines():
        if line.strip():
            table.note("doctor", line.strip())


def driver_pointers(rig, table):
    """Runs without recording, because that replaces function pointers on purpose."""
    said = json.loads(rig.plain([rig.python, "-c", ASK_POINTERS]).stdout.strip().splitlines()[-1])
    table.note("cuGetProcAddress returns the exported function", f"{len(said['same'])} of "
               f"{len(said['same']) + len(said['other'])}; others: {', '.join(said['other']) or 'none'}")


# ---- Kernel features that the product uses if available ------------------------------------------

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _memfd():
    os.close(os.memfd_create("probe", os.MFD_CLOEXEC))


def _tmpfile():
    folder = "/dev/shm"
    name = f"{folder}/gpumemtrace-probe-{os.getpid()}"
    file = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        at_fdcwd, at_symlink_follow = -100, 0x400
        source = f"/proc/self/fd/{file}".encode()
        _checked(_libc.linkat(at_fdcwd, source, at_fdcwd, name.encode(), at_symlink_follow))
        os.unlink(name)
    finally:
        os.close(file)
    return f"in {folder}, {shutil.disk_usage(folder).free >> 20} MiB free"


def _wipe_on_fork():
    with mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as page:
        page.madvise(18)


def _pidfd():
    os.close(os.pidfd_open(os.getpid()))


def _read_other_process():
    child = subprocess.Popen(["sleep", "60"])
    try:
        fields = {"_fields_": [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]}
        vector = type("iovec", (ctypes.Structure,), fields)
        with open(f"/proc/{child.pid}/maps", encoding="ascii", errors="replace") as maps:
            address = int(maps.readline().split("-")[0], 16)
        buffer = ctypes.create_string_buffer(16)
        here, there = vector(ctypes.addressof(buffer), 16), vector(address, 16)
        _checked(_libc.process_vm_readv(child.pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
    finally:
        child.kill()
        child.wait()


def _detached_clone():
    """Uses the flags with which the collector is started: no wait() of the target sees the child."""
    stack = ctypes.create_string_buffer(1 << 16)
    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    done = ctypes.cast(_libc._exit, ctypes.c_void_p)
    clone_vm, clone_vfork, clone_untraced, wait_clone = 0x100, 0x4000, 0x800000, 0x80000000
    top = (ctypes.addressof(stack) + len(stack)) & ~15
    flags = clone_vm | clone_vfork | clone_untraced
    child = _checked(_libc.clone(ctypes.cast(done, entry), ctypes.c_void_p(top), flags, None))
    _checked(_libc.waitpid(child, None, ctypes.c_int(wait_clone - (1 << 32))))


def kernel(rig, table):
    for what, probe in (
        ("memfd_create", _memfd), ("O_TMPFILE and linkat", _tmpfile), ("MADV_WIPEONFORK", _wipe_on_fork),
        ("pidfd_open", _pidfd), ("process_vm_readv of a child", _read_other_process),
        ("clone invisible to wait()", _detached_clone),
    ):  # fmt: skip
        try:
            table.note(what, probe() or "works")
        except (OSError, AttributeError, ValueError) as error:
            table.absent(what, str(error))
