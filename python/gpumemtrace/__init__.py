"""Marks what a program does in the recording that gpumemtrace makes of its GPU memory.

    import gpumemtrace

    for batch in loader:
        with gpumemtrace.region("forward"):
            loss = model(batch)
        ...
        gpumemtrace.step()

A program says this once and for all: where it is not recorded, every function does nothing, costs
less than a microsecond and cannot fail, except for arguments that are wrong anywhere.

The recording begins with the first call of the GPU. What is said before that is not in it.

A program that was started without gpumemtrace may call start(), best before it uses the GPU.

Thread safety: all functions, from any thread. After a fork the child speaks of its own recording.
"""

import functools
import itertools
import os
from typing import Any, Callable, List, Optional, Tuple, TypeVar

__all__ = ["mark", "recording", "region", "snapshot", "start", "step"]

_F = TypeVar("_F", bound=Callable[..., Any])
_NO_INDEX = 2**64 - 1  # as the library is told that a mark has none


class _Absent:
    """What answers where the process is not recorded."""

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
    """The library that is in this process, preloaded or of that path, or what stands in for it."""
    try:
        import ctypes

        # Holds the GIL: none of these functions waits, and giving it up would cost more than they do.
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
    """The library that the driver is going to open, or has opened, out of others' sight. Opened before, it
    does nothing until then."""
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


def _places() -> List[str]:
    """Where the library may be: $GPUMEMTRACE_LIBRARY, else beside this package, else with the program
    gpumemtrace that the shell would find."""
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
        places += [os.path.join(beside, name), os.path.join(beside, "gpumemtrace", name), os.path.join(folder, name)]
    return places


def start(path: Optional[str] = None) -> str:
    """Begins to record this process, which was not started with gpumemtrace, from its next call of the GPU on.

    To be called early, best before anything is imported that uses the GPU: what is allocated before is
    not known, and who has asked the driver for its functions before calls them unseen. Returns what is
    to be known about that in words, or "preloaded", or how it was begun before: then it does nothing.

    The library is `path`, else $GPUMEMTRACE_LIBRARY, else what lies with this package or with the program
    gpumemtrace. Options are those of $GPUMEMTRACE, and can be set in os.environ before. Raises OSError
    where the library is not found or cannot be loaded, and RuntimeError where it cannot begin.
    """
    global _library
    import ctypes

    preloaded = ctypes.PyDLL(None)
    if hasattr(preloaded, "gpumemtrace_start"):
        library = preloaded
    else:
        places = _places() if path is None else [os.fspath(path)]
        found = next((os.path.realpath(place) for place in places if os.path.isfile(place)), None)
        if found is None:
            raise FileNotFoundError(f"libgpumemtrace.so was not found; looked for {', '.join(places)}. "
                                    "Name it with: GPUMEMTRACE_LIBRARY=/path/to/libgpumemtrace.so")
        library = ctypes.CDLL(found)  # takes the loader's lock, which may be held by who waits for the GIL
        path = found
    if not hasattr(library, "gpumemtrace_start"):
        raise RuntimeError(f"{path} is no library of gpumemtrace")
    text = ctypes.create_string_buffer(4096)
    library.gpumemtrace_start.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    result = library.gpumemtrace_start(text, len(text))
    said = text.value.decode("utf-8", "replace")
    if result < 0 and os.path.isfile(said):  # another copy has begun before
        _library = _find_library(said)
        return f"already done by {said}"
    if result < 0:
        raise RuntimeError(f"gpumemtrace cannot begin: {said}")
    if library is not preloaded:
        _library = _find_library(path)
    return said


def recording() -> bool:
    """Whether this process is being recorded at this moment.

    False until its first call of the GPU, and where gpumemtrace is not there.
    """
    return bool(_library.gpumemtrace_recording())


def mark(name: str, index: Optional[int] = None) -> None:
    """Puts a mark into the history: this happened here, the index-th time if one is given.

    Raises TypeError or ValueError for a name that is no text, is empty or has a null character, and
    for an index that is no whole number from 0 up; so does every function here.
    """
    _library.gpumemtrace_mark(_text(name), _NO_INDEX if index is None else _number(index))


def step(index: Optional[int] = None) -> None:
    """Marks that a step of the program's loop ends here and the next one begins.

    Without an index steps are counted, from 0 up; a given one sets the count.
    """
    global _next_step
    if index is None:
        number = next(_next_step)
    else:
        number = _number(index)
        _next_step = itertools.count(number + 1)
    _library.gpumemtrace_mark(b"step", number)


def snapshot(name: str = "request") -> bool:
    """Asks for a snapshot of what is allocated now, under that name.

    Returns whether it was asked for: False where nothing is recorded. It is taken outside of this
    process, which goes on meanwhile.
    """
    return bool(_library.gpumemtrace_snapshot(_text(name)))


class region:
    """Names what happens from here to the end of a `with`, or of a function that it decorates.

        with gpumemtrace.region("evaluation"):
            ...

        @gpumemtrace.region("loss")
        def loss(...): ...

    Regions may lie within each other, may be left by an exception, which goes on, and may overlap in
    different threads. An object may be entered again; several threads take one each.
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
        # What was begun before a fork belongs to the parent's recording, and ends there.
        if number != 0 and forks == _forks:
            _library.gpumemtrace_range_end(number)

    def __call__(self, function: _F) -> _F:
        """Decorates a function. Raises TypeError for one that only makes a coroutine or a generator
        when it is called: its region would end before the work begins."""
        import inspect  # slow to load, and needed here alone

        if not callable(function):
            raise TypeError(f"region decorates functions, not {type(function).__name__}")
        if any(kind(function) for kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction,
                                           inspect.isasyncgenfunction)):
            raise TypeError("region cannot decorate a coroutine or a generator; use `with` inside of it")

        @functools.wraps(function)
        def within(*arguments: Any, **named: Any) -> Any:
            # One for each call: the function may call itself, or run in several threads.
            with _again(self._name):
                return function(*arguments, **named)

        return within  # type: ignore[return-value]


def _again(name: bytes) -> region:
    another = region.__new__(region)
    another._name, another._open = name, []
    return another
