"""C++ between and below Python frames: extension.cc. $STACK_SITES_EXTENSION is its library."""

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig

from device import take
from notes import note, size_of
from registry import site


class Functions:
    """The extension as a library of C functions."""

    def __init__(self, path):
        library = ctypes.PyDLL(path)
        for name in (
            "nested released call_back thread_with_gil thread_without_gil thread_while_held throws "
            "with_error_set"
        ).split():
            function = library[name]
            function.argtypes = [ctypes.py_object, ctypes.py_object]
            function.restype = ctypes.py_object
            setattr(self, name, functools.partial(function, None))


def load(path):
    # Free-threaded builds cannot load a module of the limited API.
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return Functions(path)
    loader = importlib.machinery.ExtensionFileLoader("extension", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("extension", loader))
    loader.exec_module(module)
    return module


cpp = load(os.environ["STACK_SITES_EXTENSION"])


def allocates(function, name):
    note(name, sys._getframe()), function(size_of(name))  # @allocates


@site
def cpp_nested():
    allocates(cpp.nested, "cpp_nested")  # site cpp_nested:
    # native sites::Allocate@cpp_malloc < native sites::Inlined<unsigned long>@cpp_inlined
    # < native sites::Templated<unsigned long>@cpp_template < native sites::Outer@cpp_outer
    # < native nested@entry_nested < allocates@allocates < cpp_nested@cpp_nested < main


@site
def cpp_released():
    allocates(cpp.released, "cpp_released")  # site cpp_released:
    # native sites::Allocate@cpp_malloc < native sites::Inlined<unsigned long>@cpp_inlined
    # < native sites::Templated<unsigned long>@cpp_template < native sites::Outer@cpp_outer
    # < native released@entry_released < allocates@allocates < cpp_released@cpp_released < main


@site
def cpp_calls_back():
    cpp.call_back(lambda: take("cpp_calls_back"))  # site cpp_calls_back:
    # cpp_calls_back.<locals>.<lambda>@cpp_calls_back < native sites::CallBack@cpp_call_back
    # < native call_back@entry_call_back < cpp_calls_back@cpp_calls_back < main


@site
def cpp_calls_back_twice():
    def second():
        take("cpp_twice")  # site cpp_twice: cpp_calls_back_twice.<locals>.second
        # < native sites::CallBack@cpp_call_back < native call_back@entry_call_back
        # < cpp_calls_back_twice.<locals>.first@first_callback
        # < native sites::CallBack@cpp_call_back < native call_back@entry_call_back
        # < cpp_calls_back_twice@cpp_calls < main

    def first():
        cpp.call_back(second)  # @first_callback

    cpp.call_back(first)  # @cpp_calls


@site
def cpp_thread_with_gil():
    cpp.thread_with_gil(lambda: take("cpp_thread"))  # site cpp_thread:
    # cpp_thread_with_gil.<locals>.<lambda>@cpp_thread < native sites::CallBack@cpp_call_back
    # < native sites::RunWithGil@cpp_with_gil


@site
def cpp_threads_without_gil():
    # These threads have no Python frames, even if another thread holds the GIL.
    # site cpp_no_gil: native sites::Allocate@cpp_malloc
    # < native sites::RunWithoutGil@cpp_without_gil
    # site cpp_held: native sites::Allocate@cpp_malloc
    # < native sites::RunWithoutGil@cpp_without_gil
    note("cpp_no_gil", None), cpp.thread_without_gil(size_of("cpp_no_gil"))
    note("cpp_held", None), cpp.thread_while_held(size_of("cpp_held"))


def note_two(frame):
    note("cpp_destructor", frame)
    note("cpp_catch", frame)


@site
def cpp_throws():
    def raises():
        take("cpp_raises")  # site cpp_raises: cpp_throws.<locals>.raises
        # < native sites::CallBack@cpp_call_back < native sites::Throws@cpp_throws
        # < native throws@cpp_try < cpp_throws@cpp_throw < main
        raise LookupError

    # site cpp_destructor: native sites::Allocate@cpp_malloc
    # < native sites::AllocatesAtTheEnd::~AllocatesAtTheEnd@cpp_destructor
    # < native sites::Throws < native throws@cpp_try < cpp_throws@cpp_throw < main
    # site cpp_catch: native sites::Allocate@cpp_malloc < native throws@cpp_catch
    # < cpp_throws@cpp_throw < main
    sizes = size_of("cpp_destructor"), size_of("cpp_catch")
    frame = sys._getframe()
    cpp.throws((raises, *sizes)), note_two(frame)  # @cpp_throw


@site
def cpp_error_set():
    allocates(cpp.with_error_set, "cpp_error_set")  # site cpp_error_set:
    # native sites::Allocate@cpp_malloc < native sites::Outer@cpp_outer
    # < native with_error_set@entry_pending < allocates@allocates
    # < cpp_error_set@cpp_error_set < main
