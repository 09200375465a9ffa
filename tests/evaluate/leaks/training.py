#!/usr/bin/env python3
"""A small training loop with one additional habit: a leak, or something that resembles one.

    training.py HABIT [--steps 240] [--seed N]

A comment "leaks: HABIT..." marks the lines that allocate leaked memory, which is the truth for
evaluate_torch.py. At the end, the program prints as JSON how many bytes a step leaked, according to
PyTorch's own counters and its requests to the driver.
"""

import argparse
import collections
import ctypes
import json
import random

import torch
from torch.nn import functional

WARM_UP = 2  # steps; the optimizer creates its state in the first one
MIB = 1 << 20


class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Linear(64, width)
        self.outer = torch.nn.Linear(width, 32)

    def forward(self, x):
        return self.outer(functional.relu(self.inner(x)))  # leaks: outputs_kept hook_closure some_steps graph_kept


class Training:
    def __init__(self, habit, seed):
        self.habit = habit
        self.random = random.Random(seed)
        self.model = Net(self.random.choice((128, 192, 256))).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=True)
        self.kept, self.table, self.asked = [], {}, 0
        self.queue = collections.deque(maxlen=32)
        if habit == "hook_closure":
            self.model.outer.register_forward_hook(lambda _, __, output: self.kept.append(output.detach()))

    def step(self, number):
        x = torch.randn(32, 64, device="cuda")
        y = torch.zeros(32, dtype=torch.long, device="cuda")
        output = self.model(x)  # leaks: outputs_kept hook_closure some_steps
        loss = functional.cross_entropy(output, y)  # leaks: loss_kept
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        getattr(self, self.habit)(number, output, loss)

    # ---- Leaks

    def loss_kept(self, _, __, loss):
        self.kept.append(loss)

    def graph_kept(self, _, __, ___):
        x = torch.randn(16, 64, device="cuda")  # leaks: graph_kept
        self.kept.append(self.model(x).square().mean())  # leaks: graph_kept

    def outputs_kept(self, _, output, __):
        self.kept.append(output.detach())

    def hook_closure(self, _, __, ___):
        pass

    def some_steps(self, _, output, __):
        if self.random.random() < 0.2:
            self.kept.append(output.detach())

    def every_evaluation(self, number, _, __):
        if number % 10 == 9:
            with torch.no_grad():
                batch = torch.randn(128, 64, device="cuda")
                self.kept.append(self.model(batch).softmax(1))  # leaks: every_evaluation

    def shapes_never_recur(self, number, _, __):
        length = 512 + number
        self.table[length] = torch.ones(length, device="cuda")  # leaks: shapes_never_recur

    def concatenated(self, _, output, __):
        parts = [*self.kept, output.detach()]
        self.kept = [torch.cat(parts)]  # leaks: concatenated

    def gradients_kept(self, _, __, ___):
        self.kept.append(self.model.inner.weight.grad.clone())  # leaks: gradients_kept

    def pinned(self, _, __, ___):
        self.kept.append(torch.empty(65536, dtype=torch.uint8, pin_memory=True))  # leaks: pinned
        self.asked += 65536

    def driver(self, _, __, ___):
        pointer = ctypes.c_void_p()
        allocate = ctypes.CDLL(None).cudaMalloc
        assert allocate(ctypes.byref(pointer), ctypes.c_size_t(MIB)) == 0  # leaks: driver
        self.asked += MIB

    # ---- No leaks

    def nothing(self, _, __, ___):
        pass

    def previous_loss(self, _, __, loss):
        self.kept = [loss]

    def queue_of_32(self, _, output, __):
        self.queue.append(output.detach().clone())

    def losses_of_an_epoch(self, number, _, loss):
        self.kept.append(loss.detach())
        if number % 40 == 39:
            self.kept.clear()

    def masks_by_shape(self, _, __, ___):
        length = 512 * self.random.randint(1, 8)
        if length not in self.table:
            self.table[length] = torch.ones(length, device="cuda")

    def copy_of_the_model(self, number, _, __):
        if number == 100:
            self.kept = [p.detach().clone() for p in self.model.parameters()]

    def evaluation(self, number, _, __):
        if number % 20 == 19:
            with torch.no_grad():
                for _ in range(4):
                    self.model(torch.randn(512, 64, device="cuda"))

    def biggest_so_far(self, _, __, ___):
        length = self.random.randint(1, 1 << 16)
        if not self.kept or self.kept[0].numel() < length:
            self.kept = [torch.empty(length, device="cuda")]

    def collected_late(self, number, output, __):
        garbage = {"tensor": output.detach().clone()}
        garbage["itself"] = garbage
        if number % 25 == 24:
            __import__("gc").collect()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("habit")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    __import__("gc").disable()  # habits collect explicitly
    training = Training(options.habit, options.seed)
    held = asked = 0
    for number in range(options.steps):
        training.step(number)
        if number + 1 == WARM_UP:
            held, asked = torch.cuda.memory_allocated(), training.asked
    grown = torch.cuda.memory_allocated() - held + training.asked - asked
    print(json.dumps({"bytes_per_step": grown / (options.steps - WARM_UP)}))


if __name__ == "__main__":
    main()
