"""Reports what a training program knows about its memory: which storages are its parameters,
gradients, optimizer state, batch, and tensors that autograd saved.

    truth = Truth(models=[model], optimizers=[optimizer])
    with truth.watching():          notes the tensors that the forward pass saves, if checkpointing
        loss = model(batch)         hides them
    truth.moment("forward")         records a mark and writes the storages at that moment

A moment is one line of JSON in the file that $GMT_TRUTH names: {"index", "name", "storages":
[[address, category], ...]}. If a storage has several uses, the first one counts: a parameter that
autograd has saved is a parameter. A moment allocates no device memory.
"""

import contextlib
import ctypes
import itertools
import json
import os
import weakref

import torch


def _find_mark():
    try:
        mark = ctypes.CDLL(None).gpumemtrace_mark
    except AttributeError:
        return lambda name, index: None
    mark.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    mark.restype = None
    return mark


def saved_by_graphs(outputs):
    """Returns the tensors that the nodes of these outputs' graphs have saved for the backward pass."""
    seen, saved = set(), []
    waiting = [tensor.grad_fn for tensor in outputs]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        try:
            for name in dir(node):
                if name.startswith("_raw_saved_") and name != "_raw_saved_tensors":
                    saved.append(getattr(node, "_saved_" + name.removeprefix("_raw_saved_")))
            saved.append(getattr(node, "saved_tensors", ()))
        except RuntimeError:  # its backward pass has run
            pass
        waiting += [following for following, _ in node.next_functions]
    return list(_tensors(saved))


class _Saved:
    """Replaces a tensor that autograd saved; autograd holds the only strong reference."""

    def __init__(self, tensor):
        self.tensor = tensor


def _is_parameter(tensor):
    base = tensor._base if tensor._base is not None else tensor
    return isinstance(base, torch.nn.Parameter) or (base.is_leaf and base.requires_grad)


def _tensors(things):
    for thing in things:
        if isinstance(thing, torch.Tensor):
            yield thing
        elif isinstance(thing, dict):
            yield from _tensors(thing.values())
        elif isinstance(thing, (list, tuple)):
            yield from _tensors(thing)


class Truth:
    def __init__(self, models=(), optimizers=()):
        self.models, self.optimizers = list(models), list(optimizers)
        self.inputs, self.outputs = [], []
        # While a sharded model is in use, parameters() returns its gathered weights.
        self.shards = [p for m in models for p in m.parameters() if hasattr(p, "to_local")]
        # Whether the model uses checkpointing. Reading the tensors that its graph saved would
        # recompute them, so each saved tensor is packed into a _Saved instead.
        self.checkpoints = False
        self.in_backward = False
        self._saved = weakref.WeakSet()
        self._recomputed = []  # weak references; not a WeakSet, because tensors compare by element
        self._indices = itertools.count()
        self._mark = _find_mark()
        path = os.environ.get("GMT_TRUTH")
        self._file = open(path, "a", encoding="utf-8") if path else None  # noqa: SIM115

    @contextlib.contextmanager
    def watching(self):
        if not self.checkpoints:
            yield
            return

        def pack(tensor):
            saved = _Saved(tensor)
            if not _is_parameter(tensor):
                self._saved.add(saved)
            return saved

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
            yield

    def watch_recomputation(self, module):
        """Notes the outputs of modules that are called inside a backward pass as recomputed."""

        def note(_, __, output):
            if self.in_backward:
                for tensor in _tensors([output]):
                    self._recomputed.append(weakref.ref(tensor))

        for part in module.modules():
            part.register_forward_hook(note)

    @contextlib.contextmanager
    def backward(self, name="in_backward", at=()):
        """Adds moments in the middle of the pass, when the gradients of `at` are available."""
        self.in_backward = True
        handles = [
            parameter.register_post_accumulate_grad_hook(lambda _: self.moment(name))
            for parameter in at
        ]
        try:
            yield
        finally:
            self.in_backward = False
            for handle in handles:
                handle.remove()

    def _known(self):
        shown = [p for m in self.models for p in m.parameters()]
        parameters = self.shards or shown
        yield "parameters", parameters
        yield "communication", shown if self.shards else []
        yield "parameters", [b for m in self.models for b in m.buffers()]
        yield "gradients", [p.grad for p in parameters if p.grad is not None]
        yield "optimizer_state", [o.state for o in self.optimizers]
        yield "inputs", self.inputs
        self._recomputed = [tensor for tensor in self._recomputed if tensor() is not None]
        yield "recomputed", [tensor() for tensor in self._recomputed]
        yield "activations", [s.tensor for s in list(self._saved)]
        if not self.checkpoints:
            yield "activations", [t for t in saved_by_graphs(self.outputs) if not _is_parameter(t)]
        yield "activations", self.outputs

    def moment(self, name):
        index = next(self._indices)
        self._mark(b"truth", index)
        if self._file is None:
            return
        storages = {}
        for category, things in self._known():
            if isinstance(things, list) and things and isinstance(things[0], dict):
                things = [value for state in things for value in state.values()]
            for tensor in _tensors(things):
                local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
                if not local.is_cuda:
                    continue
                address = local.untyped_storage().data_ptr()
                if address:
                    storages.setdefault(address, category)
        line = {"index": index, "name": name, "storages": list(storages.items())}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
