"""The models that the programs in this folder train."""

import pathlib
import sys

import torch
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from train_gpt import GPT, Block  # noqa: E402  (the same model, without moments)

VOCABULARY = 4096
LENGTH = 128


def gpt(checkpointing=False, layers=4, hidden=256):
    return GPT(VOCABULARY, layers, hidden, 4, LENGTH, checkpointing)


def mlp(hidden=512, layers=4):
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(hidden, hidden), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(hidden, 1))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet(widths=(32, 64, 128), classes=100):
    parts = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    for inputs, outputs in zip((widths[0], *widths), widths):
        parts += [
            Residual(inputs, outputs, 1 if inputs == outputs else 2),
            Residual(outputs, outputs, 1),
        ]
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes)]
    return nn.Sequential(*parts)


__all__ = ["GPT", "Block", "LENGTH", "VOCABULARY", "gpt", "mlp", "resnet"]
