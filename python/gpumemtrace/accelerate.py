"""Records a loop of Hugging Face Accelerate: its log entries as marks, and a report at the end.

    from gpumemtrace.accelerate import GpuMemoryTracker

    tracker = GpuMemoryTracker()
    accelerator = Accelerator(log_with=[tracker, "tensorboard"], ...)
    accelerator.init_trackers("run")
    ...
    accelerator.log({"loss": loss, **tracker.figures()}, step=step)
    ...
    accelerator.end_training()

Run the program with `gpumemtrace run`; otherwise the tracker does nothing.
"""

import sys
from typing import Any, Dict, Optional, Sequence

from accelerate.tracking import GeneralTracker

import gpumemtrace
from gpumemtrace.training import Training

__all__ = ["GpuMemoryTracker"]


class GpuMemoryTracker(GeneralTracker):  # type: ignore[misc]
    """`report`: the commands whose answers are printed to standard error by end_training(), such as
    ("report", "leaks"); () prints nothing."""

    name = "gpumemtrace"
    requires_logging_directory = False

    def __init__(self, report: Sequence[str] = ("report",)):
        super().__init__()
        self._training = Training()
        self._report = list(report)

    @property
    def tracker(self) -> Training:
        return self._training

    def figures(self) -> Dict[str, float]:
        """What is held now, for other trackers; see Training.figures()."""
        return self._training.figures()

    def store_init_configuration(self, values: Dict[str, Any]) -> None:
        pass

    def log(self, values: Dict[str, Any], step: Optional[int] = None, **_: Any) -> None:
        gpumemtrace.mark("log", step)

    def finish(self) -> None:
        if self._report:
            print(self._training.report(self._report), end="", file=sys.stderr)
