"""Prints the lines that this interpreter reports for its own code objects, for python_lines_test.

Usage: python_lines.py STEP
Compiles every STEP-th file of the standard library and some code with unusual lines. Per code object, prints to stdout:
u32 format (0 to 2), first line, bytes of the line table, instructions (units of 2 bytes); the table; an i32 line per
instruction, 0 if the interpreter knows none.
"""

import array
import ast
import ctypes
import os
import struct
import sys
import sysconfig

VERSION = sys.version_info[:2]
FORMAT = 0 if VERSION < (3, 10) else 1 if VERSION == (3, 10) else 2

line_at = ctypes.pythonapi.PyCode_Addr2Line
line_at.argtypes = [ctypes.py_object, ctypes.c_int]
line_at.restype = ctypes.c_int


def dump(code):
    table = code.co_lnotab if FORMAT == 0 else code.co_linetable
    units = len(code.co_code) // 2
    lines = array.array("i", [max(line_at(code, 2 * unit), 0) for unit in range(units)])
    sys.stdout.buffer.write(struct.pack("=4I", FORMAT, code.co_firstlineno, len(table), units) + table + lines.tobytes())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            dump(constant)


def unusual():
    """Yields code with large jumps forward and back, very long lines, and code without a line."""
    yield compile("\n" * 70000 + "x = 1\n" + "\n" * 300 + "y = [\n" + "1,\n" * 1000 + "]\n", "far", "exec")
    yield compile("x = [" + "f(1), " * 2000 + "]\n", "one_line", "exec")
    yield compile("", "empty", "exec")
    tree = ast.parse("a = f(\n 1)\nb = g(2)\nfor c in d:\n  try:\n    h(c)\n  finally:\n    i()\n")
    for step, node in enumerate(ast.walk(tree)):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = (step * 7919) % 40000 + 1
            node.col_offset = node.end_col_offset = step * 37
    yield compile(tree, "jumping", "exec")


def library(step):
    root = sysconfig.get_paths()["stdlib"]
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("site-packages", "dist-packages", "__pycache__")]
        names += [os.path.join(folder, name) for name in files if name.endswith(".py")]
    for name in sorted(names)[::step]:
        try:
            with open(name, "rb") as source:
                yield compile(source.read(), name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, OSError):  # some test files of the library do not compile
            pass


sys.setrecursionlimit(10000)
import warnings

warnings.simplefilter("ignore")
for code in unusual():
    dump(code)
for code in library(int(sys.argv[1])):
    dump(code)
