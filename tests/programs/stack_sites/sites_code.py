"""Code that is created at run time."""

import importlib
import os
import sys
import tempfile

from device import take
from registry import site


@site
def executes():
    exec(compile('def executed():\n    take("exec")\nexecuted()\n', "<executed>", "exec"))  # @exec
    # site exec: executed@<executed>:2 < <module>@<executed>:3 < executes@exec < main


@site
def evaluates():
    eval(compile('take("eval")', "<evaluated>", "eval"))  # @eval
    # site eval: <module>@<evaluated>:1 < evaluates@eval < main


@site
def imports():
    import imported  # noqa: F401  @import


@site
def reloads():
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "reloaded.py")
    with open(path, "w") as file:
        file.write("def first(take):\n    take('loaded')\n")
    sys.path.insert(0, folder)
    import reloaded

    reloaded.first(take)  # @loaded site loaded: first@reloaded.py:2 < reloads@loaded < main
    with open(path, "w") as file:
        file.write("# Moved.\n\n\ndef second(take):\n\n    take('reloaded')\n")
    importlib.reload(reloaded)
    reloaded.second(take)  # @reloaded site reloaded: second@reloaded.py:6
    # < reloads@reloaded < main
    sys.path.remove(folder)


@site
def long_functions():
    # Line differences, forwards and backwards, that one byte of a line table cannot hold.
    source = "def long_one(take):\n" + "\n" * 70000 + "    (take\n" + "\n" * 300 + "    ('far'))\n"
    scope = {}
    exec(compile(source, "<far>", "exec"), scope)
    scope["long_one"](take)  # @far site far: long_one@<far>:70002 < long_functions@far < main
