"""Allocates at many sites, each of which states its stack in a comment.

    take("inner")  # site inner: outer.<locals>.inner < outer@calls_inner < main

The innermost frame comes first. It is on the line of the comment.

    FUNCTION@MARK          a frame on the line that has the comment `@MARK`, in any file
    FUNCTION@FILE:LINE     a frame at this line
    ~                      one or more frames of the standard library
    native FUNCTION        a C++ function between the Python ones, optionally with @MARK
    FRAME{<3.12}           a frame that exists only in these versions
    site NAME{<3.12,held}  the stack of a site in these versions, for calls that hold the GIL
    ...                    the stack is truncated
    no_python              the stack is marked as lacking Python frames
    main                   the frames of this file

A comment that begins with `<` continues the line above. Functions are stated by qualified name;
before 3.11 the interpreter knows only its last part. tests/e2e/stacks compares recordings with these
comments and with the notes that notes.py writes.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import registry  # noqa: E402
import sites_process  # noqa: E402, F401  first, because it forks before the GPU is used
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
