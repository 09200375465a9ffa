"""Records a transformers Trainer: its steps and evaluations as marks, memory figures in its logs, and a
report at the end.

    from gpumemtrace.transformers import GpuMemoryCallback

    trainer = Trainer(..., callbacks=[GpuMemoryCallback()])

Run the program with `gpumemtrace run`; otherwise the callback does nothing.
"""

import sys
from typing import Any, Dict, Optional, Sequence

from transformers import TrainerCallback

import gpumemtrace
from gpumemtrace.training import Training

__all__ = ["GpuMemoryCallback", "add_to"]


class GpuMemoryCallback(TrainerCallback):  # type: ignore[misc]
    """Steps have the numbers that the Trainer logs. `report`: the commands whose answers are printed to
    standard error when training ends, such as ("report", "leaks"); () prints nothing.

    Memory figures are added to each entry of the Trainer's log. Loggers of `report_to` (Weights & Biases,
    TensorBoard) run before the callbacks that are passed to a Trainer, and get them only if the callback is
    added by add_to()."""

    def __init__(self, report: Sequence[str] = ("report",)):
        self._training = Training()
        self._report = list(report)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        gpumemtrace.step(state.global_step)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.begin("evaluation")

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.end()

    def on_predict(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.end()

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **_: Any) -> None:
        if not state.is_world_process_zero:
            return
        figures = self._training.figures()
        if logs is not None:
            logs.update(figures)
        if state.log_history:
            state.log_history[-1].update(figures)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero and self._report:
            print(self._training.report(self._report), end="", file=sys.stderr)


def add_to(trainer: Any, report: Sequence[str] = ("report",)) -> GpuMemoryCallback:
    """Adds the callback to a Trainer, before its loggers, and returns it."""
    callback = GpuMemoryCallback(report)
    trainer.callback_handler.callbacks.insert(0, callback)
    return callback
