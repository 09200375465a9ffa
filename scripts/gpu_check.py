"""The body of scripts/gpu-check, which says how to call it."""

import argparse
import ctypes
import datetime
import json
import mmap
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TRAIN = ROOT / "tests" / "programs" / "train_gpt.py"
SIZE = ["--layers", "12", "--hidden", "768", "--heads", "12", "--batch", "8", "--seq", "512"]
QUICK_SIZE = ["--layers", "2", "--hidden", "256", "--heads", "4", "--batch", "4", "--seq", "128"]

# Runs in the traced process: trains, then tells what PyTorch and the driver know about it.
PROBE = r"""
import contextlib, gc, io, json, runpy, sys, time
import torch
free_before, _ = torch.cuda.mem_get_info()
record = json.loads(sys.argv[1])
if record:
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=1 << 20)
program, sys.argv = sys.argv[2], sys.argv[2:]
started, started_processor = time.perf_counter(), time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    runpy.run_path(program, run_name="__main__")
torch.cuda.synchronize()
seconds = time.perf_counter() - started
processor_seconds = time.process_time() - started_processor
free_after, total = torch.cuda.mem_get_info()
gc.collect()
torch.cuda.empty_cache()
result = {
    "seconds": seconds, "processor_seconds": processor_seconds, "torch": torch.__version__, "cuda": torch.version.cuda,
    "device": torch.cuda.get_device_name(), "total": total,
    "used_by_run": free_before - free_after,
    "reserved": torch.cuda.memory_reserved(), "max_reserved": torch.cuda.max_memory_reserved(),
}
if record:
    traces = torch.cuda.memory._snapshot()["device_traces"]
    result["segments"] = [[e["action"], e["addr"], e["size"]] for trace in traces for e in trace
                          if e["action"].startswith("segment_")]
print("PROBE " + json.dumps(result))
"""

OK, DIFFERS, NOT_HERE, INFO = "ok", "DIFFERS", "not available here", ""


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, state, detail):
        self.rows.append((what, state, detail))
        print(f"{what:<52} {state:<19} {detail}", flush=True)

    def compare(self, what, ours, theirs, detail="both {}"):
        if ours == theirs:
            self.add(what, OK, detail.format(size(ours)))
        else:
            self.add(what, DIFFERS, f"recorded {size(ours)}, expected {size(theirs)}")

    def failed(self):
        return any(state == DIFFERS for _, state, _ in self.rows)


def size(value):
    if not isinstance(value, int):
        return str(value)
    return f"{value / (1 << 20):,.1f} MiB" if abs(value) >= 1 << 20 else f"{value} B"


class Rig:
    """The product, and how a command runs on the device."""

    def __init__(self, args):
        self.python = args.python
        places = [ROOT, args.simulated or ROOT / "build/release", ROOT / "build/dev"]  # a bundle, a build
        self.folder = next((f for f in places if (f / "bin/gpumemtrace").exists()), None)
        if self.folder is None:
            sys.exit("gpu-check: no bin/gpumemtrace beside this script. Make a bundle with: scripts/bundle DIR")
        self.program = str(self.folder / "bin" / "gpumemtrace")
        self.device = [str(args.simulated / "simcuda" / "with-simcuda")] if args.simulated else []
        self.size = QUICK_SIZE if args.quick else SIZE

    def command(self, history, steps):
        return [*self.device, self.python, "-c", PROBE, json.dumps(history), str(TRAIN), *self.size,
                "--steps", str(steps), "--device", "cuda"]

    def run(self, recording, history, steps, **environment):
        """Runs the probe, recorded if `recording` names a file, and returns what it told."""
        command = self.command(history, steps)
        if recording:
            command = [self.program, "run", "--quiet", "-o", str(recording), "--", *command]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
        lines = [l for l in done.stdout.splitlines() if l.startswith("PROBE ")]
        if done.returncode != 0 or not lines:
            sys.exit(f"gpu-check: this failed with exit code {done.returncode}:\n  {' '.join(command[:6])} ...\n"
                     + done.stderr[-3000:])
        return json.loads(lines[0][6:])

    def read(self, verb, *arguments):
        done = subprocess.run([self.program, verb, "--json", *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"gpu-check: {verb} failed with exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def events(self, recording):
        return [json.loads(line) for line in self.read("cat", recording).splitlines()]


def device_calls(events):
    """Recorded allocations and frees of device memory, as PyTorch names them."""
    names = {"alloc": "segment_alloc", "free": "segment_free"}
    sizes, calls = {}, []
    for event in events:
        if event["kind"] not in names or event.get("heap") != "driver":
            continue
        if event["kind"] == "alloc":
            if event.get("memory", "device") != "device":
                continue
            sizes[event["address"]] = event["size"]
        elif event["address"] not in sizes:
            continue
        bytes_ = sizes[event["address"]]
        if event["kind"] == "free":
            del sizes[event["address"]]
        calls.append([names[event["kind"]], event["address"], bytes_])
    return calls


def peak(calls):
    live = highest = 0
    for action, _, bytes_ in calls:
        live += bytes_ if action in ("segment_alloc", "segment_map") else -bytes_
        highest = max(highest, live)
    return highest, live


def check_totals(rig, table, folder, steps):
    recording = folder / "totals.gmt"
    told = rig.run(recording, True, steps)
    calls = device_calls(rig.events(recording))
    theirs = told["segments"]
    known = {address for _, address, _ in theirs}
    ours = [c for c in calls if c[1] in known]
    others = [c for c in calls if c[1] not in known]

    matching = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    if len(ours) == len(theirs) == matching:
        table.add("sequence of segments, as PyTorch's history", OK, f"{len(ours)} events, same addresses and sizes")
    else:
        table.add("sequence of segments, as PyTorch's history", DIFFERS,
                  f"{len(ours)} recorded, {len(theirs)} in the history, the first {matching} agree")
    ours_peak, ours_end = peak(ours)
    table.compare("peak, as max_memory_reserved()", ours_peak, told["max_reserved"])
    table.compare("after empty_cache(), as memory_reserved()", ours_end, told["reserved"])
    table.add("device memory of other libraries at its peak", INFO, f"{size(peak(others)[0])} in {len(others)} calls")

    report = json.loads(rig.read("report", recording))
    heap = next(h for d in report["devices"] if d["index"] is not None for h in d["heaps"] if h["heap"] == "driver")
    table.compare("the report's peak, as the sum of the events", heap["peak_live_bytes"], peak(calls)[0])
    losses = json.loads(rig.read("info", recording))["losses"]
    lost = sum(losses[k] for k in ("overrun", "holes", "abandoned", "backlog"))
    table.add("events lost", OK if lost == 0 else DIFFERS, f"{lost} of {losses['written']}")
    table.add("cuMemGetInfo over the run", INFO,
              f"{size(told['used_by_run'])} more used; {size(peak(calls)[0])} recorded at the peak; the rest is code, "
              "context and rounding")
    return told


def check_expandable(rig, table, folder, steps):
    recording = folder / "expandable.gmt"
    told = rig.run(recording, True, steps, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
                   PYTORCH_ALLOC_CONF="expandable_segments:True")
    if not any(action == "segment_map" for action, _, _ in told["segments"]):
        table.add("expandable segments", NOT_HERE, "PyTorch did not use them")
        return
    names = {"map": "segment_map", "unmap": "segment_unmap"}
    mapped, calls = {}, []
    for event in rig.events(recording):
        if event["kind"] == "map":
            mapped[event["address"]] = event["size"]
        if event["kind"] in names:
            calls.append([names[event["kind"]], event["address"], event.get("size") or mapped[event["address"]]])
    table.compare("expandable segments: peak, as max_memory_reserved()", peak(calls)[0], told["max_reserved"])
    for action in names.values():
        table.compare(f"expandable segments: sum of {action}", sum(c[2] for c in calls if c[0] == action),
                      sum(s[2] for s in told["segments"] if s[0] == action))


def check_time(rig, table, folder, steps, pairs):
    ratios = []
    for pair in range(pairs + 1):
        plain = rig.run(None, False, steps)["seconds"]
        traced = rig.run(folder / f"time-{pair}.gmt", False, steps)["seconds"]
        if pair > 0:  # the first pair warms caches
            ratios.append(traced / plain)
    table.add("training time with recording / without", INFO,
              f"median x{statistics.median(ratios):.3f} of {pairs} pairs of {steps} steps "
              f"(x{min(ratios):.3f} to x{max(ratios):.3f})")


def check_kernel(table):
    libc = ctypes.CDLL(None, use_errno=True)

    def probe(what, action):
        try:
            table.add(what, OK, action() or "")
        except (OSError, AttributeError, ValueError) as error:
            table.add(what, NOT_HERE, str(error))

    def checked(result):
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    def memfd():
        os.close(os.memfd_create("probe", os.MFD_CLOEXEC))

    def tmpfile():
        folder = "/dev/shm"
        name = f"{folder}/gpumemtrace-probe-{os.getpid()}"
        file = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        try:
            at_fdcwd, at_symlink_follow = -100, 0x400
            checked(libc.linkat(at_fdcwd, f"/proc/self/fd/{file}".encode(), at_fdcwd, name.encode(), at_symlink_follow))
            os.unlink(name)
        finally:
            os.close(file)
        return f"in {folder}, {shutil.disk_usage(folder).free >> 20} MiB free"

    def wipe_on_fork():
        with mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as page:
            page.madvise(18)

    def pidfd():
        os.close(os.pidfd_open(os.getpid()))

    def read_other_process():
        child = subprocess.Popen(["sleep", "60"])
        try:
            vector = type("iovec", (ctypes.Structure,), {"_fields_": [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]})
            with open(f"/proc/{child.pid}/maps") as maps:
                address = int(maps.readline().split("-")[0], 16)
            buffer = ctypes.create_string_buffer(16)
            here, there = vector(ctypes.addressof(buffer), 16), vector(address, 16)
            checked(libc.process_vm_readv(child.pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
        finally:
            child.kill()
            child.wait()

    def detached_clone():
        # The flags with which the collector is started: no wait() and no SIGCHLD handler of the target sees the child.
        stack = ctypes.create_string_buffer(1 << 16)
        entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        done = ctypes.cast(libc._exit, ctypes.c_void_p)
        clone_vm, clone_vfork, clone_untraced, wait_clone = 0x100, 0x4000, 0x800000, 0x80000000
        top = (ctypes.addressof(stack) + len(stack)) & ~15
        child = checked(libc.clone(ctypes.cast(done, entry), ctypes.c_void_p(top),
                                   clone_vm | clone_vfork | clone_untraced, None))
        checked(libc.waitpid(child, None, ctypes.c_int(wait_clone - (1 << 32))))

    probe("kernel: memfd_create", memfd)
    probe("kernel: O_TMPFILE and linkat", tmpfile)
    probe("kernel: MADV_WIPEONFORK", wipe_on_fork)
    probe("kernel: pidfd_open", pidfd)
    probe("kernel: process_vm_readv of a child", read_other_process)
    probe("kernel: clone that no wait() sees", detached_clone)


def driver_version():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True)
        return done.stdout.split("\n")[0].strip() or "unknown"
    except OSError:
        return "unknown (no nvidia-smi)"


def write_page(path, table, told, rig):
    version = subprocess.run([rig.program, "--version"], capture_output=True, text=True).stdout.strip()
    lines = ["# On a real GPU", "",
             "What only a machine with a GPU can show. Made by:", "", "    scripts/gpu-check", "",
             f"- {datetime.date.today().isoformat()}, {version}",
             f"- {told['device']}, {size(told['total'])}, driver {driver_version()}",
             f"- PyTorch {told['torch']} (CUDA {told['cuda']}), Python {platform.python_version()}, "
             f"Linux {platform.release()}", "",
             "| what | result | |", "|---|---|---|"]
    lines += [f"| {what} | {state or '-'} | {detail} |" for what, state, detail in table.rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    print(f"\nWritten to {path}")


def main():
    parser = argparse.ArgumentParser(prog="gpu-check", description="See the top of scripts/gpu-check.")
    parser.add_argument("--python", default=os.environ.get("GMT_TORCH_PYTHON") or "python3")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs" / "gpu.md")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--simulated", type=pathlib.Path, metavar="BUILD_DIR")
    args = parser.parse_args()
    if args.simulated:
        args.simulated = args.simulated.resolve()

    rig = Rig(args)
    probe = subprocess.run([*rig.device, rig.python, "-c", "import torch; torch.cuda.init()"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        reason = (probe.stderr.strip().splitlines() or ["no message"])[-1]
        sys.exit(f"gpu-check: {rig.python} has no PyTorch that can use a GPU here ({reason}).\n"
                 "Name one with --python, or try this script with --simulated BUILD_DIR.")

    if args.simulated:
        print("ON THE SIMULATED DEVICE: this checks the script and the events, not a GPU. No file is written.\n")
    table = Table()
    steps, pairs = (3, 1) if args.quick else (20, args.pairs)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        folder = pathlib.Path(folder)
        told = check_totals(rig, table, folder, steps)
        check_expandable(rig, table, folder, steps)
        check_time(rig, table, folder, steps, pairs)
    check_kernel(table)
    if not args.simulated:
        write_page(args.output, table, told, rig)
    failed = sum(state == DIFFERS for _, state, _ in table.rows)
    print(f"\n{sum(state == OK for _, state, _ in table.rows)} passed, {failed} failed"
          f", {sum(state == NOT_HERE for _, state, _ in table.rows)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
