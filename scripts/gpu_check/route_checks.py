"""Ways into a process other than `gpumemtrace run`: LD_PRELOAD, CUDA_INJECTION64_PATH, start()."""

from . import recording
from .rig import ROOT


def _injected(rig, name, command, **environment):
    """A recording made without `gpumemtrace run`."""
    path = rig.new_path(name)
    done = rig.plain(command, seconds=60, GPUMEMTRACE=f"output={path}", **environment)
    there = rig.wait_for(path)
    return recording.Recording(rig, path, done) if there else None


def preload(rig, table):
    program = rig.built("linked")
    if program is None:
        table.absent("LD_PRELOAD", "linked is not built")
        return
    run = _injected(rig, "preload", [program], LD_PRELOAD=rig.library)
    if run is None:
        table.fail("LD_PRELOAD", "no recording", "one")
        return
    recording.compare_calls(table, "LD_PRELOAD", run)


def injection(rig, table):
    """The driver opens the library in cuInit. What was called before, and what caches pointers, is missed."""
    for name, program in (("runtime, shared", "linked"), ("driver, dlsym", "driver_only")):
        path = rig.built(program)
        if path is None:
            table.absent(f"CUDA_INJECTION64_PATH, {name}", f"{program} is not built")
            continue
        command = [path, *(["dlsym"] if program == "driver_only" else [])]
        run = _injected(rig, f"injected-{program}", command, CUDA_INJECTION64_PATH=rig.library)
        if run is None:
            table.fail(f"CUDA_INJECTION64_PATH, {name}", "no recording", "one")
            continue
        told = recording.truth.told(run.told())
        seen = recording.truth.named(run.events())
        table.expect(f"CUDA_INJECTION64_PATH, {name}: calls seen", len(seen), len(told), ok=len(seen) >= len(told) - 1 > 0)


START = r"""
import sys
sys.path.insert(0, sys.argv[1])
import gpumemtrace, json
import torch
before = torch.empty(8 << 20, device="cuda")
said = gpumemtrace.start()
kept = [torch.empty((3 << 20) * n, dtype=torch.uint8, device="cuda") for n in range(1, 5)]
print(json.dumps({"said": str(said), "reserved": torch.cuda.memory_reserved(), "before": before.numel() * 4}))
"""


def start(rig, table):
    """gpumemtrace.start() in a process that has a context and memory already."""
    package = next((f for f in (ROOT / "python", ROOT / "share/gpumemtrace/python") if (f / "gpumemtrace").is_dir()), None)
    if package is None or "def start" not in "".join(p.read_text() for p in (package / "gpumemtrace").glob("*.py")):
        table.absent("gpumemtrace.start()", "the package has no start()" if package else "the package is not here")
        return
    run = _injected(rig, "start", [rig.python, "-c", START, package], GPUMEMTRACE_LIBRARY=rig.library)
    if run is None:
        table.fail("gpumemtrace.start()", "no recording", "one")
        return
    said = run.last_line()
    blocks = [e for e in run.of_kind("alloc") if e.get("heap") == "pytorch"]
    device = [e for e in run.of_kind("alloc") if e.get("heap") == "driver"]
    table.tell("start() says", said["said"])
    table.expect("start(): memory of the driver taken after it", sum(e["size"] for e in device), said["reserved"] - said["before"],
                 ok=len(device) > 0)
    table.tell("start(): blocks of PyTorch seen after it", f"{len(blocks)} of 4")
