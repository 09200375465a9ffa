"""The checks: compare the walk of this interpreter's frames with what the interpreter itself reports.

python_oracle.so, whose path is the program's first argument, is loaded twice: as CDLL its functions run without the
GIL, as PyDLL with it. Each check compares the whole chain of frames with that of sys._getframe(): code objects,
instructions, and how names, files and lines are read.
"""

import ctypes
import re
import sys
import threading

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
known = {"stacks": [0, 0], "Python stacks": [0, 0]}  # compared, and not known
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
    """Returns (code object, instruction in units of 2 bytes) of each frame, innermost first."""
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
    """Returns what is wrong with how this code object is read, or None."""
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
    """Returns what is wrong with the walk, or None. The innermost frame has advanced: only its line is compared."""
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
    """Checks a walk from here, with and without the GIL."""
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


def check_merge(label):
    """Checks that each run of Python frames finds its native frame, as far as the native walk reaches."""
    result = (ctypes.c_int * 5)()
    GIL.lib.oracle_merge(result)
    wanted = len(chain(sys._getframe()))
    runs, frames, in_interpreter, left, truncated = result
    all_placed = frames == wanted or (truncated and frames < wanted)
    problem = None
    if not all_placed or runs != in_interpreter or runs == 0:
        problem = f"{runs} runs ({in_interpreter} in the interpreter), {frames} of {wanted} frames, left: {left}"
    note(label + ", merged", problem)


def check_known(label, oracle=GIL):
    """Checks that what is computed from the last stack equals what is computed from the whole one."""
    for what, function in (("stacks", oracle.lib.oracle_known_stack),
                           ("Python stacks", oracle.lib.oracle_known_python_stack)):
        result = function()
        known[what][result == 0] += 1
        if result == 2:
            note(f"{label}: {what}", "the known digest is another one")


def check_all(label):
    check_known(label, NO_GIL)
    check(label)
    check_known(label)
    check_merge(label)
