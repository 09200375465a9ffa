#!/usr/bin/env python3
"""Compares the walk of this interpreter's frames with what the interpreter says about them.

Runs in the interpreter that is to be checked (3.8 and later), with python_oracle.so loaded by ctypes: as CDLL its
functions run without the GIL, as PyDLL with it. Each check compares the whole chain of frames with that of
sys._getframe(): code object, instruction, and that name, file, lines and the fingerprint say what they should.

Usage: oracle_check.py python_oracle.so
"""

import asyncio
import atexit
import ctypes
import functools
import gc
import os
import re
import signal
import sys
import threading
import types

CAPACITY = 4096
BEFORE_INSTRUCTIONS = (1 << 19) - 2  # session::kBeforeInstructions
MINOR = sys.version_info[1]
FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()


class Frame(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint64), ("offset", ctypes.c_uint32), ("run", ctypes.c_uint32)]


class Description(ctypes.Structure):
    _fields_ = [("format", ctypes.c_uint32), ("first_line", ctypes.c_uint32), ("table_bytes", ctypes.c_uint64),
                ("table", ctypes.c_void_p), ("name", ctypes.c_char * 1024), ("file", ctypes.c_char * 1024),
                ("name_bytes", ctypes.c_uint32), ("file_bytes", ctypes.c_uint32)]


class Oracle:
    def __init__(self, library):
        self.lib = library
        library.oracle_status.restype = ctypes.c_char_p
        library.oracle_describe.argtypes = [ctypes.c_uint64, ctypes.c_void_p]


NO_GIL = Oracle(ctypes.CDLL(sys.argv[1]))
GIL = Oracle(ctypes.PyDLL(sys.argv[1]))
passed, failed = 0, []
lock = threading.Lock()


def note(label, problem):
    global passed
    with lock:
        if problem is None:
            passed += 1
        else:
            failed.append(f"{label}: {problem}")


def expect(label, value, wanted):
    note(label, None if value == wanted else f"is {value!r}, not {wanted!r}")


def chain(frame):
    """(code object, instruction in units of 2 bytes) of each frame, innermost first."""
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti // 2 if frame.f_lasti >= 0 else BEFORE_INSTRUCTIONS))
        frame = frame.f_back
    return found


def line_of(code, offset):
    for start, end, line in code.co_lines():
        if start <= 2 * offset < end:
            return line
    return None


def utf8(text):
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


def check_description(code):
    """What is wrong with how this code object is read, or None."""
    d = Description()
    if not GIL.lib.oracle_describe(id(code), ctypes.byref(d)):
        return "no code object"
    name = code.co_qualname if MINOR >= 11 else code.co_name
    table = code.co_lnotab if MINOR <= 9 else code.co_linetable
    if d.name[:d.name_bytes] != utf8(name)[:1024] or d.file[:d.file_bytes] != utf8(code.co_filename)[:1024]:
        return f"read as {d.name!r} in {d.file!r}"
    if d.first_line != code.co_firstlineno or d.format != (1 if MINOR <= 9 else 2 if MINOR == 10 else 3):
        return f"first line {d.first_line}, format {d.format}"
    if ctypes.string_at(d.table, d.table_bytes) != table:
        return "another table of lines"
    return None


def difference(frames, wanted):
    """What is wrong with the walk, or None. The innermost frame goes on after the walk: its line is compared instead."""
    if len(frames) != len(wanted):
        return f"{len(frames)} frames, not {len(wanted)}: {[c.co_name for c, _ in wanted][:6]}"
    for i, (own, (code, offset)) in enumerate(zip(frames, wanted)):
        if own.code != id(code):
            return f"frame {i} is not {code.co_name}"
        if i > 0 and own.offset != offset:
            return f"frame {i}, {code.co_name}: at {own.offset}, not {offset}"
        if i == 0 and MINOR >= 10 and line_of(code, own.offset) != line_of(code, offset):
            return f"{code.co_name}: line {line_of(code, own.offset)}, not {line_of(code, offset)}"
    return None


def check(label, oracle=None):
    """Walks from here, with and without the GIL."""
    for suffix, one in ((" without the GIL", NO_GIL), (" with the GIL", GIL)):
        if oracle not in (None, one):
            continue
        frames = (Frame * CAPACITY)()
        fingerprint = ctypes.c_uint64()
        count = one.lib.oracle_walk(frames, CAPACITY, ctypes.byref(fingerprint)); wanted = chain(sys._getframe())
        note(label + suffix, difference(frames[:count], wanted))
        for code in {code for code, _ in wanted}:
            problem = check_description(code)
            if problem:
                note(f"{label}: {code.co_name}", problem)


def merged():
    """(runs, frames, runs behind the interpreter's own frames, anything left) of the stack merged with native frames."""
    result = (ctypes.c_int * 4)()
    GIL.lib.oracle_merge(result)
    return tuple(result), len(chain(sys._getframe()))


def check_merge(label):
    (runs, frames, in_interpreter, left), wanted = merged()
    problem = None
    if left or frames != wanted or runs != in_interpreter:
        problem = f"{runs} runs ({in_interpreter} in the interpreter), {frames} of {wanted} frames, left: {left}"
    note(label + ", merged", problem)


def check_all(label):
    check(label)
    check_merge(label)


# Ways of being called.

class Special:
    """Also what is rare, and so may stand apart in an interpreter whose compiler knew that."""

    def __matmul__(self, other):
        check_all("__matmul__")
        return self

    __imatmul__ = __ipow__ = __ilshift__ = __rshift__ = __invert__ = lambda self, *args: check_all("rare operator") or self

    def __delattr__(self, name):
        check_all("__delattr__")

    def __delitem__(self, key):
        check_all("__delitem__")

    def __format__(self, spec):
        check_all("__format__")
        return ""

    def __contains__(self, item):
        check_all("__contains__")
        return True

    def __hash__(self):
        check_all("__hash__")
        return 1

    def __bool__(self):
        check_all("__bool__")
        return True

    def __getattr__(self, name):
        check_all("__getattr__")
        return name

    def __getitem__(self, key):
        check_all("__getitem__")
        return key

    def __lt__(self, other):
        check_all("__lt__")
        return True

    def __del__(self):
        check_all("__del__")

    def __call__(self, *args):
        check_all("__call__")

    def __enter__(self):
        check_all("__enter__")

    def __exit__(self, *args):
        check_all("__exit__")

    @property
    def prop(self):
        check_all("property")

    @classmethod
    def of_class(cls):
        check_all("class method")

    @staticmethod
    def static():
        check_all("static method")


def generator():
    check_all("generator, first")
    yield 1
    check_all("generator, again")
    yield 2


def delegating():
    yield from generator()


async def coroutine(depth):
    if depth:
        await coroutine(depth - 1)
    check_all("coroutine")


async def ticks():
    for i in range(2):
        check_all("asynchronous generator")
        yield i


async def tasks():
    async for _ in ticks():
        await asyncio.sleep(0)
    await asyncio.gather(coroutine(0), coroutine(2))
    await asyncio.get_running_loop().run_in_executor(None, check_all, "executor")


def closure(depth):
    cell = depth

    def inner():
        check_all(f"closure, {cell} deep")
    return inner


def recurse(depth, then):
    return then() if depth == 0 else recurse(depth - 1, then)


def calls():
    check_all("plain call")
    (lambda: check_all("lambda"))()
    closure(3)()
    [check_all("list comprehension") for _ in range(1)]
    list(check_all("generator expression") for _ in range(1))
    {check_all("dictionary comprehension"): 1 for _ in range(1)}
    sorted([2, 1], key=lambda x: check_all("sort key") or x)
    sorted([Special(), Special()])
    functools.reduce(lambda a, b: check_all("reduce"), [1, 2])
    list(map(lambda x: check_all("map"), [1]))
    list(filter(lambda x: check_all("filter"), [1]))
    special = Special()
    special.attribute
    special[1]
    special()
    special.prop
    rare(Special())
    special.of_class()
    special.static()
    with special:
        check_all("with")
    del special
    list(generator())
    list(delegating())
    max([1, 2], key=lambda x: check_all("key of max") or x)
    "".join(check_all("join") or "x" for _ in range(1))
    type("Made", (), {"__init__": lambda self: check_all("class made by type()")})()
    functools.partial(check_all, "partial")()
    re.sub("a", lambda match: check_all("callback of sub") or "b", "a")


def rare(special):
    special @ special
    special @= special
    special **= 2
    special <<= 2
    special >> 1
    ~special
    del special.attribute
    del special[0]
    f"{special}"
    1 in special
    not special
    {special: 1}
    {special}
    print(*(check_all("unpacked generator") or x for x in ()), end="", **{x: check_all("unpacked dictionary") for x in ("sep",)})
    before = sys.displayhook
    sys.displayhook = lambda value: check_all("displayhook")
    exec(compile("1", "<single>", "single"))
    sys.displayhook = before

    class Meta(type):
        def __prepare__(*args):
            check_all("__prepare__")
            return {}

        def __new__(cls, *args):
            check_all("metaclass")
            return type.__new__(cls, *args)

    class Made(metaclass=Meta):
        check_all("class body")
        locals()["x"] = check_all("in a class body")
    import_hook = type("Finder", (), {"find_spec": lambda *args: check_all("import hook")})
    sys.meta_path.insert(0, import_hook)
    try:
        import not_there
    except ImportError:
        pass
    sys.meta_path.remove(import_hook)


class Short:
    """Goes with the instruction that uses it."""

    def __del__(self):
        check_all("__del__ of a temporary")

    def __neg__(self, *args):
        return self

    __add__ = __matmul__ = __iadd__ = __getitem__ = __setitem__ = __delitem__ = __call__ = __neg__
    __eq__ = __lt__ = __bool__ = __contains__ = lambda self, *args: True
    __hash__ = __len__ = __index__ = lambda self, *args: 0
    __iter__ = lambda self, *args: iter(())
    __format__ = __repr__ = lambda self, *args: "x"
    __setattr__ = __delattr__ = __exit__ = lambda self, *args: None
    keys = lambda self: ()
    __enter__ = method = lambda self: 1


TEMPORARIES = """
Short()
-Short()
not Short()
Short() + Short()
Short() @ Short()
Short() == Short()
Short() < 1
Short() is None
Short() is not Short()
1 in Short()
Short() in [1]
Short()[Short()]
[1][Short()]
[1, 2][Short():Short()]
Short().method
Short().method()
Short()(Short())
Short().x = Short()
del Short().x
Short()[Short()] = Short()
del Short()[Short()]
1 if Short() else 2
Short() and 1
Short() or 1
[x for x in Short()]
for x in Short(): pass
[*Short()]
[] = Short()
print(*Short(), end='')
dict(**Short())
{**Short()}
{Short(): Short()}
{Short()}
(Short(), Short())
f'{Short()}'
f'{Short()!r}{Short():x}'
x = Short(); x = Short(); del x
x = y = Short(); x += 1; del x, y
lambda x=Short(): 0
(lambda x: 0)(Short())
(lambda x: x)(Short())
(lambda **names: 0)(a=Short())
(lambda *args: 0)(Short(), Short())
'{}'.format(Short())
assert Short()
while not Short(): pass
class Made: x = Short()
with Short(): pass
sorted([Short(), Short()])
global z; z = Short(); del z
""".strip().splitlines()


def temporaries():
    for source in TEMPORARIES:
        exec(f"def f():\n  {source}\nf()", {"Short": Short})
        exec(f"def f():\n  {source}\n  yield\nlist(f())", {"Short": Short})
        exec(source, {"Short": Short})


def exceptions():
    try:
        raise ValueError("on its way")
    except ValueError:
        check_all("except")
    finally:
        check_all("finally")

    # What lay on the frame's stack goes when the exception unwinds it, what was local when the frame ends.
    class Dying:
        def __del__(self):
            check_all("__del__ while a frame is unwound")

        def __exit__(self, *args):
            raise OSError("another one")

        def __enter__(self):
            return self

    def unwound():
        local = Dying()
        return [Dying(), (Dying(), local.missing)]

    def loops():
        with Dying():
            for _ in [1]:
                for dying in [Dying()]:
                    del dying
                    [Dying(), {}[1]]
    for function in (unwound, loops, lambda: Dying() + 1, lambda: Dying()[Dying()], lambda: f"{Dying():x}", lambda: next(Dying())):
        try:
            function()
        except Exception:
            check_all("behind an unwound frame")

    class Manager:
        def __exit__(self, *args):
            check_all("__exit__ with an exception")
            return True

        def __enter__(self):
            pass
    with Manager():
        raise KeyError("on its way")
    frames = (Frame * CAPACITY)()
    count = ctypes.c_int()
    same = GIL.lib.oracle_walk_with_error_set(frames, CAPACITY, ctypes.byref(count)); wanted = chain(sys._getframe())
    expect("error indicator stays", same, 1)
    note("walk with an error set", difference(frames[:count.value], wanted))


def native_callbacks():
    prototype = ctypes.CFUNCTYPE(None)
    inner = prototype(lambda: check_all("callback in a callback"))
    prototype(lambda: (check_all("ctypes callback"), inner()))()
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: recurse(x, lambda: check_all("recursion in a callback")) or 0)(20)


def made_code():
    exec(compile("def made():\n  check_all('exec')\nmade()", "<exec>", "exec"), {"check_all": check_all})
    eval("check_all('eval')")
    for i, name in enumerate(("plain", "gr\u00f6\u00dfe", "\u6570\u636e", "\U00020000x", "mixed_\u00e9_\u6570")):
        source = f"def {name}():\n\n{chr(10) * i}  check_all('name of kind {i}')\n{name}()"
        for file in ("made.py", "m\u00fcde.py", "\u6570.py", "\U0001f600.py", "bad\udcff.py"):
            exec(compile(source, "made.py", "exec").replace(co_filename=file), {"check_all": check_all})
    long = "x" * 3000
    exec(f"def {long}():\n  check_all('long name')\n{long}()", {"check_all": check_all})
    lines = "\n".join(f"  x = {i}" for i in range(70000))
    exec(f"def long():\n  check_all('long table of lines')\n{lines}\nlong()", {"check_all": check_all})
    module = types.ModuleType("reloaded")
    for i in range(3):
        exec(compile("\n" * i + "def f():\n  check_all('reloaded module')\n", "reloaded.py", "exec"), {"check_all": check_all},
             module.__dict__)
        module.f()


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
    """Another thread looks at all frames, and so makes objects of them, all the time."""
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
    script = (f"import sys; sys.argv = ['', {sys.argv[1]!r}]\n"
              f"exec(open({__file__!r}).read().partition('# ' 'Main.')[0])\n"
              "def sub():\n    check('subinterpreter', GIL)\n    note('', None)\nsub()\n"
              f"import os; os.write({write}, repr(failed).encode())\n")
    # One that ctypes can be imported in.
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


def churn():
    """Code objects come and go at the same addresses: no name may be an old one, and no fingerprint that of another."""
    seen = {}
    frames = (Frame * CAPACITY)()
    fingerprint = ctypes.c_uint64()
    depth = len(chain(sys._getframe())) + 2
    d = Description()
    stale = twice = wrong = 0
    reused = set()
    addresses = set()
    for i in range(20000):
        # Equal but for the lines, every second time.
        name = f"made_{i // 2 % 50}"
        source = f"def {name}():\n{chr(10) * (i % 7)}  global n; n = walk(frames, 4096, fingerprint)\n{name}()"
        scope = {"walk": NO_GIL.lib.oracle_walk, "frames": frames, "fingerprint": ctypes.byref(fingerprint)}
        exec(compile(source, f"file_{i % 3}.py", "exec"), scope)
        wrong += scope["n"] != depth
        code = scope[name].__code__
        GIL.lib.oracle_describe(frames[0].code, ctypes.byref(d))
        stale += d.name[:d.name_bytes] != name.encode() or d.file[:d.file_bytes] != f"file_{i % 3}.py".encode() or d.first_line != 1
        (reused if id(code) in addresses else addresses).add(id(code))
        table = code.co_lnotab if MINOR <= 9 else code.co_linetable
        # Copies, so that nothing keeps the code object's own.
        what = (name, i % 3, bytes(bytearray(table)), frames[0].offset)
        known = seen.setdefault((tuple((f.code, f.offset) for f in frames[:2]), fingerprint.value), what)
        twice += known != what
        del scope, code, table, source
    expect("churn: depth", wrong, 0)
    expect("churn: stale names", stale, 0)
    expect("churn: one fingerprint for two stacks", twice, 0)
    return len(reused)


def undisturbed():
    """Walks leave reference counts and the collector alone."""
    if FREE_THREADED:
        return
    runs = []
    gc.callbacks.append(lambda phase, info: runs.append(phase))
    code = undisturbed.__code__
    gc.collect()
    frames = (Frame * CAPACITY)()
    before, collections = sys.getrefcount(code), len(runs)
    recurse(50, lambda: [GIL.lib.oracle_walk(frames, CAPACITY, None) for _ in range(2000)])
    GIL.lib.oracle_compare()
    expect("references to a code object", sys.getrefcount(code), before)
    expect("collections inside walks", len(runs), collections)
    gc.callbacks.pop()


def wrong_layouts():
    """One offset is wrong: refused, or without consequence, but never a crash or another stack."""
    status = ctypes.c_char_p()
    frames = (Frame * CAPACITY)()
    refused = 0
    for word in range(30):
        for delta in (8, -8, 16, 1000, 40000, 1):
            count = GIL.lib.oracle_walk_wrongly(word, delta, frames, CAPACITY, ctypes.byref(status)); wanted = chain(sys._getframe())
            if status.value != b"on":
                refused += 1
                expect(f"layout wrong in {word} by {delta}: frames", count <= len(wanted), True)
    note("wrong layouts are refused", None if refused > 40 else f"only {refused} of 180")


def main():
    NO_GIL.lib.oracle_find()
    check_all("first walk")
    expect("status", NO_GIL.lib.oracle_status(), b"on")
    expect("comparison", GIL.lib.oracle_compare(), 1)
    calls()
    temporaries()
    exceptions()
    native_callbacks()
    made_code()
    deep()
    threads()
    watched()
    signals()
    profiled()
    asyncio.run(tasks())
    asyncio.run(coroutine(3))
    interpreters()
    in_child("fork child", lambda: (check_all("fork child"), threads()))
    reused = churn()
    undisturbed()
    wrong_layouts()
    expect("status at the end", NO_GIL.lib.oracle_status(), b"on")
    print(f"{sys.version.split()[0]}{'t' if FREE_THREADED else ''}: {reused} addresses reused")


def report():
    check_all("atexit")
    for line in failed[:20]:
        print("FAILED", line)
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    if failed:
        os._exit(1)


class AtTeardown:
    """Goes when its module does."""

    def __del__(self):
        if failed is None:  # the module's names may go first
            return
        before = len(failed)
        check_all("module teardown")
        if len(failed) != before:
            os.write(1, f"FAILED {failed[-1]}\n".encode())
            os._exit(1)


# Main.
kept = AtTeardown()
atexit.register(report)
main()
