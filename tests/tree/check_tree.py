#!/usr/bin/env python3
"""Checks rules that a compiler does not: includes between directories, and forbidden contents of the tree.

The rules for includes are those of docs/architecture.md ("Rooms"). Prints one line per violation,
`file:line: problem`, and exits with 1 if there is one.

Usage: check_tree.py [ROOT]
"""

import os
import re
import subprocess
import sys

# Directories that each directory may include in addition to itself.
ROOMS = {
    "proto": set(),
    "session": set(),
    "preload": {"session"},
    "format": {"proto"},
    "symbols": set(),
    "analysis": {"proto", "format", "symbols"},
    "interop": {"proto", "format", "symbols", "analysis"},
    "http": set(),
    "collector": {"proto", "session", "format", "symbols", "analysis", "interop", "http"},
    "answers": {"proto", "format", "symbols", "analysis", "interop"},
    "viewer": {"proto", "format", "symbols", "analysis", "interop", "http", "answers"},
    "cli": {"proto", "session", "format", "symbols", "analysis", "interop", "http", "collector", "answers", "viewer"},
}

# Files with more dependencies than the rest of their directory: the bridge from recordings to
# symbol tables.
BRIDGES = {"symbols/symbolize_recording": {"proto", "format"}}

# The folders of a room from the lowest layer to the highest: one may include those before it (docs/architecture.md).
LAYERS = {
    "preload": ["base", "loader", "stacks", "torch/state", "nvtx/state", "process", "record", "torch", "routes", "hooks",
                "cupti", "nvtx", "lifecycle"],
    "analysis": ["trace", "stacks", "loop", "examination", "categories", "leaks", "fragmentation", "estimate", "whatif", "ledger", "oom", "advise",
                 "diff", "report", "show"],
    "interop": ["event_log", "pickle", "rmm_log", "jax_profile", "torch_import", "torch", "profile", "pprof", "timeline", "heaptrack", "arrow"],
    "collector": ["sessions", "events", "output", "devices", "mailbox", "metrics", "control", "inject"],
    "answers": ["stacks", "report", "frag", "estimate", "oom", "whatif", "advise", "leaks", "ledger", "diff", "ranks", "show", "sql"],
    "viewer": ["slab", "index", "questions", "served", "live", "html", "server"],
}

# Code that runs inside other processes uses only libc, C++ headers that need no library, and the
# headers of CUDA.
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
TEST_FILE = re.compile(r"(_test|_benchmark|_fuzz)\.cc$|/testdata/|/testing/")

# A random test with an unlisted seed would first fail for another user; tests/seeds/ and the page's
# testing/seeds.ts draw new seeds.
TEST_CODE = re.compile(r"_test\.(cc|py|tsx?)$|_check\.py$|/testing/(?!seeds\.ts)|/e2e/|^tests/(?!seeds/)")
FRESH_SEED = re.compile(
    r"\brandom_device\b|\brandom_seed\(|\bsrand\(|\bSystemRandom\b|\bMath\.random\b"
    r"|(?<![\w.])random\.(Random\(\)|seed\(\)|(random|rand\w+|choices?|sample|shuffle|uniform)\()"
    r"|\b(mt19937(_64)?|minstd_rand0?|Random)\b.*\b(time|now|getpid)\(")

# A variable of the preloaded library that outlives a function. The comment above it, or above the lines before it, says
# what it is in a fork child: a cache, which is still right, or state of one process, and what keeps the child from it.
NO_VARIABLE = (r"(?!(?:inline |static )*(?:using|namespace|struct|class|enum|union|template|typedef|extern|return|else"
               r"|constexpr|const|static_assert|friend|public|private|case|goto)\b)")
GLOBAL_VARIABLE = re.compile(
    NO_VARIABLE + r"(?:\S+ )*constinit "
    r"|" + NO_VARIABLE + r"(?:(?:static|inline|thread_local|alignas\(\w+\)) )*[\w:]+(?:<[^;]*>)?[ *&]+[\w:]+(?:\[[^;]*\])*(?: =|\{|;|,)")
SURVIVES_FORK = re.compile(r"// (Cache|State): ")

# A comment of prose. Drawings and tables, which have runs of spaces, may be wider than 100 columns.
PROSE_COMMENT = re.compile(r"\s*//(?!.*\S  +\S)")

# Split, so that the rules do not match themselves.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
ONE_MACHINE = re.compile(r"(?<![\w.$}/])/(ro" r"ot|wo" r"rk|Use" r"rs)/")


def tracked_files(root):
    """Returns the files of the tree that are, or are about to be, under version control."""
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


# Tests that may sleep, and why (CONTRIBUTING.md: no test depends on the speed of the machine).
MAY_SLEEP = {
    "tests/e2e/recording/waiting.py": "implements waiting for all others",
    "tests/e2e/cupti/cupti_check.py": "a program that gives Kineto's thread time; any amount is sufficient",
    "tests/e2e/memory_viz/own_history_check.py": "two moments must differ",
    "tests/e2e/streams/streams_check.py": "a call of a random program",
    "collector/control/server_test.cc": "so that a client usually has to wait; it is accepted in any case",
    "session/crash_test.cc": "until a random instant",
    "symbols/symbol_cache_test.cc": "until instants at which processes are killed",
    "viewer/index/parallel_for_test.cc": "tasks that take longer than the propagation of an exception",
    "viewer/page/e2e/transports_test.ts": "a late answer",
    "viewer/page/e2e/live_test.ts": "until instants between two polls of the collector",
}
TIMED_TEST = re.compile(r"(?<!/check_tree)(_test\.(cc|py|tsx?)|_fixture\.h)$|^tests/(?!programs/|tree/check_tree|simcuda/[^/]*\.cc).*\.py$")
SLEEP = re.compile(r"\b(time\.sleep|u?sleep|nanosleep|sleep_for|waitForTimeout)\(|\bsetTimeout\(\w+, *[1-9A-Z]")
POLLS = re.compile(r"\b(while|do)\b|\bfor \(")
COUNTED = re.compile(r"\bfor \(\w+ (\w+) = 0; [^;]*\b\1 < \d+\b|\bfor \w+ in range\(")
TIMEOUT_VALUE = re.compile(r"\b(timeout=|settimeout\(|timeout: ?|TIMEOUT )(\d[\d_]*(?:\.\d+)?)\b")
MIN_TIMEOUT_S = 60
SOON = re.compile(r"\bassert(Less\w*\(| ).*(monotonic|perf_counter)\(\).*(<|,)|"
                  r"\b(EXPECT|ASSERT)_L[TE]\(.*(steady_clock|system_clock)::now\(\)|"
                  r"(Date|performance)\.now\(\).*\)\.toBeLess")


def lines_around(lines, index):
    """Returns the line together with the first line of the enclosing block."""
    indent = len(lines[index]) - len(lines[index].lstrip())
    outer = next((line for line in reversed(lines[:index]) if line.strip() and len(line) - len(line.lstrip()) < indent), "")
    return f"{outer} {lines[index]}"


def check_times(name, text):
    """Finds tests that depend on the speed of the machine, as far as this can be detected."""
    if name.endswith("CMakeLists.txt") or TIMED_TEST.search(name):
        in_ms = name.endswith((".ts", ".tsx"))
        for number, line in enumerate(text.splitlines(), 1):
            for guard in TIMEOUT_VALUE.finditer(line):
                seconds = float(guard.group(2).replace("_", "")) / (1000 if in_ms else 1)
                if 0 < seconds < MIN_TIMEOUT_S and name not in MAY_SLEEP and "# not a guard" not in line:
                    yield number, f"a timeout against hanging must be at least {MIN_TIMEOUT_S} s"
    if not TIMED_TEST.search(name):
        return
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if SOON.search(line) and name not in MAY_SLEEP:
            yield index + 1, "compares a time with a limit: compare order or counts, or print it"
        if not SLEEP.search(line) or name in MAY_SLEEP or re.search("random|chance", "".join(lines[max(0, index - 1) : index + 1])):
            continue
        around = lines_around(lines, index)
        if not POLLS.search(around) or COUNTED.search(around):
            yield index + 1, "sleeps: wait for the event itself (tests/e2e/recording/waiting.py)"


def layer_of(room, path):
    """The place of a file's folder among the layers of its room; -1 for files in no layer."""
    layers = LAYERS.get(room, [])
    found = [layer for layer in layers if path.startswith(f"{room}/{layer}/")]
    return layers.index(max(found, key=len)) if found else -1


def check_include(name, quote, included):
    """Returns what is wrong with `name` including `included`, or None."""
    room = name.split("/")[0]
    target = included.split("/")[0] if "/" in included else None
    is_test = TEST_FILE.search(name)
    if room not in ROOMS:
        if room == "tests" and target in ROOMS and name.startswith("tests/simcuda/"):
            return f"tests/simcuda/ replaces NVIDIA's libraries and must not include {target}/"
        return None
    if target == "tests" and not is_test:
        return f"{room}/ must not include tests/"
    if quote == '"' and target is None:
        return f'"{included}" is not written from the root of the tree'
    if target == room and not is_test and layer_of(room, name) >= 0 and layer_of(room, included) > layer_of(room, name):
        return f"{os.path.dirname(name)}/ is a lower layer than {os.path.dirname(included)}/ and must not include it"
    if target in ROOMS and target != room:
        allowed = set(ROOMS[room])
        for prefix, more in BRIDGES.items():
            if name.startswith(prefix):
                allowed |= more
        if target not in allowed:
            return f"{room}/ must not include {target}/"
    if room in LIBC_ONLY and not is_test and not name.startswith(NOT_PRELOADED):
        if FOREIGN_LIBRARY.match(included) or included in FOREIGN_STANDARD:
            return f"{room}/ runs inside other processes and must not need <{included}>"
    return None


def check_text(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield number, "unfinished work belongs in an issue, not in the tree"
        if ONE_MACHINE.search(line):
            yield number, "a path that exists on one machine only"
        if TEST_CODE.search(name) and FRESH_SEED.search(line):
            yield number, "draws a seed of its own; list seeds or draw them with tests/seeds/"
        if name.endswith("package-lock.json") and '"resolved": "http' in line:
            yield number, "contains the host of a registry; npm config set omit-lockfile-registry-resolved"
        if name.endswith(CODE) and len(line) > 100 and PROSE_COMMENT.match(line):
            yield number, "a comment is wider than 100 columns"
        if name.endswith(CODE):
            include = INCLUDE.match(line)
            problem = include and check_include(name, include.group(1), include.group(2))
            if problem:
                yield number, problem


def check_variables(name, text):
    if not name.startswith("preload/") or not name.endswith((".h", ".cc", ".inc")) or TEST_FILE.search(name):
        return
    says = False
    for number, line in enumerate(text.splitlines(), 1):
        says = bool(SURVIVES_FORK.match(line)) or says and line != ""
        if GLOBAL_VARIABLE.match(line) and not says:
            yield number, "does not say what it is in a fork child: // Cache: ... or // State: ..."


def check_mode(name, path, text):
    executable = os.access(path, os.X_OK)
    if text.startswith("#!") and not executable and name.startswith(("scripts/", ".ci/")):
        yield 1, "starts with #! but is not executable; chmod +x"
    if executable and not text.startswith("#!"):
        yield 1, "is executable but does not start with #!"


TEST_SUPPORT = re.compile(r"(_fixture|_oracle)\.(h|cc)$|/fake_[^/]*$")
BUILT_TEST = re.compile(r"_(test|benchmark|fuzz)\.cc$")


def check_is_built(names, root):
    """Finds tests that no CMakeLists.txt lists; they would never run."""
    for name in filter(BUILT_TEST.search, names):
        folder, base = os.path.split(name)
        lists = [os.path.join(root, f, "CMakeLists.txt") for f in (folder, os.path.dirname(folder))]
        texts = [open(path, encoding="utf-8").read() for path in lists if os.path.exists(path)]
        if not any(base in text for text in texts):
            yield f"{name}:1: is not in any CMakeLists.txt, so it is never built"


def check_test_support(names, root):
    """Finds sources beside the code of a room that only tests need: by what includes them, or by their names."""
    included = {False: set(), True: set()}  # by tests?
    for name in filter(lambda n: n.endswith(CODE), names):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            found = {match.group(2) for match in map(INCLUDE.match, file) if match}
        included[name.split("/")[0] not in ROOMS or bool(TEST_FILE.search(name))] |= found
    for name in names:
        room = name.split("/")[0]
        if room not in ROOMS or not name.endswith(CODE) or TEST_FILE.search(name):
            continue
        if TEST_SUPPORT.search(name) or name in included[True] - included[False]:
            yield f"{name}:1: only tests need it; it belongs in {room}/testing/"


def violations(root):
    names = tracked_files(root)
    found = [*check_is_built(names, root), *check_test_support(names, root)]
    for name in names:
        path = os.path.join(root, name)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            continue  # a golden file, a picture
        for number, problem in [*check_text(name, text), *check_times(name, text), *check_variables(name, text), *check_mode(name, path, text)]:
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
