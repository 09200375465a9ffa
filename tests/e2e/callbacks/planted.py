"""Trains a small model with a library's loop, in which a callback or a hook keeps memory, requests too much, or does
nothing wrong.

A comment "plants: HABIT..." marks the lines that allocate what the habit keeps or requests.

Usage: planted.py LIBRARY HABIT
"""

import collections
import sys

import torch
from train import BATCH, LENGTH, Sentences, gpt2

STEPS = 160
FULL_FROM = 20  # the step in which a request is larger than the device


class Habit:
    """What is done beside the training. The loops call `begin` once, `judge_loss` in each step, and `end_step` after it."""

    def __init__(self, name):
        self.name, self.kept, self.steps = name, [], 0
        self.recent = collections.deque(maxlen=16)
        self.model = None

    def begin(self, model):
        self.model = model
        block = model.transformer.h[1]
        if self.name in ("outputs_kept", "recent_outputs", "scores_too_large"):
            block.mlp.register_forward_hook(self.see_output)
        if self.name == "gradients_kept":
            block.mlp.c_fc.weight.register_hook(self.see_gradient)

    def see_output(self, _, __, output):
        if self.name == "outputs_kept":
            self.kept.append(output.detach().clone())  # plants: outputs_kept
        elif self.name == "recent_outputs":
            self.recent.append(output.detach().clone())
        elif self.steps == FULL_FROM:
            self.scores = torch.empty(1 << 16, 1 << 16, device="cuda")  # plants: scores_too_large

    def see_gradient(self, gradient):
        self.kept.append(gradient.clone())  # plants: gradients_kept

    def judge_loss(self, loss):
        if self.name == "losses_kept":
            self.kept.append(loss)

    def end_step(self):
        self.steps += 1
        if self.name == "copies_kept":
            self.kept.append(torch.zeros(1 << 16, device="cuda"))  # plants: copies_kept
        elif self.name == "graphs_kept":
            row = torch.zeros(1, LENGTH, dtype=torch.long, device="cuda")
            self.kept.append(self.model(row).logits)  # plants: graphs_kept
        elif self.name == "every_ten_steps" and self.steps % 10 == 0:
            self.kept.append(torch.zeros(1 << 18, device="cuda"))  # plants: every_ten_steps
        elif self.name == "until_full":
            self.kept.append(torch.zeros(1 << 20, device="cuda"))  # plants: until_full
        elif self.name == "statistics_too_large" and self.steps == FULL_FROM:
            self.scores = torch.empty(1 << 32, device="cuda")  # plants: statistics_too_large


def train_with_transformers(habit):
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Judging(Trainer):
        def compute_loss(self, *args, **kwargs):
            loss = super().compute_loss(*args, **kwargs)  # plants: losses_kept
            habit.judge_loss(loss)
            return loss

    class Callback(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **_):
            habit.begin(model)

        def on_step_end(self, args, state, control, **_):
            habit.end_step()

    arguments = TrainingArguments(output_dir="trainer", max_steps=STEPS, per_device_train_batch_size=BATCH, report_to=[],
                                  save_strategy="no", logging_strategy="no", disable_tqdm=True)
    Judging(model=gpt2(), args=arguments, train_dataset=Sentences(STEPS), callbacks=[Callback()]).train()


def train_with_lightning(habit):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = gpt2()

        def training_step(self, batch, _):
            loss = self.model(**batch).loss  # plants: losses_kept
            habit.judge_loss(loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    class Callback(lightning.Callback):
        def on_train_start(self, trainer, module):
            habit.begin(module.model)

        def on_train_batch_end(self, *_):
            habit.end_step()

    batches = torch.utils.data.DataLoader(Sentences(STEPS), batch_size=BATCH)
    lightning.Trainer(accelerator="gpu", devices=1, max_steps=STEPS, logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False, callbacks=[Callback()]).fit(Module(), batches)


def train_with_accelerate(habit):
    from accelerate import Accelerator

    accelerator = Accelerator()
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = torch.utils.data.DataLoader(Sentences(STEPS), batch_size=BATCH)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    habit.begin(model)
    for batch in batches:
        loss = model(**batch).loss  # plants: losses_kept
        habit.judge_loss(loss)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        habit.end_step()


if __name__ == "__main__":
    library, name = sys.argv[1:]
    globals()[f"train_with_{library}"](Habit(name))
