"""Records a Lightning Trainer: its steps, validations and tests as marks, memory figures in its loggers,
and a report at the end.

    from gpumemtrace.lightning import GpuMemoryCallback

    trainer = Trainer(..., callbacks=[GpuMemoryCallback()])

Run the program with `gpumemtrace run`; otherwise the callback does nothing.
"""

import sys
from typing import Any, Sequence

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # the package of the same code under its older name
    from pytorch_lightning.callbacks import Callback

import gpumemtrace
from gpumemtrace.training import Training

__all__ = ["GpuMemoryCallback"]


class GpuMemoryCallback(Callback):  # type: ignore[misc]
    """Steps are those of Trainer.global_step. `report`: the commands whose answers are printed to standard
    error when fit() ends, such as ("report", "leaks"); () prints nothing."""

    def __init__(self, report: Sequence[str] = ("report",)):
        self._training = Training()
        self._report = list(report)
        self._step = 0  # the last one that has ended

    def on_train_start(self, trainer: Any, *_: Any) -> None:
        self._step = trainer.global_step

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        step = trainer.global_step
        if step == self._step:  # gradients are accumulated
            return
        self._step = step
        gpumemtrace.step(step)
        if trainer.is_global_zero and trainer.loggers and step % trainer.log_every_n_steps == 0:
            figures = self._training.figures()
            for logger in trainer.loggers if figures else []:
                logger.log_metrics(figures, step=step)

    def on_validation_start(self, *_: Any) -> None:
        self._training.begin("evaluation")

    def on_validation_end(self, *_: Any) -> None:
        self._training.end()

    def on_test_start(self, *_: Any) -> None:
        self._training.begin("test")

    def on_test_end(self, *_: Any) -> None:
        self._training.end()

    def on_predict_start(self, *_: Any) -> None:
        self._training.begin("prediction")

    def on_predict_end(self, *_: Any) -> None:
        self._training.end()

    def on_exception(self, *_: Any) -> None:
        self._training.end()

    def on_fit_end(self, trainer: Any, *_: Any) -> None:
        if trainer.is_global_zero and self._report:
            print(self._training.report(self._report), end="", file=sys.stderr)
