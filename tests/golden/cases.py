"""Generates the recordings for the texts in tests/golden/answers/: a small training loop with various
problems. Each case is a function that returns the lines of an event log.

Usage: cases.py FOLDER     writes all cases to FOLDER
"""

import gzip
import json
import pathlib
import pickle
import sys
import zipfile

from caching_allocator import GIB, MIB, Allocator, Log, OutOfMemory

LAYERS = 4
MAIN = "main train.py:52"
ENGINE = ("torch::autograd::Engine::evaluate_function @/lib/libtorch_cpu.so", "torch::autograd::Engine::thread_main @/lib/libtorch_cpu.so")


class Program:
    """A model in training with, per layer, `weight` bytes of parameters, `activation` bytes of activations
    and `scores` bytes of attention scores."""

    def __init__(self, log, allocator, weight=512 * MIB, activation=256 * MIB, scores=512 * MIB):
        self.log, self.memory = log, allocator
        self.weight, self.activation, self.scores = weight, activation, scores
        self.weights, self.gradients, self.state, self.kept = [], [], [], []
        self.count = 0
        s = log.stack
        self.s_parameters = s("at::empty_cuda", "__init__ /venv/torch/nn/modules/linear.py:108", "Block.__init__ /home/u/model.py:21",
                              "main train.py:12")
        self.s_inputs = s("at::_to_copy", "batch_to_device /home/u/data.py:30", "main train.py:34")
        self.s_activation = s("at::linear", "forward /venv/torch/nn/modules/linear.py:125", "Mlp.forward /home/u/model.py:64",
                              "Net.forward /home/u/model.py:101", MAIN)
        self.s_scores = s("at::matmul", "Attention.forward /home/u/model.py:88", "Net.forward /home/u/model.py:101", MAIN)
        self.s_softmax = s("at::softmax", "Attention.forward /home/u/model.py:90", "Net.forward /home/u/model.py:101", MAIN)
        self.s_gradient = s("at::mm", *ENGINE)
        self.s_state = s("at::zeros_like", "_init_group /venv/torch/optim/adamw.py:140", "step /venv/torch/optim/adamw.py:230",
                         "main train.py:41")
        self.s_history = s("at::cross_entropy_loss", "loss_of /home/u/train.py:37", MAIN)

    def build(self):
        self.weights = [self.memory.alloc(self.weight, self.s_parameters) for _ in range(LAYERS)]

    def range(self, name, body):
        self.log.add("range_begin", name=name)
        body()
        self.log.add("range_end", name=name)

    def step(self):
        self.log.add("mark", name="step", index=self.count)
        self.count += 1
        inputs = self._inputs()
        self.saved = []
        self.range("forward", self._forward)
        self.range("backward", self._backward)
        self.range("Optimizer.step#AdamW.step", self._optimize)
        for address in self.gradients:
            self.memory.free(address)
        self.gradients = []
        self.memory.free(inputs)

    def _inputs(self):
        return self.memory.alloc(16 * MIB, self.s_inputs)

    def _forward(self):
        for _ in range(LAYERS):
            self.saved.append(self.memory.alloc(self.scores, self.s_scores))
            softmax = self.memory.alloc(self.scores // 2, self.s_softmax)
            self.saved.append(self.memory.alloc(self.activation, self.s_activation))
            self.memory.free(softmax)

    def _backward(self):
        for _ in range(LAYERS):
            self.gradients.append(self.memory.alloc(self.weight, self.s_gradient, forward=self.s_activation))
            self.memory.free(self.saved.pop())
            self.memory.free(self.saved.pop())

    def _optimize(self):
        while len(self.state) < 2 * LAYERS:
            self.state.append(self.memory.alloc(self.weight, self.s_state))

    def keep(self, size):
        self.kept.append(self.memory.alloc(size, self.s_history))


class ObservedProgram(Program):
    """The same in half precision with float32 master weights, as PyTorch describes it: types, shapes and roles of
    tensors. The inputs are 8 samples of 1,024 tokens."""

    def tensor(self, shape, dtype, stack, role=None, node=None, forward=None):
        numbers = 1
        for size in shape:
            numbers *= size
        bytes_of = {"bfloat16": 2, "float32": 4, "int64": 8}
        address = self.memory.alloc(numbers * bytes_of[dtype], stack, forward=forward, dtype=dtype, shape=str(list(shape)))
        if role:
            self.role(address, role, node, stack if node else None)
        return address

    def role(self, address, role, node=None, forward=None):
        self.log.add("role", heap="pytorch", memory="block", device=0, address=address, role=role, node=node,
                     forward_stack=forward)

    def build(self):
        self.weights = [self.tensor((8192, 16384), "bfloat16", self.s_parameters, ["parameter"]) for _ in range(LAYERS)]

    def _inputs(self):
        return self.tensor((8, 1024), "int64", self.s_inputs, ["saved"], "EmbeddingBackward0")

    def _forward(self):
        for weight in self.weights:
            scores = self.tensor((8, 16, 1024, 1024), "bfloat16", self.s_scores)
            self.saved.append(self.tensor((8, 16, 1024, 1024), "float32", self.s_softmax, ["saved"], "SoftmaxBackward0"))
            self.memory.free(scores)
            self.saved.append(self.tensor((8, 1024, 8192), "bfloat16", self.s_activation, ["saved"], "AddmmBackward0"))
            if self.count == 1:
                self.role(weight, ["parameter", "expects_gradient"])

    def _backward(self):
        for _ in range(LAYERS):
            self.gradients.append(self.tensor((8192, 16384), "bfloat16", self.s_gradient, ["gradient"],
                                              forward=self.s_activation))
            self.memory.free(self.saved.pop())
            self.memory.free(self.saved.pop())

    def _optimize(self):
        while len(self.state) < 3 * LAYERS:
            self.state.append(self.tensor((8192, 16384), "float32", self.s_state))


def start(total=80 * GIB, limit=None, tick_ns=1_000_000, weight=512 * MIB, kind=Program, **header):
    log = Log(total=total, tick_ns=tick_ns, **header)
    memory = Allocator(log, total, limit)
    log.add("sample", device=0, used_bytes=500 * MIB, total_bytes=total, source="nvml",
            processes=[{"pid": 41210, "bytes": 500 * MIB, "name": "python"}])
    program = kind(log, memory, weight=weight)
    program.build()
    return log, memory, program


def sample(log, memory, others=()):
    total = log.lines[0]["devices"][0]["total_bytes"]
    own = total - memory.driver_free - sum(bytes_ for _, bytes_ in others)
    processes = [{"pid": 41210, "bytes": own, "name": "python"}]
    processes += [{"pid": pid, "bytes": bytes_, "name": "python"} for pid, bytes_ in others]
    log.add("sample", device=0, used_bytes=total - memory.driver_free, total_bytes=total, source="nvml",
            processes=processes)


def ends(log, code=0):
    log.lines.append({"kind": "snapshot", "t_ns": log.t_ns, "name": "exit"})
    log.lines.append({"kind": "facts", "end_t_ns": log.t_ns, "exit": {"kind": "exited", "code": code, "known_by": "run"}})
    return log.lines


def fails(log, memory, body, others=()):
    try:
        body()
    except OutOfMemory:
        sample(log, memory, others=others)
        log.lines.append({"kind": "snapshot", "t_ns": log.t_ns, "name": "oom-1"})
        return ends(log, 1)
    raise AssertionError("the case did not run out of memory")


def clean():
    """A program without problems."""
    log, memory, program = start(tick_ns=200_000)
    for _ in range(230):
        program.step()
    sample(log, memory)
    return ends(log)


def short():
    """Too few steps for a verdict about leaks."""
    log, memory, program = start(tick_ns=5_000_000)
    for _ in range(12):
        program.step()
    sample(log, memory)
    return ends(log)


def capacity():
    """The first step needs more than the device has."""
    log, memory, program = start(tick_ns=50_000_000)
    program.scores = 22 * GIB
    return fails(log, memory, program.step)


def leak():
    """A tensor is kept at each step until the device is full."""
    log, memory, program = start(total=24 * GIB, tick_ns=2_000_000)

    def train():
        while True:
            program.step()
            program.keep(48 * MIB)
            assert program.count < 1000

    return fails(log, memory, train)


def fragmentation():
    """Small long-lived blocks are allocated in segments of large temporary blocks."""
    log, memory, program = start(total=24 * GIB, tick_ns=10_000_000)
    metrics = log.stack("at::zeros", "update /home/u/metrics.py:52", "main train.py:47")
    big = log.stack("at::cat", "collate /home/u/data.py:20", "main train.py:33")
    program.step()
    program.step()
    memory.empty_cache()

    def pin():
        large = []
        for _ in range(36):
            memory.free(memory.alloc(462 * MIB, big))
            memory.alloc(12 * MIB, metrics)
            large.append(memory.alloc(450 * MIB, big))
        for address in large:
            memory.free(address)
        memory.alloc(3 * GIB, big)

    return fails(log, memory, pin)


def outside():
    """A library allocates from the driver, bypassing the framework's allocator."""
    log, memory, program = start(tick_ns=20_000_000)
    knn = log.stack("cudaMalloc @/lib/libcudart.so.13", "knn_build @/home/u/libmyext.so", "build_index /home/u/index.py:18",
                    "main train.py:27")
    for _ in range(8):
        memory.driver_alloc(8 * GIB, knn)
    program.scores = 4 * GIB
    return fails(log, memory, program.step)


def cap():
    """The allocator has its own limit, and much of the device is free."""
    log, memory, program = start(limit=16 * GIB, tick_ns=20_000_000)
    log.add("allocator", heap="pytorch", device=0, action="fraction", value=2000)
    program.scores = 4 * GIB
    return fails(log, memory, program.step)


def other_process():
    """Another process uses most of the device."""
    total, other = 80 * GIB, 58 * GIB
    log, memory, program = start(tick_ns=20_000_000)
    memory.driver_free -= other
    sample(log, memory, others=[(41388, other)])
    program.scores = 5 * GIB
    return fails(log, memory, program.step, others=[(41388, other)])


def no_stacks():
    """A program in C++ that calls the driver itself, recorded without stacks."""
    log = Log(tick_ns=1_000_000, argv=["./solver"], libraries={})
    memory = Allocator(log, 80 * GIB)
    blocks = [memory.driver_alloc((i + 1) * 64 * MIB, None) for i in range(8)]
    for i, address in enumerate(blocks[::2]):
        memory.driver_free_memory(address, (2 * i + 1) * 64 * MIB)
    return ends(log)


def empty():
    """Nothing was allocated."""
    return Log(argv=["python", "nothing.py"]).lines


def base():
    """The recording that `changed` is compared with."""
    log, memory, program = start(tick_ns=5_000_000, settings={"cuda_graph_sizes": "linear"})
    for _ in range(12):
        program.step()
    return ends(log)


def changed():
    """A later version of the program: lines have moved, activations have grown, and there is a new
    allocation."""
    log, memory, program = start(tick_ns=5_000_000, settings={"cuda_graph_sizes": "exponential"})
    program.s_activation = log.stack("at::linear", "forward /venv/torch/nn/modules/linear.py:125", "Mlp.forward /home/u/model.py:71",
                                     "Net.forward /home/u/model.py:108", MAIN)
    program.activation = 384 * MIB
    ema = log.stack("at::clone", "Ema.__init__ /home/u/ema.py:9", "main train.py:20")
    memory.alloc(600 * MIB, ema)
    for _ in range(12):
        program.step()
    return ends(log)


def observed():
    """PyTorch's types, shapes and roles are recorded."""
    log, memory, program = start(tick_ns=5_000_000, kind=ObservedProgram)
    for _ in range(12):
        program.step()
    sample(log, memory)
    return ends(log)


def observed_failure():
    """The first backward pass needs more than the device has."""
    log, memory, program = start(total=8 * GIB, tick_ns=5_000_000, kind=ObservedProgram)
    return fails(log, memory, program.step)


CASES = (clean, short, capacity, leak, fragmentation, outside, cap, other_process, no_stacks, empty, base, changed, observed,
         observed_failure)


def write_foreign(folder):
    """Writes files of other formats, which users may pass by mistake."""
    (folder / "notes.txt").write_text("Things to try: a smaller batch, checkpointing.\n")
    (folder / "loss.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64))
    (folder / "nothing").write_bytes(b"")
    (folder / "folder").mkdir()
    (folder / "report.nsys-rep").write_bytes(bytes(range(64)) * 4)
    (folder / "report.sqlite").write_bytes(b"SQLite format 3\0" + bytes(84))
    kineto = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm"}]}
    (folder / "trace.json").write_text(json.dumps(kineto, indent=1))
    with gzip.GzipFile(folder / "trace.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(kineto).encode())
    (folder / "metrics.json").write_text('{"loss": 2.5, "step": 10}\n')
    with zipfile.ZipFile(folder / "archive.zip", "w") as file:
        file.writestr("readme.txt", "nothing")
    with zipfile.ZipFile(folder / "model.pt", "w") as file:
        file.writestr("model/data.pkl", pickle.dumps({"weight": 1}, protocol=2))
        file.writestr("model/version", "3")
    (folder / "state.pkl").write_bytes(pickle.dumps({"epoch": 3, "lr": [0.1, 0.2]}, protocol=2))
    (folder / "old.pt").write_bytes(pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2) + pickle.dumps(1001, protocol=2))
    (folder / "libtorch.so").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(64))


def write(folder):
    for case in CASES:
        lines = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in case())
        (folder / f"{case.__name__}.jsonl").write_text(lines)
        if case is short:  # as if the writer had been killed
            (folder / "cut.jsonl").write_text(lines[:len(lines) * 2 // 3])
    write_foreign(folder)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
