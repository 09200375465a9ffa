#!/usr/bin/env python3
"""Trains models with one release of PyTorch under the profiler, and compares the recording with PyTorch's own data.

Usage: release_check.py --python PYTHON [--build DIR] [NAME...]
PYTHON has a build of PyTorch for CUDA 12 or 13.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import PROGRAMS, ROOT, Rig, run_cases  # noqa: E402

# Trains, then prints PyTorch's data and sets a mark in the recording at that moment.
PROBE = """
import contextlib, ctypes, gc, io, json, runpy, sys
import torch
program, sys.argv = sys.argv[1], sys.argv[1:]
with contextlib.redirect_stdout(io.StringIO()):
    runpy.run_path(program, run_name="__main__")
gc.collect()
ctypes.CDLL(None).gpumemtrace_mark(b"moment", ctypes.c_uint64(1))
stats = torch.cuda.memory_stats()
blocks = [(block["address"], block["size"]) for segment in torch.cuda.memory._snapshot()["segments"]
          for block in segment["blocks"] if block["state"] == "active_allocated"]
print(json.dumps({"version": torch.__version__, "stats": stats, "blocks": blocks,
                  "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}))
"""


class Run:
    """A training run, its recording up to the mark, and PyTorch's data."""

    def __init__(self, rig, folder, *command, **environment):
        recording = rig.run(folder, [rig.python, "-c", PROBE, *command], OMP_NUM_THREADS="1", **environment)
        self.truth = recording.result()
        self.info = recording.check_whole()
        self.events, self.stacks = [], {}
        for event in recording.events():
            if event["kind"] == "mark" and event["name"] == "moment":
                break
            if event["kind"] == "stack":
                self.stacks[event["id"]] = event
            self.events.append(event)
        else:
            raise AssertionError("the mark is not in the recording")
        self.allocations = [e for e in self.events if e["kind"] == "alloc" and e.get("heap") == "pytorch"]

    def functions(self, stack):
        return [frame.get("function", "") for frame in self.stacks[stack]["frames"]] if stack else []

    def check_layers_are_on(self):
        sources = self.info["sources"]
        assert sources["pytorch"] == "on", sources
        torch = self.info["libraries"]["torch"]
        assert torch is None or self.truth["version"].startswith(torch.split("+")[0]), (torch, self.truth["version"])

    def check_blocks(self):
        """Every allocation and free, and the total at every moment, equals PyTorch's."""
        live, peak, now, frees = {}, 0, 0, 0
        for event in self.events:
            if event.get("heap") != "pytorch":
                continue
            if event["kind"] == "alloc":
                assert event["address"] not in live, f"allocated twice: {event}"
                live[event["address"]] = event["size"]
                now += event["size"]
                peak = max(peak, now)
            elif event["kind"] == "free":
                frees += 1
                size = live.pop(event["address"])
                assert size == event["size"], f"{event} frees a block of {size} bytes"
                now -= size
            else:
                continue
            assert event["total_allocated"] == now, f"PyTorch counts {event['total_allocated']}, the blocks {now}: {event}"
        stats = self.truth["stats"]
        counted = (len(self.allocations), frees, now, peak)
        wanted = (stats["allocation.all.allocated"], stats["allocation.all.freed"], stats["allocated_bytes.all.current"],
                  self.truth["allocated"])
        assert counted == wanted, f"allocations, frees, bytes, peak: {counted}, not {wanted}"
        assert sorted(live.items()) == sorted(map(tuple, self.truth["blocks"])), "the live blocks differ from _snapshot()"
        assert max(e["total_reserved"] for e in self.allocations) == self.truth["reserved"], "peak of reserved"

    def check_stacks(self):
        """Every block has a stack, and stacks of the main thread contain lines of the program."""
        missing = [event for event in self.allocations if not event.get("stack")]
        assert not missing, f"{len(missing)} of {len(self.allocations)} blocks have no stack: {missing[0]}"
        main = self.allocations[0]["thread"]
        lost = [event for event in self.allocations
                if event["thread"] == main and "main" not in self.functions(event["stack"])]
        assert len(lost) * 1000 <= len(self.allocations), f"{len(lost)} of {len(self.allocations)}: {lost[0]}, " \
            f"{self.functions(lost[0]['stack'])}"

    def check_forward_stacks(self, part):
        """At least a share of the blocks allocated by backward threads has the forward line that created their node."""
        main = self.allocations[0]["thread"]
        backward = [event for event in self.allocations if event["thread"] != main]
        known = [event for event in backward if event.get("forward_stack")]
        assert backward and len(known) >= part * len(backward), f"{len(known)} of {len(backward)}"
        for event in known:
            functions = self.functions(event["forward_stack"])
            assert "main" in functions, functions

    def check_phases(self, steps):
        begun = [event["name"] for event in self.events if event["kind"] == "range_begin"]
        ended = [event["name"] for event in self.events if event["kind"] == "range_end"]
        assert sorted(begun) == sorted(ended), (begun, ended)
        assert begun.count("backward") == steps, begun.count("backward")
        assert begun.count("record_function") >= steps, begun.count("record_function")  # at least Optimizer.step
        created = [self.functions(event["stack"]) for event in self.events
                   if event["kind"] == "range_begin" and event["name"] == "Optimizer.__init__"]
        assert len(created) == 1, created
        constructors = [function for function in created[0] if function.endswith("__init__")]
        assert constructors[0] == "Optimizer.__init__" and len(constructors) > 1 and "main" in created[0], created


def mlp(rig, folder):
    run = Run(rig, folder, PROGRAMS / "train_mlp.py", "--steps", "12", "--device", "cuda")
    run.check_layers_are_on()
    run.check_blocks()
    run.check_stacks()
    run.check_phases(12)


def gpt(rig, folder):
    run = Run(rig, folder, PROGRAMS / "train_gpt.py", "--steps", "6", "--device", "cuda")
    run.check_layers_are_on()
    run.check_blocks()
    run.check_stacks()
    run.check_forward_stacks(0.8)
    run.check_phases(6)


def gpt_with_expandable_segments(rig, folder):
    run = Run(rig, folder, PROGRAMS / "train_gpt.py", "--steps", "2", "--device", "cuda",
              PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    run.check_blocks()
    driver = [e for e in run.events if e["kind"] == "map"]
    assert driver, "no cuMemMap: the segments were not seen"


def gpt_that_recomputes(rig, folder):
    run = Run(rig, folder, PROGRAMS / "train_gpt.py", "--steps", "3", "--device", "cuda", "--checkpoint", "--no-amp")
    run.check_blocks()
    run.check_forward_stacks(0.8)


def roles(rig, folder):
    """Compares what tensors are used for, by address, with the programs' own data (../torch/roles_check.py)."""
    check = [sys.executable, ROOT / "tests" / "e2e" / "torch" / "roles_check.py", "--build", rig.build, "--python", rig.python,
             "gpt", "gpt_bf16", "convnet", "inference_to"]
    done = subprocess.run(check, env=rig.environment(folder, {}), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


CASES = [mlp, gpt, gpt_with_expandable_segments, gpt_that_recomputes, roles]


class ReleaseRig(Rig):
    """Uses the libraries of the CUDA version that PyTorch was built for."""

    def __init__(self, build, python):
        super().__init__(build, python)
        found = subprocess.run([python, "-c", "import importlib.util; print(importlib.util.find_spec('torch').origin)"],
                               capture_output=True, text=True, check=True).stdout.strip()
        # Read instead of imported, because importing takes seconds.
        version = pathlib.Path(found).with_name("version.py").read_text(encoding="utf-8")
        self.major = re.search(r"^cuda.*= '(\d+)", version, re.M).group(1)

    def environment(self, folder, more):
        return {**super().environment(folder, more), "SIMCUDA_MAJOR": self.major}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--python", required=True)
    parser.add_argument("names", nargs="*", help="cases to run; default: all")
    arguments = parser.parse_args()
    chosen = [(case.__name__, case) for case in CASES if not arguments.names or case.__name__ in arguments.names]
    if not chosen:
        sys.exit(f"release_check: no such case: {' '.join(arguments.names)}")
    return run_cases(ReleaseRig(arguments.build.resolve(), arguments.python), chosen)


if __name__ == "__main__":
    sys.exit(main())
