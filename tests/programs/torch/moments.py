"""Moments of a training program at which its allocator is asked what it holds.

    moments.begin()                 first thing in main(), before a device's memory is allocated
    moments.moment("forward done")  where it is interesting, while no other thread allocates
    moments.end()                   last thing in main()

A moment puts a mark named "moment" into the recording, where a profiler is loaded that takes
marks, and then writes what PyTorch says to the folder that $GMT_MOMENTS names, as PID.INDEX.pickle:

    {"name", "index", "pid", "torch": version,
     "snapshot": what torch.cuda.memory._snapshot() returns; its traces at the end only; None
                 where the allocator keeps no blocks (backend:cudaMallocAsync),
     "stats": {device: torch.cuda.memory_stats(device)}; empty for an allocator of the user's}

$GMT_HISTORY (python, cpp or all) switches PyTorch's own history on, with these stacks at
allocations; $GMT_ANOMALY, in addition, the detection of anomalies, with which the history of a
backward pass has the stacks of the forward pass. Without these variables nothing but the mark is
left. Neither the mark nor the asking allocates memory of a device or waits for one.
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
    """The profiler's own function, of whatever library is loaded that has it."""
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
    """A collection frees tensors whenever it likes, between mark and snapshot too."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _write(folder, says):
    """Whole or not at all: the process may be killed meanwhile."""
    path = pathlib.Path(folder) / f"{says['pid']}.{says['index']}.pickle"
    being_written = path.with_suffix(".tmp")
    being_written.write_bytes(pickle.dumps(says, protocol=4))
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
