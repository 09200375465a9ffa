#!/usr/bin/env python3
"""Evaluates the categories of memory in programs that use the loops, models and optimizers of common
training libraries, on the simulated device. scripts/setup installs the libraries.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from evaluate import evaluate  # noqa: E402
from evaluation import Evaluation, python_with_libraries  # noqa: E402

LIBRARIES = ("transformers", "peft", "accelerate", "lightning", "timm", "diffusers", "torchvision")
# Functions of train_library.py.
PROGRAMS = (
    "transformers_trainer",
    "transformers_trainer_bf16",
    "transformers_trainer_checkpoint",
    "transformers_decode",
    "peft_lora",
    "accelerate_bf16",
    "lightning_loop",
    "lightning_bf16",
    "timm_amp_ema",
    "torchvision_sgd",
    "diffusers_unet",
)
QUICK = ("transformers_trainer", "lightning_loop")


def main():
    evaluation = Evaluation("categories_libraries", "Categories in programs of libraries", seeds=2, quick_seeds=1)
    evaluation.text(
        "Small models, created from configurations, that are trained by the loops of transformers, peft, accelerate, "
        "lightning, timm, torchvision and diffusers, or decode with a cache. The true purpose of memory comes from the "
        "libraries' own objects, through PyTorch's public hooks. Categories were not developed with these programs. "
        "They are judged like those above."
    )
    programs = [name for name in PROGRAMS if not evaluation.options.quick or name in QUICK]
    evaluate(
        evaluation, python_with_libraries(*LIBRARIES), programs, {"on": 0.995, "off": 0.0}, "libraries",
        lambda program: ["train_library.py", "--program", program],
    )
    sys.exit(evaluation.finish())


if __name__ == "__main__":
    main()
