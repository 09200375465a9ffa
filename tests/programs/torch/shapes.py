"""Trains with inputs of different kinds, and takes a snapshot of each kind, named after it, when the
forward pass is over. tests/e2e/torch/shapes_check.py compares the recording with what this reports.

Prints one line of JSON: kind -> {"bytes": that the forward pass has left on the device, "samples":
of the batch, "tokens": of each sample; null: there is no such number}.
"""

import json

import gpumemtrace
import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda"
WIDTH, WORDS = 160, 500


class Block(nn.Module):
    """Attention and a perceptron. With `ends`, sequences are packed into one and end there."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, ends=None):
        shape = x.shape
        heads = self.qkv(self.norm(x)).view(*shape[:-1], 3, 4, WIDTH // 4)
        q, k, v = heads.unbind(-3)
        if ends is None:
            y = self.attend(q, k, v)
        else:
            parts = [slice(begin, end) for begin, end in zip([0, *ends], ends)]
            y = torch.cat([self.attend(q[..., p, :, :], k[..., p, :, :], v[..., p, :, :]) for p in parts], -3)
        x = x + self.out(y.reshape(shape))
        return x + self.down(F.gelu(self.up(x)))

    @staticmethod
    def attend(*tensors):
        q, k, v = (t.transpose(-3, -2) for t in tensors)
        return (F.softmax(q @ k.transpose(-2, -1), -1) @ v).transpose(-3, -2)


class Transformer(nn.Module):
    def __init__(self, features=None):
        super().__init__()
        self.first = nn.Embedding(WORDS, WIDTH) if features is None else nn.Linear(features, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, x, ends=None):
        x = self.first(x)
        for block in self.blocks:
            x = block(x, ends)
        return self.head(x)


class Patches(nn.Module):
    """A vision transformer: its sequence, the patches, is not a dimension of its inputs."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, 8, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def convolutions(inputs, outputs, convolution=nn.Conv2d):
    return nn.Sequential(convolution(inputs, 64, 3, padding=1), nn.ReLU(), convolution(64, 64, 3, padding=1), nn.ReLU(),
                         nn.Flatten(2), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, outputs))


def ids(*shape):
    return torch.randint(WORDS, shape).to(DEVICE)


def images(samples, side=64):
    return torch.rand(samples, 3, side, side).to(DEVICE)


# Each kind returns a model, a function that makes a batch, whose first tensor the model gets, and the
# samples and tokens of each batch.


def images_and_classes():
    return convolutions(3, 10), lambda: (images(12), torch.randint(10, (12,)).to(DEVICE)), 12, None


def images_and_several_labels():
    """The labels look like token ids."""
    return convolutions(3, 10), lambda: (images(12), torch.randint(2, (12, 10)).to(DEVICE)), 12, None


def images_in_patches():
    return Patches(), lambda: (images(12),), 12, None


def images_of_other_sizes():
    """One image has three dimensions, like a batch of sequences."""
    sides = (48, 64, 40, 56)

    def batch():
        pictures = [torch.rand(3, side, side).to(DEVICE) for side in sides]
        padded = torch.zeros(len(sides), 3, max(sides), max(sides), device=DEVICE)
        for i, picture in enumerate(pictures):
            padded[i, :, : picture.shape[1], : picture.shape[2]] = picture
        return padded, *pictures

    return convolutions(3, 10), batch, len(sides), None


def sound():
    """Features before time: the second dimension is no sequence."""
    return convolutions(64, 10, nn.Conv1d), lambda: (torch.rand(12, 64, 700).to(DEVICE),), 12, None


def features_of_frames():
    return Transformer(80), lambda: (torch.rand(6, 90, 80).to(DEVICE),), 6, 90


def rows_of_a_table():
    model = nn.Sequential(nn.Linear(40, 333), nn.ReLU(), nn.Linear(333, 40))
    return model, lambda: (torch.rand(700, 40).to(DEVICE),), 700, None


def tokens():
    return Transformer(), lambda: (ids(6, 100),), 6, 100


def one_sequence():
    return Transformer(), lambda: (ids(1, 600),), 1, 600


ENDS = (130, 200, 450, 600)  # of packed sequences


def ends():
    return torch.tensor(ENDS, dtype=torch.int32).to(DEVICE)


def packed():
    """No dimension is the number of samples."""
    return Transformer(), lambda: (ids(600), ends()), None, None


def packed_in_one_row():
    """What attention keeps depends on the lengths of the sequences."""
    return Transformer(), lambda: (ids(1, 600), ends()), None, None


def ragged():
    """The next batch, of another length, is on the device already."""
    return Transformer(), lambda: (ids(6, 100), ids(6, 140)), 6, 100


def smaller_than_the_next():
    return Transformer(), lambda: (ids(3, 100), ids(6, 100)), 3, 100


KINDS = (images_and_classes, images_and_several_labels, images_in_patches, images_of_other_sizes, sound,
         features_of_frames, rows_of_a_table, tokens, one_sequence, packed, packed_in_one_row, ragged,
         smaller_than_the_next)
STEPS = 3


def run(kind):
    model, make_batch, samples, length = kind()
    model.to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    more = (ENDS,) if kind.__name__.startswith("packed") else ()
    for step in range(STEPS):
        batch = make_batch()
        before = torch.cuda.memory_allocated()
        output = model(batch[0], *more)
        loss = output.float().square().mean()
        kept = torch.cuda.memory_allocated() - before
        if step == STEPS - 1:
            gpumemtrace.snapshot(kind.__name__)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del output, loss
    return {"bytes": kept, "samples": samples, "tokens": length}


if __name__ == "__main__":
    torch.manual_seed(1)
    print(json.dumps({kind.__name__: run(kind) for kind in KINDS}))
