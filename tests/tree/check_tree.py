#!/usr/bin/env python3
"""Checks what a compiler does not: which room includes which, and what must not stand in the tree.

The rules of inclusion are those of docs/architecture.md ("Rooms"). Prints one line for each violation,
`file:line: what is wrong`, and exits 1 if there is one.

Usage: check_tree.py [ROOT]
"""

import os
import re
import subprocess
import sys

# Which rooms a room includes beside itself.
ROOMS = {
    "proto": set(),
    "session": set(),
    "preload": {"session"},
    "format": {"proto"},
    "symbols": set(),
    "analysis": {"proto", "format", "symbols"},
    "interop": {"proto", "format", "symbols", "analysis"},
    "collector": {"proto", "session", "format", "symbols", "analysis", "interop"},
    "viewer": {"proto", "format", "symbols", "analysis", "interop"},
    "cli": {"proto", "session", "format", "symbols", "analysis", "interop", "collector", "viewer"},
}

# Files that know more than the rest of their room: the bridge from recordings to the symbol tables.
BRIDGES = {"symbols/symbolize_recording": {"proto", "format"}}

# Rooms that live in other people's processes take nothing but libc, the C++ headers that need no
# library, and the headers of CUDA.
LIBC_ONLY = {"session", "preload"}
# The collector's side of the session, which the preloaded library does not compile.
NOT_PRELOADED = "session/arena_reader"
FOREIGN_LIBRARY = re.compile(
    r"(absl|google|fmt|spdlog|CLI|nlohmann|elfutils|boost|sqlite3|zstd|libelf|dwarf|event2|re2)\b")
FOREIGN_STANDARD = {
    "condition_variable", "deque", "exception", "filesystem", "fstream", "functional", "future",
    "iostream", "iomanip", "istream", "list", "locale", "map", "memory_resource", "mutex", "ostream",
    "queue", "random", "regex", "set", "shared_mutex", "sstream", "stdexcept", "stop_token", "string",
    "system_error", "thread", "unordered_map", "unordered_set", "vector",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CODE = (".h", ".cc", ".inc", ".c", ".cpp")
TEST_FILE = re.compile(r"(_test|_benchmark|_fuzz|_fixture)\.(cc|h)$|/testdata/|/testing/")

# A random test whose seed is not listed fails for somebody else first: tests/seeds/ draws new ones.
TEST_CODE = re.compile(r"_test\.(cc|py|tsx?)$|_(fixture\.h|check\.py)$|/testing/|/e2e/|^tests/(?!seeds/)")
FRESH_SEED = re.compile(
    r"\brandom_device\b|\brandom_seed\(|\bsrand\(|\bSystemRandom\b|\bMath\.random\b"
    r"|(?<![\w.])random\.(Random\(\)|seed\(\)|(random|rand\w+|choices?|sample|shuffle|uniform)\()"
    r"|\b(mt19937(_64)?|minstd_rand0?|Random)\b.*\b(time|now|getpid)\(")

# Spelt in halves, so that the rules do not find themselves.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
ONE_MACHINE = re.compile(r"(?<![\w.$}/])/(ro" r"ot|wo" r"rk|Use" r"rs)/")


def tracked_files(root):
    """Files of the tree that are, or are about to be, under version control."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others",
                          "--exclude-standard"], capture_output=True)
    if git.returncode == 0:
        names = git.stdout.decode().split("\0")
    else:
        names = []
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in {".git", "build", "node_modules"}]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted({n for n in names if n and os.path.isfile(os.path.join(root, n))})


def check_include(name, quote, included):
    """What is wrong with `name` including `included`, or None."""
    room = name.split("/")[0]
    target = included.split("/")[0] if "/" in included else None
    is_test = TEST_FILE.search(name)
    if room not in ROOMS:
        if room == "tests" and target in ROOMS and name.startswith("tests/simcuda/"):
            return f"tests/simcuda/ stands in for NVIDIA's libraries and must not include {target}/"
        return None
    if target == "tests" and not is_test:
        return f"{room}/ must not include tests/"
    if quote == '"' and target is None:
        return f'"{included}" is not written from the root of the tree'
    if target in ROOMS and target != room:
        allowed = set(ROOMS[room])
        for prefix, more in BRIDGES.items():
            if name.startswith(prefix):
                allowed |= more
        if target not in allowed:
            return f"{room}/ must not include {target}/"
    if room in LIBC_ONLY and not is_test and not name.startswith(NOT_PRELOADED):
        if FOREIGN_LIBRARY.match(included) or included in FOREIGN_STANDARD:
            return f"{room}/ lives in other people's processes and must not need <{included}>"
    return None


def check_text(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield number, "unfinished work belongs into an issue, not into the tree"
        if ONE_MACHINE.search(line):
            yield number, "a path that exists on one machine only"
        if TEST_CODE.search(name) and FRESH_SEED.search(line):
            yield number, "draws a seed of its own; tests/seeds/ says how seeds are listed and drawn"
        if name.endswith("package-lock.json") and '"resolved": "http' in line:
            yield number, "names a registry's host; npm config set omit-lockfile-registry-resolved"
        if name.endswith(CODE):
            include = INCLUDE.match(line)
            problem = include and check_include(name, include.group(1), include.group(2))
            if problem:
                yield number, problem


def check_mode(name, path, text):
    executable = os.access(path, os.X_OK)
    if text.startswith("#!") and not executable and name.startswith(("scripts/", ".ci/")):
        yield 1, "starts with #! but is not executable; chmod +x"
    if executable and not text.startswith("#!"):
        yield 1, "is executable but does not start with #!"


BUILT_TEST = re.compile(r"_(test|benchmark|fuzz)\.cc$")


def check_is_built(names, root):
    """A test that no CMakeLists.txt names passes for ever."""
    for name in filter(BUILT_TEST.search, names):
        folder, base = os.path.split(name)
        lists = [os.path.join(root, f, "CMakeLists.txt") for f in (folder, os.path.dirname(folder))]
        texts = [open(path, encoding="utf-8").read() for path in lists if os.path.exists(path)]
        if not any(base in text for text in texts):
            yield f"{name}:1: stands in no CMakeLists.txt, so that it is never built"


def violations(root):
    names = tracked_files(root)
    found = list(check_is_built(names, root))
    for name in names:
        path = os.path.join(root, name)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            continue  # a golden file, a picture
        for number, problem in [*check_text(name, text), *check_mode(name, path, text)]:
            found.append(f"{name}:{number}: {problem}")
    return found


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = violations(root)
    for line in found:
        print(line)
    if found:
        print(f"{len(found)} violations. The rules and their reasons: docs/architecture.md, CONTRIBUTING.md")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
