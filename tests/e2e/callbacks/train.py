"""Trains a small model with a library's loop and gpumemtrace's callback for it. The last line of its output
is JSON: what the library's logs contain, and what PyTorch's allocator reports at the end. logged.py reads the files of TensorBoard
and Weights & Biases.

Usage: train.py transformers | lightning | accelerate
"""

import csv
import json
import pathlib
import sys

import torch

STEPS, BATCH, LENGTH, VOCABULARY = 6, 2, 32, 100


class Sentences(torch.utils.data.Dataset):
    def __init__(self, steps=STEPS):
        self.steps = steps

    def __len__(self):
        return self.steps * BATCH

    def __getitem__(self, index):
        row = torch.randint(VOCABULARY, (LENGTH,))
        return {"input_ids": row, "labels": row.clone()}


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2,
                                      bos_token_id=0, eos_token_id=0))


def train_with_transformers():
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from gpumemtrace.transformers import add_to

    reported = []

    class Reporter(TrainerCallback):
        """Sees of each log entry what the loggers of `report_to` see."""

        def on_log(self, args, state, control, logs=None, **_):
            reported.append(dict(logs))

    arguments = TrainingArguments(output_dir="trainer", max_steps=STEPS, per_device_train_batch_size=BATCH, report_to=["tensorboard", "wandb"],
                                  save_strategy="no", disable_tqdm=True, logging_steps=2, eval_strategy="steps", eval_steps=3)
    trainer = Trainer(model=gpt2(), args=arguments, train_dataset=Sentences(), eval_dataset=Sentences(),
                      callbacks=[Reporter()])
    add_to(trainer)
    trainer.train()
    return reported


def train_with_lightning():
    import lightning
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger, WandbLogger

    from gpumemtrace.lightning import GpuMemoryCallback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = gpt2()

        def training_step(self, batch, _):
            return self.model(**batch).loss

        def validation_step(self, batch, _):
            self.model(**batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    def batches():
        return torch.utils.data.DataLoader(Sentences(), batch_size=BATCH)

    logger = CSVLogger(".", flush_logs_every_n_steps=1)
    loggers = [logger, TensorBoardLogger("."), WandbLogger(offline=True)]
    lightning.Trainer(accelerator="gpu", devices=1, max_steps=STEPS, logger=loggers, log_every_n_steps=2,
                      accumulate_grad_batches=2, enable_checkpointing=False, enable_progress_bar=False,
                      enable_model_summary=False,
                      callbacks=[GpuMemoryCallback()]).fit(Module(), batches(), batches())
    logger.finalize("success")
    file = pathlib.Path(logger.log_dir) / "metrics.csv"
    return list(csv.DictReader(file.read_text().splitlines())) if file.exists() else []


def train_with_accelerate():
    from accelerate import Accelerator

    from gpumemtrace.accelerate import GpuMemoryTracker

    tracker = GpuMemoryTracker()
    accelerator = Accelerator(log_with=[tracker, "tensorboard", "wandb"], project_dir=".")
    accelerator.init_trackers("run")
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Sentences(), batch_size=BATCH)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    logs = []
    for step, batch in enumerate(loader):
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        logs.append({"loss": loss.item(), **tracker.figures()})
        accelerator.log(logs[-1], step=step)
    accelerator.end_training()
    return logs


if __name__ == "__main__":
    logs = globals()[f"train_with_{sys.argv[1]}"]()
    print(json.dumps({"logs": logs, "peak": torch.cuda.max_memory_allocated(), "gpu": torch.cuda.is_available()}))
