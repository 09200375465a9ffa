"""Events of the whole process: fork, signals, subinterpreters, exit."""

import atexit
import os
import signal

from device import take
from registry import site


@site
def forks():
    child = os.fork()
    if child == 0:
        take("fork_child")  # site fork_child: forks < main
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def handler(number, _):
    take("signal")  # site signal: handler < signals@raise < main


@site
def signals():
    before = signal.signal(signal.SIGUSR1, handler)
    os.kill(os.getpid(), signal.SIGUSR1), len("")  # @raise
    signal.signal(signal.SIGUSR1, before)


SCRIPT = """import sys
sys.path.insert(0, {folder!r})
from device import take
def inside():
    take("subinterpreter")
inside()
"""


def shared_gil_subinterpreter():
    """Returns the module of subinterpreters and a subinterpreter that may load any extension."""
    try:
        import _interpreters

        return _interpreters, _interpreters.create("legacy")
    except ImportError:
        pass
    try:
        import _xxsubinterpreters

        return _xxsubinterpreters, _xxsubinterpreters.create(isolated=False)
    except TypeError:  # before 3.9 there was one kind
        return _xxsubinterpreters, _xxsubinterpreters.create()


@site
def subinterpreter():
    interpreters, new = shared_gil_subinterpreter()
    script = SCRIPT.format(folder=os.path.dirname(os.path.abspath(__file__)))
    # Before 3.12 the interpreter of a thread can be determined only while it holds the GIL.
    # site subinterpreter{<3.12,released}: no_python
    # site subinterpreter{<3.12,held}: inside@<string>:5 < <module>@<string>:6
    # site subinterpreter{>=3.12}: inside@<string>:5{<3.14} < <module>@<string>:6{<3.14}
    # < inside@<script>:5{>=3.14} < <module>@<script>:6{>=3.14}
    failure = interpreters.run_string(new, script)
    assert failure is None, failure
    interpreters.destroy(new)


def at_exit():
    take("atexit")  # site atexit: at_exit


atexit.register(at_exit)
