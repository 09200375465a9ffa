"""Small programs that reach CUDA in all possible ways. The events of a recording must be the calls that the program reports,
in order, and nothing may be live at the end."""

import concurrent.futures
import pathlib

from . import recording
from .rig import PROGRAMS, ROOT, Failed

# Name, command, whether the runtime's calls can be seen (otherwise the driver calls that they
# make).
WAYS = (
    ("runtime, shared", ("linked",), True),
    ("runtime, static", ("linked_static",), False),
    ("runtime, opened by name", ("looked_up",), True),
    ("runtime, opened with local scope by a plugin", ("plugin_host", "--local", "libplugin_13.so"), True),
    ("driver, dlsym", ("driver_only", "dlsym"), True),
    ("driver, cuGetProcAddress of CUDA 12", ("driver_only", "five"), True),
    ("driver, cuGetProcAddress of CUDA 11", ("driver_only", "four"), True),
    ("driver, as the runtime finds it", ("driver_only", "runtime"), True),
    ("driver, per-thread default stream", ("driver_only", "per_thread"), True),
    ("driver, entry points from the runtime", ("entry_point",), True),
)
PARTS = ("linear", "host", "arrays", "pools", "graph", "vmm", "ipc")
NEED_DRIVER = ("every_call.cc",)
# Sharing with the same process is not guaranteed by any documentation, so a refusal is reported
# and not a failure.
DOUBTFUL_PARTS = ("pool_sharing", "vmm_sharing")


def _command(rig, words):
    """Returns the command with paths of the program and its plugins, or None if one is missing."""
    paths = [rig.built(words[0]), *(rig.built(w) if w.endswith(".so") else w for w in words[1:])]
    return None if None in paths else paths


def _check(rig, table, name, words, runtime=True):
    command = _command(rig, words)
    if command is None:
        table.absent(name, f"{words[0]} is not built")
        return
    try:
        recording.compare_calls(table, name, rig.record(words[0], command, seconds=40), runtime)
    except Failed as failed:
        table.fail(name, str(failed))


def ways(rig, table):
    for name, words, runtime in WAYS:
        if words[0] == "linked_static" and not rig.simulated:
            continue  # built by the compiler of that machine in compiled()
        _check(rig, table, name, words, runtime)


def by_ctypes(rig, table):
    done = rig.record("ctypes", [rig.python, PROGRAMS / "linkage" / "by_ctypes.py"], seconds=40)
    recording.compare_calls(table, "runtime, by ctypes", done)


def calls(rig, table):
    program = rig.built("every_call")
    if program is None:
        table.absent("every call", "every_call is not built")
        return
    for part in PARTS + DOUBTFUL_PARTS:
        alone = rig.plain([program, part], fails=True, seconds=40)
        if alone.code != 0 and part in DOUBTFUL_PARTS:
            table.absent(f"calls of {part}", f"also refused without recording: {' '.join(alone.stderr.splitlines()[:2])}")
            continue
        if alone.code != 0:
            table.fail(f"calls of {part}, not recorded", f"{alone.code}: {alone.stderr[-300:]}", "0")
            continue
        _check(rig, table, f"calls of {part}", ("every_call", part))


def threads(rig, table):
    program = rig.built("driver_alloc")
    if program is None:
        table.absent("eight threads", "driver_alloc is not built")
        return
    for name, options in (("device", ()), ("stream-ordered", ("--async",)), ("pinned", ("--host",))):
        command = [program, "--threads", "8", "--count", "200", "--leak", "2", "--handover", *options]
        run = rig.record(f"threads-{name}", command, seconds=60)
        reported = run.last_line()
        events = [e for e in run.events() if e.get("heap") in ("driver", "host")]
        allocated = [e["size"] for e in events if e["kind"] == "alloc"]
        live = recording.live_at_the_end(events)
        table.expect(f"eight threads, {name}: allocations and bytes", (len(allocated), sum(allocated)),
                     (reported["allocated"], reported["bytes"]))
        table.expect(f"eight threads, {name}: live at the end", len(live), reported["allocated"] - reported["freed"])
        unequal = [e for e in events if e["kind"] == "free" and not e.get("size")]
        table.expect(f"eight threads, {name}: frees without a size", len(unequal), 0)


# ---- Programs built by the machine's own compiler ------------------------------------------------


def _compile(rig, source, target, *options):
    toolkit = pathlib.Path(rig.nvcc()).resolve().parents[1]
    driver = [f"-L{toolkit / place / 'stubs'}" for place in ("lib64", "targets/x86_64-linux/lib")] + ["-lcuda"]
    command = [rig.nvcc(), "-x", "cu", "-std=c++20", "-O1", f"-I{ROOT}", *options, PROGRAMS / source, "-o",
               rig.compiled / target, *(driver if source in NEED_DRIVER else [])]
    return rig.run(command, seconds=100, fails=True)


def compiled(rig, table):
    """Programs built with the installed toolkit, including kernels and the real static runtime."""
    if rig.nvcc() is None or rig.simulated:
        table.absent("programs built by nvcc", "no nvcc" if rig.nvcc() is None else "on the simulated device")
        return
    rig.compiled = rig.folder / "compiled"
    rig.compiled.mkdir()
    jobs = (
        ("kernel_calls.cu", "kernels_shared", "-cudart", "shared"),
        ("kernel_calls.cu", "kernels_static", "-cudart", "static"),
        ("linkage/linked.cc", "linked_shared", "-cudart", "shared"),
        ("linkage/linked.cc", "linked_static", "-cudart", "static"),
        ("linkage/linked.cc", "linked_per_thread", "-cudart", "shared", "--default-stream=per-thread"),
        ("every_call.cc", "every_call_static", "-cudart", "static"),
    )  # fmt: skip
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda job: _compile(rig, job[0], job[1], *job[2:]), jobs))
    for (source, target, *options), made in zip(jobs, done):
        name = f"nvcc {' '.join(options)}: {source.split('/')[-1]}"
        if made.code != 0:
            table.fail(name, made.stderr[-400:], "compiles")
            continue
        command = [rig.compiled / target, *(["linear"] if target == "every_call_static" else [])]
        try:
            alone = rig.plain(command, seconds=40)
            run = rig.record(target, command, seconds=40)
        except Failed as failed:
            table.fail(name, str(failed))
            continue
        table.expect(f"{name}: output", run.done.stdout, alone.stdout, ok=run.done.stdout == alone.stdout)
        recording.compare_calls(table, name, run, runtime="static" not in options)
    rig.compiled = None
