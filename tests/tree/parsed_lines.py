#!/usr/bin/env python3
"""Counts the lines that a compiler parses for each source, and checks that public headers keep them few.

Parsing headers takes nearly all of the build time. A public header, which is one that another directory
includes, is parsed again for each source of that directory and of those that depend on it. So it must not
include protobuf's generated code or more than MAX_LINES lines, with EXCEPTIONS.

Prints the sources with the most lines and the median, then one line per violation, and exits with 1 if
there is one. Counts the lines of all included files, each file once; the compiler lists the files that
a library header includes.

Usage: parsed_lines.py [--all] [--compiler CXX] BUILD
  BUILD  a build directory that contains the generated headers, such as build/dev
"""

import argparse
import collections
import concurrent.futures
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_tree import INCLUDE, ROOMS, TEST_FILE, tracked_files  # noqa: E402

# <absl/status/statusor.h>, with which functions report errors everywhere, has 170,000 lines
# including its standard headers; with an absl hash map as a member, which many classes have, it is
# 206,000. Adding <nlohmann/json.hpp>, <spdlog/spdlog.h> or the header of a .proto file exceeds the
# limit.
MAX_LINES = 220_000

# Headers that may exceed the limit, and why.
EXCEPTIONS = {
    "collector/control/client.h": "returns messages of proto/control.proto, which its directory owns",
    "viewer/html/standalone_file.h": "defines the JSON documents embedded in a page",
}

# Used by tests to write recordings; not counted as public.
FIXTURES = {"analysis/testing/event_script.h"}


def includes_of(text):
    """Returns the includes of a source in order, without brackets."""
    return [match.group(2) for match in map(INCLUDE.match, text.splitlines()) if match]


class Tree:
    """The sources of a tree and the includes of each."""

    def __init__(self, texts):
        self.includes = {name: includes_of(text) for name, text in texts.items()}
        self.lines = {name: text.count("\n") for name, text in texts.items()}

    def libraries(self):
        """Returns all included files that are not in the tree."""
        return {i for included in self.includes.values() for i in included if i not in self.includes}

    def public_headers(self):
        """Returns {header: directories that include it}, without its own directory and without tests."""
        public = collections.defaultdict(set)
        for name, included in self.includes.items():
            room = name.split("/")[0]
            if room not in ROOMS or TEST_FILE.search(name):
                continue
            for header in included:
                owner = header.split("/")[0]
                if header in self.includes and owner in ROOMS and owner != room:
                    public[header].add(room)
        return public

    def closure(self, name, libraries):
        """Returns all files that are parsed for `name`, and how each is reached: {file: (includer, include)}."""
        found, waiting = {name: None}, [name]
        while waiting:
            at = waiting.pop()
            for included in self.includes[at]:
                for file in [included] if included in self.includes else libraries.get(included, ()):
                    if file in found:
                        continue
                    found[file] = (at, included)
                    if file in self.includes:
                        waiting.append(file)
        return found


def files_of_library(compiler, folders, header):
    """Returns the files that `#include <header>` includes; none if it is not installed."""
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
        source.write(f"#include <{header}>\n")
        source.flush()
        ran = subprocess.run([compiler, "-std=c++20", "-M", "-MT", "x", source.name]
                             + [f"-isystem{folder}" for folder in folders], capture_output=True, text=True)
        files = ran.stdout.replace("\\\n", " ").split()[1:]
        return [os.path.normpath(file) for file in files if file != source.name]


def violations(tree, libraries, count):
    """Returns a line for each public header that includes too much. `count`: returns the lines of a library file."""
    found = []
    for header in sorted(set(tree.public_headers()) - FIXTURES - set(EXCEPTIONS)):
        files = tree.closure(header, libraries)
        lines = sum(tree.lines[f] if f in tree.lines else count(f) for f in files)
        generated = [f for f in files if f.endswith(".pb.h")]
        if generated:
            includer, what = files[generated[0]]
            found.append(f"{header}: a public header includes protobuf: {includer} includes {what}. "
                         "Declare the message (format/messages_fwd.h) and include its header in sources")
        elif lines > MAX_LINES:
            found.append(f"{header}: a public header is {lines:,} lines including all its includes, more than "
                         f"{MAX_LINES:,}. Use forward declarations, or move the include to the source")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every source, not the ten with the most lines")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    parser.add_argument("build")
    options = parser.parse_args()
    root = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    texts = {}
    for name in tracked_files(root):
        if name.split("/")[0] in ROOMS and name.endswith((".h", ".cc", ".inc")):
            with open(os.path.join(root, name), encoding="utf-8") as file:
                texts[name] = file.read()
    tree = Tree(texts)
    folders = [os.path.join(options.build, "proto/generated"),
               os.path.expanduser("~/.cache/gpumemtrace/cuda-headers/include")]
    wanted = sorted(tree.libraries())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        libraries = dict(zip(wanted, pool.map(
            lambda header: files_of_library(options.compiler, folders, header), wanted)))
    if not any(file.endswith("gmt.pb.h") for file in libraries.get("proto/gmt.pb.h", ())):
        sys.exit(f"{options.build} has no generated headers: build the target gmt_proto first")
    counted = {}

    def count(path):
        if path not in counted:
            with open(path, "rb") as file:
                counted[path] = file.read().count(b"\n")
        return counted[path]

    units = {}
    for name in texts:
        if name.endswith(".cc"):
            units[name] = sum(tree.lines[f] if f in tree.lines else count(f)
                              for f in tree.closure(name, libraries))
    shown = sorted(units.items(), key=lambda unit: -unit[1])
    for name, lines in shown if options.all else shown[:10]:
        print(f"{lines:9,}  {name}")
    print(f"{len(units)} sources; lines parsed for each: median {int(statistics.median(units.values())):,}, "
          f"total {sum(units.values()) / 1e6:.1f} million")
    wrong = violations(tree, libraries, count)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
