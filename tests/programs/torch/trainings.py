#!/usr/bin/env python3
"""Trains until it has finished or runs out of memory. PROGRAM names one of 26 training scripts,
each with a property of real ones: varying inputs, accumulation, checkpointing, autocast, evaluation
between epochs, a leak.

At its end, finished or not, prints one line of JSON: whether it finished, the step in which it
failed, the driver's free memory before the first tensor, and PyTorch's own peak of allocated memory
in each step (index 0 is before the first step, the last one after the last step). With enough memory,
these are the script's requirements.
"""

import argparse
import functools
import json
import random

import torch
from models import Block, resnet
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

VOCABULARY = 2048


class Language(nn.Module):
    """A decoder whose layers can be recomputed."""

    def __init__(self, options, width=256, layers=4, longest=512):
        super().__init__()
        self.checkpointing, self.autocast = options.checkpoint, options.autocast
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.head(x)

    def loss(self, tokens):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.autocast):
            return functional.cross_entropy(self(tokens).flatten(0, 1), tokens.flatten())


class Encoder(nn.Module):
    """PyTorch's own encoder and a classifier."""

    def __init__(self, options, width=192, layers=3):
        super().__init__()
        self.checkpointing, self.autocast = options.checkpoint, options.autocast
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(width, 50)

    def forward(self, tokens):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.autocast):
            x = self.tokens(tokens)
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False) if self.checkpointing else layer(x)
            return self.head(x.mean(1))


class Attending(nn.Module):
    """Attention that is written out."""

    def __init__(self, options, width=128, heads=4):
        super().__init__()
        self.fused, self.heads = options.fused_attention, heads
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        samples, length, width = x.shape
        q, k, v = self.mixed(x).view(samples, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.fused:
            y = functional.scaled_dot_product_attention(q, k, v)
        else:
            y = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1) @ v
        return x + self.out(y.transpose(1, 2).reshape(samples, length, width))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 128)
        self.cells = nn.LSTM(128, 256, 2, batch_first=True)
        self.head = nn.Linear(256, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.cells(self.tokens(tokens))[0])


class Run:
    """The state that the programs share: the options, random numbers, and the current step."""

    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.step = 0
        self.peaks = []  # of allocated memory, by step; index 0 is before the first step

    def batch(self, size):
        return max(1, int(size * self.options.batch_scale))

    def tokens(self, batch, length):
        length = int(length * self.options.length_scale)
        return torch.randint(VOCABULARY, (self.batch(batch), length)).cuda()

    def images(self, batch, side):
        return torch.randn(self.batch(batch), 3, side, side).cuda()

    def steps(self, count):
        for step in range(1, count + 1):
            self.end_step()
            self.step = step
            yield step
        self.end_step()
        self.step += 1

    def end_step(self):
        self.peaks.append(torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()

    def update(self, optimizer, loss):
        """`loss`: a tensor, or a function that computes it, which can be called for each micro-batch."""
        for part in range(self.options.micro_batches):
            value = loss() if callable(loss) else loss
            if part == 0 and not self.options.zero_grad_after:
                optimizer.zero_grad(set_to_none=True)
            value.backward()
            del value
        optimizer.step()
        if self.options.zero_grad_after:
            optimizer.zero_grad(set_to_none=True)


# ---- Used in development ------------------------------------------------------------------------


def fixed_batch(run):
    model = Language(run.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(12):
        run.update(optimizer, lambda: model.loss(run.tokens(16, 128)))


def varying_lengths(run):
    model = Language(run.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(25):
        run.update(optimizer, model.loss(run.tokens(12, run.random.randint(40, 300))))


def last_batch_larger(run):
    """The last batch is larger; gradients are not zeroed without --zero-grad."""
    model = Language(run.options, layers=2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in run.steps(4):
        if run.options.zero_grad:
            optimizer.zero_grad()
        model.loss(run.tokens(10 if step == 4 else 2, 256)).backward()
        optimizer.step()


def accumulation(run):
    model = Language(run.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(8):
        for _ in range(4):
            (model.loss(run.tokens(8, 160)) / 4).backward()
        optimizer.step()
        optimizer.zero_grad()


def checkpointed(run):
    run.options.checkpoint = True
    model = Language(run.options, width=384, layers=6).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(8):
        run.update(optimizer, model.loss(run.tokens(16, 200)))


def images_autocast(run):
    model = resnet().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in run.steps(10):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(run.images(48, 64)).square().mean()
        run.update(optimizer, loss)


def growing_cycles(run):
    """The batch grows in cycles of five steps."""
    model = Language(run.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(20):
        run.update(optimizer, model.loss(run.tokens(4 + 2 * ((step - 1) % 5) + step // 5, 192)))


def leaking_losses(run):
    """Each step keeps a part of the logits, for a mean at the end of the epoch."""
    model = Language(run.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    kept = []
    for _ in run.steps(150):
        tokens = run.tokens(4, 96)
        logits = model(tokens)
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        if run.options.leak:
            kept.append(logits.detach()[:, ::8].clone())
        del logits
        run.update(optimizer, loss)


# ---- Held out for the evaluation ----------------------------------------------------------------


def batch_15_times(run):
    model = Language(run.options, layers=3).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(28):
        run.update(optimizer, model.loss(run.tokens(45 if step >= 26 else 3, 128)))


def recurrent_lengths(run):
    model = Recurrent().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in run.steps(25):
        loss = model(run.tokens(24, run.random.randint(30, 220))).float().square().mean()
        run.update(optimizer, loss)


def evaluation_between(run):
    model = Encoder(run.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(20):
        run.update(optimizer, model(run.tokens(32, 128)).square().mean())
        if step % 5 == 0:
            model.eval()
            with torch.no_grad():
                for _ in range(3):
                    model(run.tokens(96, 200)).argmax(1)
            model.train()


def no_momentum(run):
    model = nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(1024, 1024), nn.GELU()))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in run.steps(10):
        x = torch.randn(run.batch(2048), 1024).cuda()
        y = checkpoint_sequential(model, 6, x, use_reentrant=False) if run.options.checkpoint else model(x)
        run.update(optimizer, y.square().mean())


def sorted_lengths(run):
    """The sequences are sorted by length, the shortest first."""
    model = Encoder(run.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(20):
        run.update(optimizer, model(run.tokens(24, 32 + 16 * step)).square().mean())


def autocast_accumulation(run):
    model = Language(run.options, width=320).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(8):
        optimizer.zero_grad(set_to_none=True)
        for _ in range(run.random.randint(2, 4)):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model.loss(run.tokens(run.random.randint(4, 12), 200))
            loss.backward()
        optimizer.step()


def leaking_hook(run):
    """A forward hook that inspects activations keeps a copy at each third step."""
    model = Encoder(run.options).cuda()
    kept = []

    def look(module, arguments, output):
        if run.options.leak and run.step % 3 == 0:
            kept.append(output[:, :16].detach().clone())

    model.layers[1].register_forward_hook(look)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(240):
        run.update(optimizer, model(run.tokens(8, 64)).square().mean())


def image_sizes(run):
    model = resnet((24, 48, 96)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(25):
        run.update(optimizer, model(run.images(16, run.random.choice((64, 80, 96, 112, 128)))).square().mean())


def adversarial(run):
    maker = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 4096)).cuda()
    judge = nn.Sequential(nn.Linear(4096, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
    of_maker, of_judge = (torch.optim.Adam(model.parameters()) for model in (maker, judge))
    for _ in run.steps(12):
        noise, real = torch.randn(run.batch(1024), 256).cuda(), torch.randn(run.batch(1024), 4096).cuda()
        made = maker(noise)
        run.update(of_judge, judge(real).mean() - judge(made.detach()).mean())
        run.update(of_maker, -judge(made).mean())


def logits_gathered(run):
    """The evaluation concatenates the logits of all batches on the GPU."""
    model = Language(run.options, layers=2).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(6):
        run.update(optimizer, model.loss(run.tokens(8, 128)))
    with torch.no_grad():
        gathered = model(run.tokens(4, 128))
        for _ in range(40):
            gathered = torch.cat((gathered, model(run.tokens(4, 128))))


# ---- Written when the rules were finished --------------------------------------------------------


def rmsprop_clipped(run):
    """A recurrent model whose gradients are clipped."""
    model = Recurrent().cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in run.steps(15):
        tokens = run.tokens(32, run.random.randint(40, 160))
        loss = functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def adagrad_embeddings(run):
    """Most parameters are embeddings; the state exists before the first step."""
    model = nn.Sequential(nn.EmbeddingBag(40_000, 256), nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 1)).cuda()
    optimizer = torch.optim.Adagrad(model.parameters())
    for _ in run.steps(12):
        words = torch.randint(40_000, (run.batch(run.random.randint(1500, 3000)), 30)).cuda()
        run.update(optimizer, model(words).square().mean())


def momentum_validated(run):
    """Images with momentum, validated with larger batches after every fourth step."""
    model = resnet((32, 64)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    for step in run.steps(16):
        run.update(optimizer, model(run.images(24, 72)).square().mean())
        if step % 4 == 0:
            model.eval()
            with torch.no_grad():
                correct = sum(model(run.images(64, 96)).argmax(1).eq(0).sum() for _ in range(2))
            model.train()
            del correct


class Signs(torch.optim.Optimizer):
    """The signs of the momentum, as in Lion."""

    def __init__(self, parameters, lr=1e-4, decay=0.9):
        super().__init__(parameters, {"lr": lr, "decay": decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(parameter)
                state["momentum"].lerp_(parameter.grad, 1 - group["decay"])
                parameter.sub_(state["momentum"].sign(), alpha=group["lr"])


def own_optimizer(run):
    """The program's own optimizer after three micro-batches of varying lengths."""
    model = Language(run.options, width=288, layers=3).cuda()
    optimizer = Signs(model.parameters())
    for _ in run.steps(8):
        for _ in range(3):
            (model.loss(run.tokens(10, run.random.randint(60, 240))) / 3).backward()
        optimizer.step()
        optimizer.zero_grad()


def inference(run):
    """No training: batches of images of several sizes, with results that stay on the GPU."""
    model = resnet((64, 128)).cuda().eval()
    with torch.no_grad():
        results = [model(run.images(32, run.random.choice((64, 96, 128)))).softmax(1) for _ in run.steps(20)]
    torch.cat(results)


def attention_written_out(run):
    model = nn.Sequential(nn.Embedding(VOCABULARY, 128), *(Attending(run.options) for _ in range(3)), nn.Linear(128, 8)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(8):
        run.update(optimizer, model(run.tokens(8, 384)).square().mean())


def small_batch(run):
    """A model that is large for its batch: the peak is in the optimizer."""
    model = nn.Sequential(*(part for _ in range(5) for part in (nn.Linear(1536, 1536), nn.GELU()))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(8):
        run.update(optimizer, model(torch.randn(run.batch(16), 1536).cuda()).square().mean())


def updated_by_hand(run):
    """Training without an optimizer."""
    model = Encoder(run.options, layers=4).cuda()
    for _ in run.steps(12):
        model(run.tokens(28, run.random.randint(50, 180))).square().mean().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(parameter.grad, alpha=1e-3)
                parameter.grad = None


PROGRAMS = (
    fixed_batch, varying_lengths, last_batch_larger, accumulation, checkpointed, images_autocast, growing_cycles,
    leaking_losses, batch_15_times, recurrent_lengths, evaluation_between, no_momentum, sorted_lengths,
    autocast_accumulation, leaking_hook, image_sizes, adversarial, logits_gathered, rmsprop_clipped, adagrad_embeddings,
    momentum_validated, own_optimizer, inference, attention_written_out, small_batch, updated_by_hand,
)


def main():
    programs = {program.__name__: program for program in PROGRAMS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=programs)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch-scale", type=float, default=1.0, help="factor of every batch size")
    parser.add_argument("--length-scale", type=float, default=1.0, help="factor of every length of tokens")
    parser.add_argument("--checkpoint", action="store_true", help="recompute the layers in the backward pass")
    parser.add_argument("--autocast", action="store_true", help="compute language models and encoders in bfloat16")
    parser.add_argument("--fused-attention", action="store_true", help="in attention_written_out")
    parser.add_argument("--micro-batches", type=int, default=1, help="backward passes for each step of fixed_batch")
    parser.add_argument("--zero-grad-after", action="store_true", help="zero gradients after the optimizer's step")
    parser.add_argument("--optimizer", choices=("fused", "single", "8bit"), help="instead of the default implementation")
    parser.add_argument("--zero-grad", action="store_true", help="zero gradients in last_batch_larger, too")
    parser.add_argument("--no-leak", dest="leak", action="store_false", help="disable the leak of the programs that leak")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    if options.optimizer == "8bit":
        import bitsandbytes

        torch.optim.Adam, torch.optim.AdamW = bitsandbytes.optim.Adam8bit, bitsandbytes.optim.AdamW8bit
    elif options.optimizer:
        how = {"fused": True} if options.optimizer == "fused" else {"foreach": False}
        for name in ("Adam", "AdamW", "SGD", "RMSprop"):
            setattr(torch.optim, name, functools.partial(getattr(torch.optim, name), **how))
    run = Run(options)
    end = {"available": torch.cuda.mem_get_info()[0], "finished": False}
    try:
        programs[options.program](run)
        end["finished"] = True
    finally:
        end["step"] = run.step
        run.end_step()
        end["peaks"] = run.peaks
        print(json.dumps(end), flush=True)


if __name__ == "__main__":
    main()
