"""Ways to record a process other than `gpumemtrace run`: LD_PRELOAD, CUDA_INJECTION64_PATH, start()."""

from . import recording
from .rig import ROOT


def _injected(rig, name, command, **environment):
    """Makes a recording without `gpumemtrace run`."""
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
    """The driver loads the library in cuInit. At that time the first call of a linked program is already in progress, and
    programs that looked up driver functions earlier are not seen (docs/routes.md)."""
    program = rig.built("linked")
    if program is None:
        table.absent("CUDA_INJECTION64_PATH", "linked is not built")
    else:
        run = _injected(rig, "injected", [program], CUDA_INJECTION64_PATH=rig.library)
        reported = recording.truth.reported(run.reported()) if run else []
        seen = recording.truth.named(run.events()) if run else []
        table.expect("CUDA_INJECTION64_PATH: calls after the first", f"{len(seen)} calls", f"{len(reported) - 1} calls",
                     ok=reported and seen in (reported, reported[1:]))
    _torch(rig, table, "CUDA_INJECTION64_PATH", "never", CUDA_INJECTION64_PATH=rig.library)


TORCH = r"""
import json, sys
said = "not called"
def start():
    import gpumemtrace
    return gpumemtrace.start()
sys.path.insert(0, sys.argv[2])
if sys.argv[1] == "first":
    said = start()
import torch
before = torch.empty(8 << 20, device="cuda") if sys.argv[1] == "late" else torch.empty(0)
if sys.argv[1] == "late":
    said = start()
known = torch.cuda.memory_reserved() if sys.argv[1] == "late" else 0
kept = [torch.empty((3 << 20) * n, dtype=torch.uint8, device="cuda") for n in range(1, 9)]
print(json.dumps({"said": said, "reserved": torch.cuda.memory_reserved() - known,
                  "blocks": torch.cuda.memory_allocated() - before.numel() * 4}))
"""


def _torch(rig, table, name, when, **environment):
    """Records PyTorch in that way: compares the bytes of its segments and blocks."""
    package = next((f for f in PACKAGES if (f / "gpumemtrace").is_dir()), None)
    run = _injected(rig, f"torch-{when}", [rig.python, "-c", TORCH, when, package], **environment)
    if run is None:
        table.fail(f"{name}: PyTorch", "no recording", "one")
        return
    said = run.last_line()
    if when != "never":
        table.note(f"{name}: start() returned", said["said"])
    device = [e["size"] for e in run.of_kind("alloc") if e.get("heap") == "driver" and e.get("memory") == "device"]
    blocks = [e["size"] for e in run.of_kind("alloc") if e.get("heap") == "pytorch"]
    table.expect_bytes(f"{name}: PyTorch's segments", sum(device), said["reserved"])
    table.expect_bytes(f"{name}: PyTorch's blocks", sum(blocks), said["blocks"])


PACKAGES = (ROOT / "python", ROOT / "share" / "gpumemtrace" / "python")


def start(rig, table):
    """Calls gpumemtrace.start() first, and in a process that already has a context and memory."""
    package = next((f for f in PACKAGES if (f / "gpumemtrace").is_dir()), None)
    if package is None or "def start(" not in (package / "gpumemtrace" / "__init__.py").read_text():
        table.absent("gpumemtrace.start()", "the package has no start()" if package else "the package is missing")
        return
    for when in ("first", "late"):
        _torch(rig, table, f"start() {when}", when, GPUMEMTRACE_LIBRARY=rig.library)
