"""Moments of a training program at which the state of PyTorch's allocator is saved.

    moments.begin()                 first in main(), before device memory is allocated
    moments.moment("forward done")  at interesting points, while no other thread allocates
    moments.end()                   last in main()

A moment records a mark named "moment", if a profiler with marks is loaded, and then writes
PyTorch's state as PID.INDEX.pickle to the folder $GMT_MOMENTS:

    {"name", "index", "pid", "torch": version,
     "snapshot": the result of torch.cuda.memory._snapshot(), with traces at the end only; None if
                 the allocator keeps no blocks (backend:cudaMallocAsync),
     "stats": {device: torch.cuda.memory_stats(device)}; empty with a pluggable allocator}

$GMT_HISTORY (python, cpp or all) enables PyTorch's own history, with these stacks at allocations.
$GMT_ANOMALY enables anomaly detection, with which the history of a backward pass has the stacks of
the forward pass. Without these variables, a moment only records the mark. A moment neither allocates
device memory nor synchronises a device.
"""

import contextlib
import ctypes
import gc
import itertools
import os
import pathlib
import pickle

import torch

_indices = itertools.count()


def _find_mark():
    """Returns the profiler's function from any loaded library, or None."""
    try:
        mark = ctypes.CDLL(None).gpumemtrace_mark
    except AttributeError:
        return None
    mark.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    mark.restype = None
    return mark


_mark = _find_mark()


def begin():
    history = os.environ.get("GMT_HISTORY")
    if history and torch.cuda.is_available() and _keeps_blocks():
        torch.cuda.memory._record_memory_history("all", context="alloc", stacks=history)
    if os.environ.get("GMT_ANOMALY"):
        torch.autograd.set_detect_anomaly(True, check_nan=False)


def _keeps_blocks():
    return torch.cuda.get_allocator_backend() == "native"


def _stats():
    if torch.cuda.get_allocator_backend() == "pluggable":
        return {}
    return {n: torch.cuda.memory_stats(n) for n in range(torch.cuda.device_count())}


def _snapshot(traces):
    if not _keeps_blocks():
        return None
    if traces:
        return torch.cuda.memory._snapshot()
    try:
        return {"segments": torch.cuda.memory_snapshot(include_traces=False)}
    except TypeError:  # before PyTorch 2.11
        return {"segments": torch.cuda.memory_snapshot()}


@contextlib.contextmanager
def _without_collections():
    """Disables garbage collection, which could free tensors between mark and snapshot."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _write(folder, state):
    """Writes the file atomically, because the process may be killed meanwhile."""
    path = pathlib.Path(folder) / f"{state['pid']}.{state['index']}.pickle"
    being_written = path.with_suffix(".tmp")
    being_written.write_bytes(pickle.dumps(state, protocol=4))
    being_written.rename(path)


def moment(name, traces=False):
    index = next(_indices)
    folder = os.environ.get("GMT_MOMENTS")
    with _without_collections():
        if _mark:
            _mark(b"moment", index)
        if not folder or not torch.cuda.is_initialized():
            return
        _write(
            folder,
            {
                "name": name,
                "index": index,
                "pid": os.getpid(),
                "torch": str(torch.__version__),
                "snapshot": _snapshot(traces),
                "stats": _stats(),
            },
        )


def end():
    moment("end", traces=True)
