"""Ways in which Python code is called."""

import asyncio
import ctypes
import functools
import re
import sys

from oracle import CAPACITY, GIL, Frame, chain, check_all, difference, expect, note


def recurse(depth, then):
    return then() if depth == 0 else recurse(depth - 1, then)


class Special:
    """Includes rare operations, which may be in a separate part of a profile-optimized interpreter."""

    def __matmul__(self, other):
        check_all("__matmul__")
        return self

    def rare_operator(self, *_):
        check_all("rare operator")
        return self

    __imatmul__ = __ipow__ = __ilshift__ = __rshift__ = __invert__ = rare_operator

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
    made_often()
    cut_walks()
    re.sub("a", lambda match: check_all("callback of sub") or "b", "a")


class MadeOften:
    def __init__(self, then):
        then()


def made_often():
    """If a class is called often, the interpreter inserts a frame of its own before __init__."""
    def make(then):
        return MadeOften(then)
    for _ in range(1000):
        make(int)
    make(lambda: check_all("__init__ of a class that was made often"))
    make(lambda: make(lambda: check_all("__init__ within another one")))
    make(lambda: make(lambda: recurse(70, lambda: check_all("a batch of frames within __init__"))))


UNMERGED, TRUNCATED = 4, 1  # session::StackFlags


def stack(native_frames, breaks_off):
    """Returns the stack to be recorded (per frame: None if native, the code address if Python) and its flags."""
    words, flags = (ctypes.c_uint64 * 256)(), ctypes.c_int()
    count = GIL.lib.oracle_stack(native_frames, breaks_off, words, ctypes.byref(flags))
    return [(w & ~(1 << 63)) >> 19 << 3 if w >> 63 else None for w in words[:count]], flags.value


def cut_walks():
    """Wherever the native walk ends, no Python frame is lost, and the flags show if its position is unknown."""
    def check_cut(*_):
        whole, flags = stack(1000, 0)
        python = [id(code) for code, _ in chain(sys._getframe())]
        expect("Python frames of a stack", [w for w in whole if w], [id(stack.__code__)] + python)
        expect("flags of a stack", flags & (UNMERGED | TRUNCATED), 0)
        unmerged = 0
        for native_frames in range(80):
            cut, flags = stack(native_frames, 0)
            native = cut.count(None)
            known = 0  # words up to the last native frame of the walk, and the Python frames that
                       # it runs
            while known < len(whole) and (whole[known] or whole[:known].count(None) < native):
                known += 1
            left = [w for w in whole[known:] if w]
            wanted = whole[:known] + left if native else left
            expect(f"stack of {native} native frames", cut, wanted)
            expect(f"flags with {native} native frames", bool(flags & UNMERGED), bool(left) and native > 0)
            unmerged += bool(flags & UNMERGED)
            broken_off, flags = stack(native_frames, 1)
            expect(f"stack broken off after {native} native frames", broken_off, wanted)
            expect(f"flags with {native} of more frames", flags & (UNMERGED | TRUNCATED), TRUNCATED)
        expect("some are not merged", unmerged > 0, True)
    check_cut()
    max([1], key=check_cut)
    sorted([1], key=lambda _: list(map(check_cut, [1])))


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
    print(*(check_all("unpacked generator") or x for x in ("",)), end="",
          **{x: check_all("unpacked dictionary") for x in ("sep",)})
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
    """Is destroyed by the instruction that uses it."""

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

    # Objects on the frame's stack are destroyed when the exception unwinds it, locals when the
    # frame ends.
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
    for function in (unwound, loops, lambda: Dying() + 1, lambda: Dying()[Dying()], lambda: f"{Dying():x}",
                     lambda: next(Dying())):
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
    counted = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    counted(lambda x: recurse(x, lambda: check_all("recursion in a callback")) or 0)(20)
