"""Code objects of many kinds, and those that reuse the addresses of others."""

import ctypes
import sys
import types

from oracle import CAPACITY, GIL, MINOR, NO_GIL, Description, Frame, chain, check_all, expect


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
        source = "\n" * i + "def f():\n  check_all('reloaded module')\n"
        exec(compile(source, "reloaded.py", "exec"), {"check_all": check_all}, module.__dict__)
        module.f()


def churn():
    """Code objects are created and destroyed at the same addresses; names and fingerprints must not be mixed up."""
    seen = {}
    frames = (Frame * CAPACITY)()
    fingerprint = ctypes.c_uint64()
    depth = len(chain(sys._getframe())) + 2
    d = Description()
    stale = twice = wrong = 0
    reused = set()
    addresses = set()
    for i in range(20000):
        # Every second pair is equal except for its lines.
        name = f"made_{i // 2 % 50}"
        source = f"def {name}():\n{chr(10) * (i % 7)}  global n; n = walk(frames, 4096, fingerprint)\n{name}()"
        scope = {"walk": NO_GIL.lib.oracle_walk, "frames": frames, "fingerprint": ctypes.byref(fingerprint)}
        exec(compile(source, f"file_{i % 3}.py", "exec"), scope)
        wrong += scope["n"] != depth
        code = scope[name].__code__
        GIL.lib.oracle_describe(frames[0].code, ctypes.byref(d))
        read = (d.name[:d.name_bytes], d.file[:d.file_bytes], d.first_line)
        stale += read != (name.encode(), f"file_{i % 3}.py".encode(), 1)
        (reused if id(code) in addresses else addresses).add(id(code))
        table = code.co_lnotab if MINOR <= 9 else code.co_linetable
        # Copies, so that nothing keeps the code object alive.
        what = (name, i % 3, bytes(bytearray(table)), frames[0].offset)
        known = seen.setdefault((tuple((f.code, f.offset) for f in frames[:2]), fingerprint.value), what)
        twice += known != what
        del scope, code, table, source
    expect("churn: depth", wrong, 0)
    expect("churn: stale names", stale, 0)
    expect("churn: one fingerprint for two stacks", twice, 0)
    return len(reused)
