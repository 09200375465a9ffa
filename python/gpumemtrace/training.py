"""What the callbacks for training libraries share: phases as regions of the recording, figures for a
logger, and a report at the end. Used by gpumemtrace.transformers, .lightning and .accelerate.

If the process is not recorded, everything here does nothing.

Thread safety: a Training belongs to the thread that trains.
"""

import json
import os
import subprocess
import sys
from typing import Dict, List, Optional

import gpumemtrace

__all__ = ["Training"]


def _run(*words: str) -> Optional[str]:
    """Returns what a gpumemtrace command prints, or None if it fails."""
    # The command must not be recorded itself.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH") and not name.startswith("GPUMEMTRACE")}
    if "GPUMEMTRACE_DIR" in os.environ:  # where the session is
        environment["GPUMEMTRACE_DIR"] = os.environ["GPUMEMTRACE_DIR"]
    done = subprocess.run([sys.executable, "-m", "gpumemtrace", *words], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    if done.returncode != 0:
        print(done.stderr, end="", file=sys.stderr)
        return None
    return done.stdout


class Training:
    """The progress of a training loop, in the recording of this process."""

    def __init__(self) -> None:
        self._phase: Optional[gpumemtrace.region] = None
        self._has_failed = False

    def begin(self, phase: str) -> None:
        """Names the time until end(). Does nothing within another phase."""
        if self._phase is None:
            self._phase = gpumemtrace.region(phase)
            self._phase.__enter__()

    def end(self) -> None:
        if self._phase is not None:
            self._phase.__exit__()
            self._phase = None

    def figures(self) -> Dict[str, float]:
        """Returns what is held now, in bytes: `gpu_memory/0/driver_bytes`, with `_peak_bytes` since the start
        of the recording, and for PyTorch's allocator `_reserved_bytes`. Takes tens of milliseconds. Empty if the
        process is not recorded, or its collector does not answer."""
        if self._has_failed or not gpumemtrace.recording():
            return {}
        answer = _run("status", str(os.getpid()), "--json")
        if answer is None:
            self._has_failed = True  # reported once
            return {}
        figures: Dict[str, float] = {}
        for heap in json.loads(answer)["heaps"]:
            if heap["device"] is None:
                continue
            name = f"gpu_memory/{heap['device']}/{heap['heap']}"
            figures[f"{name}_bytes"] = float(heap["live_bytes"])
            figures[f"{name}_peak_bytes"] = float(heap["peak_live_bytes"])
            if heap["reserved_bytes"] is not None:
                figures[f"{name}_reserved_bytes"] = float(heap["reserved_bytes"])
        return figures

    def report(self, verbs: List[str]) -> str:
        """Takes a snapshot and returns the answers of these commands about the recording so far."""
        if not gpumemtrace.recording():
            return ""
        taken = _run("snapshot", str(os.getpid()), "--name", "end of training", "--json")
        if taken is None:
            return ""
        file = json.loads(taken)["file"]
        answers = [_run(verb, file) for verb in verbs]
        return "\n".join(answer.rstrip("\n") + "\n" for answer in answers if answer)
