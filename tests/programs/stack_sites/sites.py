"""Allocates at many places, each of which says in a comment what its stack must be.

    take("inner")  # site inner: outer.<locals>.inner < outer@calls_inner < main

Frames stand innermost first. The first is on the line of the comment; FUNCTION@MARK is on the line
that has the comment `@MARK`, in whatever file that is; FUNCTION@FILE:LINE says where it is. `~` is
one or more frames of the standard library. `native FUNCTION`, perhaps with @MARK, is a C++ function
between the Python ones. `FRAME{<3.12}` is there on those versions only, `site NAME{<3.12,held}` is what a site must be there,
for calls that hold the GIL. `...`: the stack is cut. `no_python`: it says that Python's frames are
missing. `main` is this file's part. A comment that begins with `<` goes on with the line above.

Functions go by their qualified name; before 3.11 the interpreter knows only its last part.
tests/e2e/stacks compares recordings with these comments and with what notes.py writes.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import registry  # noqa: E402
import sites_process  # noqa: E402, F401  the first ones: the GPU must not have been used at fork
import sites_async  # noqa: E402, F401
import sites_callbacks  # noqa: E402, F401
import sites_classes  # noqa: E402, F401
import sites_code  # noqa: E402, F401
import sites_control  # noqa: E402, F401
import sites_functions  # noqa: E402, F401
import sites_native  # noqa: E402, F401
import sites_threads  # noqa: E402, F401


def run(function):
    function()  # @run


if __name__ == "__main__":
    for function in registry.ALL:
        run(function)  # @start
