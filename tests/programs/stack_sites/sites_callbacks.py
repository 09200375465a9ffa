"""C code that calls back into Python."""

import ctypes
import functools
import gc
import re
import sys
import weakref

from device import take
from registry import site


def key(value):
    take("sort_key")  # site sort_key: key < sorts@sort < main
    return value


@site
def sorts():
    [0].sort(key=key)  # @sort
    max([0], key=lambda _: take("max_key"))  # @max site max_key:
    # sorts.<locals>.<lambda>@max < sorts@max < main


@site
def functional():
    list(map(lambda _: take("map"), [0]))  # site map:
    # functional.<locals>.<lambda>@map < functional@map < main
    list(filter(lambda _: take("filter"), [0]))  # site filter:
    # functional.<locals>.<lambda>@filter < functional@filter < main
    functools.reduce(lambda *_: take("reduce"), [0, 1])  # site reduce:
    # functional.<locals>.<lambda>@reduce < functional@reduce < main


@site
def nested_in_c():
    def innermost(_):
        return take("nested_in_c")  # site nested_in_c: nested_in_c.<locals>.innermost
        # < nested_in_c.<locals>.middle@middle < nested_in_c@nested < main

    def middle(values):
        return sorted(values, key=innermost)  # @middle

    list(map(middle, [[0]]))  # @nested


@site
def substitution():
    re.sub("a", lambda _: take("re_sub") and "", "a")  # site re_sub:
    # substitution.<locals>.<lambda>@re_sub < ~ < substitution@re_sub < main


class Hashed:
    def __hash__(self):
        take("hash")  # site hash: Hashed.__hash__ < hashes@hash < main
        return 1

    def __eq__(self, _):
        take("eq")  # site eq: Hashed.__eq__ < hashes@eq < main
        return True


@site
def hashes():
    {Hashed(): 1}  # @hash
    [1].index(Hashed())  # @eq


class Deleted:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        take(self.name)  # @del
        # site del: Deleted.__del__@del < deletes@deletes < main
        # site del_at_return: Deleted.__del__@del < deletes@holds < main
        # site collected: Deleted.__del__@del < collects@collect < main


def holds():
    unused = Deleted("del_at_return")  # noqa: F841  freed with the frame


@site
def deletes():
    thing = Deleted("del")
    del thing  # @deletes
    holds()  # @holds


@site
def collects():
    thing = Deleted("collected")
    thing.itself = thing
    del thing
    gc.collect()  # @collect


@site
def weak_references():
    class Referred:
        pass

    thing = Referred()
    reference = weakref.ref(thing, lambda _: take("weakref"))  # site weakref:
    # weak_references.<locals>.<lambda>@weakref < weak_references@dies < main
    finalizer = weakref.finalize(thing, take, "finalize")
    # site finalize: ~ < weak_references@dies < main
    del thing  # @dies
    return reference, finalizer


@site
def gc_callback():
    def notices(phase, _):
        if phase == "start":
            take("gc_callback")  # site gc_callback: gc_callback.<locals>.notices
            # < gc_callback@gc_callback_collects < main

    gc.callbacks.append(notices)
    gc.collect()  # @gc_callback_collects
    gc.callbacks.remove(notices)


@site
def profile_function():
    def profiled():  # @profiled
        pass

    def notices(frame, event, _):
        if event == "call" and frame.f_code is profiled.__code__:
            take("profile")  # site profile: profile_function.<locals>.notices
            # < profile_function.<locals>.profiled@profiled < profile_function@profile_call < main

    sys.setprofile(notices)
    profiled()  # @profile_call
    sys.setprofile(None)


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
quicksort = ctypes.CDLL(None).qsort


def sort_two(compare):
    pair = (ctypes.c_int * 2)(2, 1)
    quicksort(pair, ctypes.c_size_t(2), ctypes.c_size_t(4), CALLBACK(compare))  # @qsort


@site
def ctypes_callback():
    def compare(*_):
        take("ctypes_callback")  # site ctypes_callback: ctypes_callback.<locals>.compare
        # < native qsort_r < sort_two@qsort < ctypes_callback@sort_two < main
        return 0

    sort_two(compare)  # @sort_two


@site
def ctypes_callback_in_callback():
    def inner(*_):
        take("ctypes_nested")  # site ctypes_nested: ctypes_callback_in_callback.<locals>.inner
        # < sort_two@qsort < ctypes_callback_in_callback.<locals>.outer@nested_outer
        # < sort_two@qsort < ctypes_callback_in_callback@nested_sort < main
        return 0

    def outer(*_):
        sort_two(inner)  # @nested_outer
        return 0

    sort_two(outer)  # @nested_sort
