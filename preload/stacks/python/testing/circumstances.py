"""Circumstances of walks: deep, in threads, watched, interrupted, in other interpreters, with wrong layouts."""

import ctypes
import gc
import os
import pathlib
import signal
import sys
import threading
import time

from calls import recurse
from oracle import (CAPACITY, FREE_THREADED, GIL, MINOR, NO_GIL, Frame, chain, check, check_all, expect, failed, note)


def deep():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(3000)
    try:
        recurse(1000, lambda: check_all("1,000 frames"))
        recurse(47, lambda: check_all("about a batch of frames"))
        for depth in range(30, 50):
            recurse(depth, lambda: check("a batch of frames, more or less"))
    finally:
        sys.setrecursionlimit(limit)


def threads():
    def work():
        check_all("thread")
        recurse(10, lambda: check_all("thread, deep"))
    all_threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    expect("C thread while nobody holds the GIL", NO_GIL.lib.oracle_walk_on_c_thread(), 0)
    expect("C thread while its creator holds the GIL", GIL.lib.oracle_walk_on_c_thread(), 0)


def watched():
    """Another thread continuously inspects all frames, which creates frame objects."""
    stop = threading.Event()

    def watch():
        while not stop.is_set():
            for frame in list(sys._current_frames().values()):
                while frame is not None:
                    frame = frame.f_back
    watcher = threading.Thread(target=watch)
    watcher.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for i in range(200):
            recurse(i % 30, lambda: check("beside sys._current_frames", NO_GIL))
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        watcher.join()


def signals():
    def handler(*_):
        check_all("signal handler")
    before = signal.signal(signal.SIGUSR1, handler)
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def interrupted():
    """Signal handlers walk while frames are pushed and popped by all kinds of calls."""
    def busy(depth):
        values = [str(i) for i in range(50)]
        values.sort(key=lambda v: v[::-1])
        try:
            return busy(depth - 1) if depth else int(sum(map(float, values)) / len("".join(values).replace("1", "")))
        finally:
            list(zip(values, (v for v in values)))
    result = (ctypes.c_int * 4)()
    NO_GIL.lib.oracle_interrupt(1000)
    try:
        until = time.process_time() + 2
        while result[0] < 30 and time.process_time() < until:
            busy(20)
            GIL.lib.oracle_interruptions(result)
    finally:
        NO_GIL.lib.oracle_interrupt(0)
    walks, left_out, frames, wrong = result
    expect("walks of signal handlers: frames without code", wrong, 0)
    note("signals interrupted what they should", None if frames >= walks > 0 < left_out else f"{list(result)}")


def profiled():
    """A function that runs for each call, return and line sees frames that have not begun."""
    def observe(*_):
        sys.setprofile(None)
        sys.settrace(None)
        check_all("profile or trace function")

    def called():
        return len("called")

    def generates():
        yield called()
    for call in (called, lambda: list(generates()), lambda: sorted([2, 1]), lambda: [x for x in generates()]):
        sys.setprofile(observe)
        call()
        sys.settrace(observe)
        call()


def interpreters():
    try:
        import _interpreters as module
    except ImportError:
        try:
            import _xxsubinterpreters as module
        except ImportError:
            return
    read, write = os.pipe()
    here = str(pathlib.Path(__file__).parent)
    script = (f"import os, sys; sys.argv = ['', {sys.argv[1]!r}]; sys.path.insert(0, {here!r})\n"
              "import oracle\n"
              "def sub():\n    oracle.check('subinterpreter', oracle.GIL)\nsub()\n"
              f"os.write({write}, repr(oracle.failed).encode())\n")
    # A kind of interpreter in which ctypes can be imported.
    created = (module.create("legacy") if MINOR >= 13 else module.create(isolated=False) if MINOR == 12 else
               module.create())
    try:
        said = (module.exec if MINOR >= 13 else module.run_string)(created, script)
        expect("subinterpreter runs", said, None)
    finally:
        os.close(write)
    said = os.read(read, 4096).decode()
    os.close(read)
    expect("subinterpreter", said, "[]")
    module.destroy(created)
    check_all("after a subinterpreter")


def in_child(label, work):
    """Forks; the child's own checks count as one here."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        failed.clear()
        work()
        for line in failed:
            print(line, file=sys.stderr)
        os._exit(1 if failed else 0)
    expect(label, os.waitpid(child, 0)[1], 0)


def undisturbed():
    """Walks and comparisons with the public functions neither change reference counts nor collect garbage."""
    if FREE_THREADED:
        return
    comparing = ctypes.c_int.in_dll(GIL.lib, "oracle_is_comparing")
    runs, inside = [], []

    def observe(phase, info):
        runs.append(phase)
        inside.extend([phase] * comparing.value)
    gc.callbacks.append(observe)
    code = undisturbed.__code__
    gc.collect()
    frames = (Frame * CAPACITY)()
    before, collections = sys.getrefcount(code), len(runs)
    recurse(50, lambda: [GIL.lib.oracle_walk(frames, CAPACITY, None) for _ in range(2000)])
    expect("collections inside walks", len(runs), collections)
    threshold = gc.get_threshold()
    gc.set_threshold(1)  # every allocation triggers a collection
    for depth in range(40):
        given = recurse(depth, lambda: GIL.lib.oracle_compare_again())
        expect("comparison again", min(given, 64), min(len(chain(sys._getframe())) + depth + 2, 64))
    gc.set_threshold(*threshold)
    expect("collections inside comparisons", len(inside), 0)
    expect("references to a code object", sys.getrefcount(code), before)
    expect("the collector is on", gc.isenabled(), True)
    gc.callbacks.pop()


def wrong_layouts():
    """A wrong offset is refused or has no effect, but never causes a crash or a wrong stack."""
    status = ctypes.c_char_p()
    frames = (Frame * CAPACITY)()
    refused = 0
    for word in range(30):
        for delta in (8, -8, 16, 1000, 40000, 1):
            count = GIL.lib.oracle_walk_wrongly(word, delta, frames, CAPACITY, ctypes.byref(status))
            wanted = chain(sys._getframe())
            if status.value != b"on":
                refused += 1
                expect(f"layout wrong in {word} by {delta}: frames", count <= len(wanted), True)
    note("wrong layouts are refused", None if refused > 40 else f"only {refused} of 180")
