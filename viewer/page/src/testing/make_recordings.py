#!/usr/bin/env python3
"""Writes recordings.html beside itself: two small recordings as `gpumemtrace export --format html` puts
them into a page, without the page. Unit tests, browser tests and `vite dev` show them. It is written again
if the format of standalone files changes.

Both are trainings with PyTorch's allocator: parameters, activations and gradients with their roles and
types, the optimizer's state, temporary memory, some of it on a second stream, blocks that wait for that
stream, and a little memory that is kept in each step. The driver is sampled after each phase. Half way the
first one fails to allocate 3 GiB, and goes on.

Usage: make_recordings.py PROGRAM     PROGRAM is a built gpumemtrace
"""

import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

OUT = pathlib.Path(__file__).resolve().with_name("recordings.html")
sys.path.insert(0, str(OUT.parents[4] / "tests" / "golden"))
from caching_allocator import GIB, KIB, MIB, Allocator, Log, OutOfMemory  # noqa: E402

TRAIN = "train /home/u/train.py:20"
ENGINE = ("torch::autograd::Engine::evaluate_function @/lib/libtorch_cpu.so", "torch::autograd::Engine::thread_main @/lib/libtorch_cpu.so")
MAIN_THREAD, AUTOGRAD_THREAD = 101, 102


class Training:
    def __init__(self, seed, layers, steps, fails_in=None):
        self.random, self.steps, self.fails_in = random.Random(seed), steps, fails_in
        self.log = Log(total=2 * GIB)
        self.log.thread = MAIN_THREAD
        self.memory = Allocator(self.log, 2 * GIB)
        self.sizes = [(1 + self.below(24)) * MIB for _ in range(layers)]
        self.waiting = []

    def below(self, limit):
        return int(self.random.random() * limit)

    def alloc(self, size, *frames, stream=0, forward=None, dtype=None, role=None):
        self.log.tick_ns = 1000 + self.below(400_000)
        address = self.memory.alloc(size, self.log.stack("at::empty_cuda @/lib/libtorch_cuda.so", *frames), stream, forward)
        if dtype:
            block = next(line for line in reversed(self.log.lines) if line["kind"] == "alloc")
            block |= {"dtype": dtype, "shape": f"[{size // (2 if dtype == 'bfloat16' else 4)}]"}
        if role:
            node = {"node": "AddmmBackward0"} if role == "saved" else {}
            self.log.lines.append({"kind": "role", "t_ns": self.log.t_ns, "heap": "pytorch", "device": 0, "address": address,
                                   "role": [role], "thread": self.log.thread} | node)
        return address

    def free(self, address):
        self.memory.free_later(address)
        self.memory.free_done(address)

    def temporary(self, size, *frames):
        for i in range(3):
            self.free(self.alloc(max(512, size >> 2 * i), *frames, TRAIN, stream=7 * (self.below(8) == 0)))

    def range(self, name, body, *args):
        self.log.add("range_begin", name=name)
        body(*args)
        self.log.add("range_end", name=name)
        self.sample()

    def sample(self):
        """What the driver says, while another process holds 64 MiB."""
        used = 2 * GIB - self.memory.driver_free
        self.log.lines.append({"kind": "sample", "t_ns": self.log.t_ns, "device": 0, "source": "nvml", "used_bytes": used + 64 * MIB,
                               "total_bytes": 2 * GIB, "processes": [{"pid": 41210, "bytes": used}]})

    def run(self):
        for i, size in enumerate(self.sizes):
            self.alloc(size, "__init__ /venv/torch/nn/modules/linear.py:108", f"build /home/u/model.py:{30 + i}", TRAIN,
                       dtype="bfloat16", role="parameter")
        for step in range(self.steps):
            self.log.tick_ns = 20_000_000
            self.log.add("mark", name="step", index=step)
            saved, gradients = [], []
            self.range("forward", self.forward, saved)
            self.log.thread = AUTOGRAD_THREAD
            self.range("backward", self.backward, saved, gradients)
            self.log.thread = MAIN_THREAD
            self.range("Optimizer.step#AdamW.step", self.optimize, step, gradients)
            self.alloc(500 * KIB + 512 * step, "log_metrics /home/u/train.py:66", TRAIN)
            if step == self.fails_in:
                self.fail()
        self.log.add("mark", name="trained")
        self.log.lines.append({"kind": "snapshot", "t_ns": self.log.t_ns, "name": "exit"})
        return self.log.lines

    def forward(self, saved):
        for i, size in enumerate(self.sizes):
            saved.append(self.alloc(2 * size, f"forward /home/u/model.py:{80 + i}", TRAIN, dtype="bfloat16", role="saved"))
            self.temporary(size, f"matmul /home/u/layers.py:{12 + i % 5}", f"forward /home/u/model.py:{80 + i}")

    def backward(self, saved, gradients):
        for i, size in reversed(list(enumerate(self.sizes))):
            gradients.append(self.alloc(size, *ENGINE, forward=self.log.stack(f"forward /home/u/model.py:{80 + i}", TRAIN),
                                        dtype="bfloat16", role="gradient"))
            self.temporary(size // 2, "grad_input /home/u/layers.py:52")
            if i % 7 == 0:
                self.memory.free_later(saved[i])
                self.waiting.append(saved[i])
            else:
                self.free(saved[i])

    def optimize(self, step, gradients):
        while self.waiting:
            self.memory.free_done(self.waiting.pop())
        for size in self.sizes if step == 0 else []:
            self.alloc(2 * size, "_init_group /venv/torch/optim/adamw.py:140", "step /venv/torch/optim/adamw.py:230", TRAIN, dtype="float32")
        for address in gradients:
            self.free(address)

    def fail(self):
        try:
            self.alloc(3 * GIB, "evaluate /home/u/train.py:71", TRAIN)
        except OutOfMemory:
            pass


def main(program):
    trainings = {"train": Training(1, 10, 12, fails_in=5), "wider": Training(2, 11, 10)}
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{name}.jsonl" for name in trainings]
        for file, training in zip(files, trainings.values()):
            lines = "".join(json.dumps(line) + "\n" for line in training.run())
            (pathlib.Path(folder) / file).write_text(lines)
        command = [pathlib.Path(program).resolve(), "export", "--format", "html", *files, "-o", "run.html"]
        subprocess.run(command, cwd=folder, check=True)
        html = (pathlib.Path(folder) / "run.html").read_text()
    OUT.write_text("".join(re.findall(r'<script type="application/octet-stream"[^<]*</script>\n', html)))


if __name__ == "__main__":
    main(sys.argv[1])
