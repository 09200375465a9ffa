#!/usr/bin/env python3
"""Records every kind of program with every way of loading the library, and compares the result with
docs/routes.md.

Usage: routes_check.py --build DIR [--python PYTHON] [--part table|torch|docs] [NAME...]

TABLE holds the claims: a row per kind of program, a column per route. Each cell is a run on the
simulated device, whose recording must hold exactly what the cell's text says. The table in
docs/routes.md must be the same. NAMEs select cases. The last line of the output is "N passed, N
failed".
"""

import argparse
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "recording"), str(HERE.parent / "linkage")]
import truth  # noqa: E402
from rig import PROGRAMS, ROOT, Rig, find_python, run_cases  # noqa: E402

PAGE = ROOT / "docs" / "routes.md"

ROUTES = {
    "preload": "`LD_PRELOAD`",
    "injection": "`CUDA_INJECTION64_PATH`",
    "start": "`start()` at first",
    "late": "`start()` when the GPU is in use",
}

# The text of a cell, and which of the program's calls are then in the recording.
WORDS = {
    "seen": lambda calls: truth.reported(calls),
    "seen, as calls of the driver": lambda calls: truth.reported(calls, runtime=False),
    "seen from then on": lambda calls: truth.reported(calls)[1:],
    "seen where looked up from then on": lambda calls: [
        name for name in truth.reported(calls) if name != truth.reported(calls)[0]
    ],
    "not seen": lambda calls: [],
}
SEEN, DRIVER, THEN, LOOKED_UP, NOT = WORDS

# Kind of program -> (command, what is seen by each route).
TABLE = {
    "linked with the runtime": ("linked", (SEEN, THEN, SEEN, THEN)),
    "linked with the runtime of CUDA 12": ("linked_12", (SEEN, THEN, SEEN, THEN)),
    "linked with the static runtime": ("linked_static", (DRIVER, NOT, DRIVER, NOT)),
    "linked with the driver": ("driver_linked", (SEEN, SEEN, SEEN, THEN)),
    "driver by `dlsym`": ("driver_only dlsym", (SEEN, NOT, SEEN, NOT)),
    "driver by `cuGetProcAddress`": ("driver_only five", (SEEN, NOT, SEEN, NOT)),
    "driver by `cudaGetDriverEntryPoint`": ("entry_point", (SEEN, NOT, SEEN, NOT)),
    "runtime by `dlsym`": ("looked_up", (SEEN, NOT, SEEN, NOT)),
    "runtime by `dlsym(RTLD_DEFAULT)`": ("looked_up --default", (SEEN, NOT, SEEN, NOT)),
    "plugin opened `RTLD_LOCAL`": ("plugin_host --local {plugin}", (SEEN, THEN, SEEN, THEN)),
    "plugin opened `RTLD_DEEPBIND`": ("plugin_host --deepbind {plugin}", (NOT, THEN, SEEN, THEN)),
    "Python's `ctypes`": ("{python} {ctypes}", (SEEN, LOOKED_UP, SEEN, LOOKED_UP)),
}
# PyTorch allocates through its own libraries: all calls must be seen, and agree with the device.
TORCH = ("PyTorch: segments and blocks", (SEEN, SEEN, SEEN, "seen from then on"))


def page_table():
    """Returns the table in the form that docs/routes.md has."""
    rows = [("the program", *ROUTES.values()), ("---",) * (1 + len(ROUTES))]
    rows += [(kind, *words) for kind, (_, words) in TABLE.items()]
    rows.append((TORCH[0], *TORCH[1]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows).replace("| --- ", "|---").replace("--- |", "---|")


def by_route(rig, folder, route):
    """Returns the environment that loads the library by that route."""
    library = rig.library()
    starter = str(rig.build / "tests" / "programs" / "libstarter.so")
    started = {
        "LD_PRELOAD": starter,
        "STARTER_LIBRARY": library,
        "STARTER_OUTPUT": str(folder / "started"),
    }
    return {
        "preload": {"LD_PRELOAD": library},
        "injection": {"LD_PRELOAD": "", "CUDA_INJECTION64_PATH": library},
        "start": started,
        "late": {**started, "STARTER_AT": "moment"},
    }[route]


def check_cell(rig, folder, kind, route, word):
    command = TABLE[kind][0]
    words = command.format(
        plugin=rig.build / "tests" / "programs" / "libplugin_13.so",
        python=sys.executable,
        ctypes=PROGRAMS / "linkage" / "by_ctypes.py",
    ).split()
    python = words[0] == sys.executable
    environment = by_route(rig, folder, route)
    # A plugin that prefers its own runtime must not find one in the process.
    recording = rig.preload(
        folder, words if python else rig.built(*words), simulated=python, **environment
    )
    calls = recording.result()["calls"]
    want = WORDS[word](calls)
    if not want:
        assert not recording.path.exists(), recording.info()
        output = recording.done.stderr
        if route == "late" and "static" in kind:
            assert "the program" in (folder / "started").read_text() and "the program" in output
        # Some of its calls were seen, namely those that look up functions; their purpose is
        # unknown.
        if "EntryPoint" in kind:
            return
        assert "none of its calls could be seen" in output, f"the warning is missing: {output!r}"
        return
    recording.check_whole()
    have = truth.named(recording.events())
    assert have == want, f"recorded {have}, expected {want}"
    if word in (SEEN, DRIVER):
        recording.check_against_the_device()
    sources = recording.info()["sources"]
    assert ("calls" in sources) == (route != "preload"), sources
    reported = [e for e in recording.events() if e["kind"] == "source" and e["name"] == "calls"]
    assert [e["text"] for e in reported] == ([] if route == "preload" else [sources["calls"]]), reported


def cases_of_the_table():
    for kind, (_, words) in TABLE.items():
        for route, word in zip(ROUTES, words):
            name = f"{route}_{kind.replace(' ', '_').replace('`', '').replace('()', '')}"
            yield name, lambda rig, folder, k=kind, r=route, w=word: check_cell(rig, folder, k, r, w)


def docs_have_the_table(rig, folder):
    text = PAGE.read_text()
    assert page_table() in text, f"{PAGE} must have this table:\n{page_table()}"


# ---- PyTorch -------------------------------------------------------------------------------------

START = """
import os, runpy, sys
sys.path.insert(0, os.environ["GPUMEMTRACE_PACKAGE"])
import gpumemtrace
print(gpumemtrace.start(), file=sys.stderr)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""

LATE = """
import os, sys
sys.path.insert(0, os.environ["GPUMEMTRACE_PACKAGE"])
import torch
kept = torch.empty(3 << 20, device="cuda")
import gpumemtrace
output = gpumemtrace.start()
assert "the GPU was already in use" in output, output
assert not gpumemtrace.recording()
more = torch.empty(50 << 20, dtype=torch.uint8, device="cuda")
assert gpumemtrace.recording()
gpumemtrace.step()
del kept, more
torch.cuda.empty_cache()
"""


def torch_run(rig, folder, command, **environment):
    return rig.preload(
        folder,
        command,
        GPUMEMTRACE_PACKAGE=str(ROOT / "python"),
        GPUMEMTRACE_LIBRARY=rig.library(),
        **environment,
    )


def check_torch(rig, recording, other):
    """Checks all segments, and that the blocks are the same as in the preloaded run."""
    assert recording.done.returncode == 0, recording.done.stderr
    recording.check_whole()
    recording.check_against_the_device()

    def blocks(lines):
        return [(e["kind"], e["size"]) for e in lines if e.get("heap") == "pytorch" and "size" in e]

    have, want = blocks(recording.events()), blocks(other.events())
    assert len(want) > 100 and have == want, f"{len(have)} blocks instead of {len(want)}"
    assert recording.info()["sources"]["calls"].startswith("on: "), recording.info()["sources"]


def torch_by_every_route(rig, folder):
    program = rig.torch("train_mlp.py", "--json")
    places = {}
    for route in ("preload", "injection", "start"):
        places[route] = folder / route
        (places[route] / "sessions").mkdir(parents=True, mode=0o700)
    preloaded = torch_run(rig, places["preload"], program)
    injected = torch_run(
        rig, places["injection"], program, LD_PRELOAD="", CUDA_INJECTION64_PATH=rig.library()
    )
    check_torch(rig, injected, preloaded)
    started = torch_run(
        rig, places["start"], [rig.python, "-c", START, *program[1:]], LD_PRELOAD=""
    )
    check_torch(rig, started, preloaded)


def torch_marks_where_the_driver_opens_the_library(rig, folder):
    program = """
import os, sys
sys.path.insert(0, os.environ["GPUMEMTRACE_PACKAGE"])
import gpumemtrace, torch
kept = torch.empty(50 << 20, dtype=torch.uint8, device="cuda")
assert gpumemtrace.recording()
gpumemtrace.step()
assert gpumemtrace.start() == "injected by the driver"
if os.fork() == 0:
    os._exit(0 if not gpumemtrace.recording() else 1)
assert os.wait()[1] == 0
"""
    recording = torch_run(
        rig, folder, [rig.python, "-c", program], LD_PRELOAD="", CUDA_INJECTION64_PATH=rig.library()
    )
    assert recording.done.returncode == 0, recording.done.stderr
    recording.check_whole()
    assert any(e["kind"] == "mark" and e.get("name") == "step" for e in recording.events())


def torch_when_the_gpu_is_in_use(rig, folder):
    recording = torch_run(rig, folder, [rig.python, "-c", LATE], LD_PRELOAD="")
    assert recording.done.returncode == 0, recording.done.stderr
    recording.check_whole()
    lines = recording.events()
    blocks = [e for e in lines if e.get("heap") == "pytorch" and e["kind"] == "alloc"]
    assert [b["size"] for b in blocks] == [50 << 20], blocks
    assert any(e["kind"] == "mark" and e.get("name") == "step" for e in lines)
    # Memory allocated before the start is freed at an address that is unknown.
    frees = [e for e in lines if e["kind"] == "free"]
    assert any("size" not in e for e in frees) and any("size" in e for e in frees), frees
    assert "earlier allocations are unknown" in recording.info()["sources"]["calls"]


PROFILER = """
import torch
from torch.profiler import ProfilerActivity, profile
x = torch.randn(100, 100, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    y = x @ x
print(sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events()))
"""


def torch_profiler_beside_a_library_that_came_late(rig, folder):
    """The profiler gets CUPTI when it asks for it, through a slot of its library, and sees the
    kernel."""
    program = folder / "profiler.py"
    program.write_text(PROFILER)
    for name, command, more in (
        ("injection", [rig.python, program], {"CUDA_INJECTION64_PATH": rig.library()}),
        ("start", [rig.python, "-c", START, program], {}),
    ):
        where = folder / name
        (where / "sessions").mkdir(parents=True, mode=0o700)
        recording = torch_run(rig, where, command, LD_PRELOAD="", **more)
        assert recording.done.stdout.splitlines()[-1:] == ["1"], recording.done
        changes = [e["text"] for e in recording.events() if e["kind"] == "source" and e["name"] == "cupti"]
        assert changes[0].startswith("on: "), changes
        assert any(text.startswith("off: taken by libtorch") for text in changes), changes


TORCH_CASES = (
    "torch_profiler_beside_a_library_that_came_late",
    "torch_by_every_route",
    "torch_when_the_gpu_is_in_use",
    "torch_marks_where_the_driver_opens_the_library",
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("--part", choices=("table", "torch", "docs"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    for name in ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "SIMCUDA_FAIL", "SIMCUDA_LOG"):
        os.environ.pop(name, None)
    parts = {
        "table": list(cases_of_the_table()),
        "torch": [(name, case) for name, case in globals().items() if name in TORCH_CASES],
        "docs": [("docs_have_the_table", docs_have_the_table)],
    }
    chosen = [case for part, cases in parts.items() if args.part in (None, part) for case in cases]
    chosen = [case for case in chosen if not args.names or case[0] in args.names]
    return run_cases(Rig(args.build.resolve(), find_python(args.python)), chosen)


if __name__ == "__main__":
    sys.exit(main())
