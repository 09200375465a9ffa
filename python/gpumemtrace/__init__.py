"""Annotates the recording that gpumemtrace makes of a program's GPU memory.

    import gpumemtrace

    for batch in loader:
        with gpumemtrace.region("forward"):
            loss = model(batch)
        ...
        gpumemtrace.step()

These calls may stay in a program permanently: if it is not recorded, every function does nothing,
takes less than a microsecond and cannot fail, except for invalid arguments.

The recording begins with the first call of the GPU. Earlier annotations are not in it.

A program that was started without gpumemtrace may call start(), ideally before it uses the GPU.

read() and to_parquet() read recordings that are complete, as Arrow tables and into Parquet files.

Thread safety: all functions, from any thread. After a fork, the child annotates its own recording.
"""

import functools
import itertools
import os
from typing import Any, Callable, List, Optional, Tuple, TypeVar

__all__ = ["mark", "read", "recording", "region", "snapshot", "start", "step", "to_parquet"]

_F = TypeVar("_F", bound=Callable[..., Any])
_NO_INDEX = 2**64 - 1  # the value for "no index" in the library's interface


class _Absent:
    """The functions used if the process is not recorded."""

    @staticmethod
    def gpumemtrace_mark(name: bytes, index: int) -> None:
        pass

    @staticmethod
    def gpumemtrace_range_begin(name: bytes) -> int:
        return 0

    @staticmethod
    def gpumemtrace_range_end(number: int) -> None:
        pass

    @staticmethod
    def gpumemtrace_snapshot(name: bytes) -> int:
        return 0

    @staticmethod
    def gpumemtrace_recording() -> int:
        return 0


def _find_library(path: Optional[str] = None) -> Any:
    """Returns the preloaded library or the one at `path`; _Absent if there is none."""
    try:
        import ctypes

        # PyDLL holds the GIL: none of these functions waits, and releasing the GIL would take
        # longer.
        library = ctypes.PyDLL(path)
        signatures: List[Tuple[Any, Any, Any]] = [
            (library.gpumemtrace_mark, None, [ctypes.c_char_p, ctypes.c_uint64]),
            (library.gpumemtrace_range_begin, ctypes.c_uint64, [ctypes.c_char_p]),
            (library.gpumemtrace_range_end, None, [ctypes.c_uint64]),
            (library.gpumemtrace_snapshot, ctypes.c_int, [ctypes.c_char_p]),
            (library.gpumemtrace_recording, ctypes.c_int, []),
        ]
    except (ImportError, OSError, AttributeError):  # no ctypes, no dlopen, not preloaded
        return _Absent
    for function, result, arguments in signatures:
        function.restype, function.argtypes = result, arguments
    return library


def _injected() -> Optional[str]:
    """Returns the library that the CUDA driver opens for injection, if it is ours. If it is opened
    here before that, it does nothing until then."""
    path = os.environ.get("CUDA_INJECTION64_PATH", "")
    return path if os.path.basename(path) == "libgpumemtrace.so" else None


_library = _find_library()
if _library is _Absent and _injected() is not None:
    _library = _find_library(_injected())
_next_step = itertools.count()
_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


def _text(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("name must not be empty")
    if "\0" in name:
        raise ValueError(f"name must not have a null character: {name!r}")
    return name.encode("utf-8", "backslashreplace")


def _number(index: int) -> int:
    try:
        number = index.__index__()
    except AttributeError:
        raise TypeError(f"index must be an int, not {type(index).__name__}") from None
    if not 0 <= number < _NO_INDEX:
        raise ValueError(f"index must be from 0 to {_NO_INDEX - 1}: {number}")
    return number


def _library_candidates() -> List[str]:
    """Returns where the library may be: in $GPUMEMTRACE_LIBRARY, otherwise beside this package or
    beside the gpumemtrace program in $PATH."""
    given = os.environ.get("GPUMEMTRACE_LIBRARY")
    if given:
        return [given]
    import shutil

    name = "libgpumemtrace.so"
    places = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", name)]
    program = shutil.which("gpumemtrace")
    if program is not None:
        folder = os.path.dirname(os.path.realpath(program))
        beside = os.path.join(os.path.dirname(folder), "lib")
        places += [os.path.join(beside, below, name) for below in ("", "x86_64-linux-gnu", "gpumemtrace")]
        places.append(os.path.join(folder, name))
    return places


def start(path: Optional[str] = None) -> str:
    """Starts recording this process, which was started without gpumemtrace, at its next GPU call.

    Call it early, ideally before importing anything that uses the GPU. Earlier allocations are
    unknown, and calls through function addresses obtained from the driver earlier are not
    intercepted. Returns a description of these limitations, or "preloaded", or a note that recording
    has been started already; in the last two cases it does nothing.

    The library is `path`, otherwise $GPUMEMTRACE_LIBRARY, otherwise the one beside this package or
    the gpumemtrace program. Options are read from $GPUMEMTRACE, which may be set in os.environ
    before. Raises OSError if the library is not found or cannot be loaded, and RuntimeError if it
    cannot start.
    """
    global _library
    import ctypes

    preloaded = ctypes.PyDLL(None)
    if hasattr(preloaded, "gpumemtrace_start"):
        library = preloaded
    else:
        places = _library_candidates() if path is None else [os.fspath(path)]
        found = next((os.path.realpath(place) for place in places if os.path.isfile(place)), None)
        if found is None:
            raise FileNotFoundError(f"libgpumemtrace.so was not found; looked for {', '.join(places)}. "
                                    "Name it with: GPUMEMTRACE_LIBRARY=/path/to/libgpumemtrace.so")
        library = ctypes.CDLL(found)  # the loader's lock holder may wait for the GIL
        path = found
    if not hasattr(library, "gpumemtrace_start"):
        raise RuntimeError(f"{path} is not a gpumemtrace library")
    text = ctypes.create_string_buffer(4096)
    library.gpumemtrace_start.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    result = library.gpumemtrace_start(text, len(text))
    said = text.value.decode("utf-8", "replace")
    if result < 0 and os.path.isfile(said):  # another copy has been started already
        _library = _find_library(said)
        return f"already done by {said}"
    if result < 0:
        raise RuntimeError(f"gpumemtrace cannot start: {said}")
    if library is not preloaded:
        _library = _find_library(path)
    return said


def recording() -> bool:
    """Returns whether this process is being recorded at this moment.

    False before its first call of the GPU, and without gpumemtrace.
    """
    return bool(_library.gpumemtrace_recording())


def mark(name: str, index: Optional[int] = None) -> None:
    """Adds a mark to the recording at this moment, with an index if one is given.

    Like every function here, raises TypeError or ValueError for a name that is not a str, is empty
    or contains a null character, and for an index that is not an integer of at least 0.
    """
    _library.gpumemtrace_mark(_text(name), _NO_INDEX if index is None else _number(index))


def step(index: Optional[int] = None) -> None:
    """Marks the end of a step of the program's loop, and the beginning of the next one.

    Without an index, steps are counted from 0; a given index sets the counter.
    """
    global _next_step
    if index is None:
        number = next(_next_step)
    else:
        number = _number(index)
        _next_step = itertools.count(number + 1)
    _library.gpumemtrace_mark(b"step", number)


def snapshot(name: str = "request") -> bool:
    """Requests a snapshot of what is allocated now, with the given name.

    Returns whether it was requested: False if the process is not recorded. The snapshot is taken
    outside this process, which continues meanwhile.
    """
    return bool(_library.gpumemtrace_snapshot(_text(name)))


class region:
    """Names the time until the end of a `with` block, or of calls of a function that it decorates.

        with gpumemtrace.region("evaluation"):
            ...

        @gpumemtrace.region("loss")
        def loss(...): ...

    Regions may be nested, may be left by an exception, which propagates, and may overlap in
    different threads. An object may be entered repeatedly, but each thread needs its own.
    """

    __slots__ = ("_name", "_open")

    def __init__(self, name: str) -> None:
        self._name = _text(name)
        self._open: List[Tuple[int, int]] = []

    def __enter__(self) -> "region":
        self._open.append((_forks, _library.gpumemtrace_range_begin(self._name)))
        return self

    def __exit__(self, *_: object) -> None:
        forks, number = self._open.pop()
        # A region that began before a fork belongs to the parent's recording and ends there.
        if number != 0 and forks == _forks:
            _library.gpumemtrace_range_end(number)

    def __call__(self, function: _F) -> _F:
        """Decorates a function. Raises TypeError for a coroutine or generator function, because
        calling it only creates the object: the region would end before the work begins."""
        import inspect  # slow to load and rarely needed

        if not callable(function):
            raise TypeError(f"region decorates functions, not {type(function).__name__}")
        if any(kind(function) for kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction,
                                           inspect.isasyncgenfunction)):
            raise TypeError("region cannot decorate a coroutine or a generator; use `with` inside of it")

        @functools.wraps(function)
        def within(*arguments: Any, **named: Any) -> Any:
            # A new region for each call, because the function may recurse or run in several
            # threads.
            with _new_region(self._name):
                return function(*arguments, **named)

        return within  # type: ignore[return-value]


def __getattr__(name: str) -> Any:
    """Loads what reads recordings when it is first used, because programs that are recorded need none
    of it."""
    if name not in ("read", "to_parquet"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import tables

    return getattr(tables, name)


def _new_region(name: bytes) -> region:
    another = region.__new__(region)
    another._name, another._open = name, []
    return another


def load_ipython_extension(shell: Any) -> None:
    """Adds the magics of notebook.py to IPython, which calls this for `%load_ext gpumemtrace`."""
    from . import notebook

    notebook.load(shell)
