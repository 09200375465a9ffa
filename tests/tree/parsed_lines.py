#!/usr/bin/env python3
"""How many lines a compiler parses for each source, and whether public headers keep them few.

Nearly all of the time of a build goes into parsing headers. A public header, one that another room
includes, is parsed again for each source of that room and of the rooms behind it. So it must not bring
in protobuf's generated code, nor more than MOST_LINES lines, but for EXCEPTIONS.

Prints the sources with the most lines and the median, then a line for each violation, and exits 1 if
there is one. Lines are those of all files that are included, each counted once; what an include of a
library brings in is asked of the compiler.

Usage: parsed_lines.py [--all] [--compiler CXX] BUILD
  BUILD  a build folder in which the generated headers are, such as build/dev
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

# <absl/status/statusor.h>, by which functions report errors everywhere, is 170,000 lines with the
# standard headers that it includes; a member that is an absl hash map, which many classes have, makes
# it 206,000. <nlohmann/json.hpp> or <spdlog/spdlog.h> beside these, or the header of a contract, is more.
MOST_LINES = 220_000

# Headers that may be more, and why.
EXCEPTIONS = {
    "collector/control/client.h": "hands out messages of proto/control.proto, which its room owns",
    "viewer/html/mailed_file.h": "is the JSON documents that a page carries",
}

# What tests write recordings with, and include as others do.
FIXTURES = {"analysis/testing/event_script.h"}


def includes_of(text):
    """What a source includes, in order, without the brackets."""
    return [match.group(2) for match in map(INCLUDE.match, text.splitlines()) if match]


class Tree:
    """The sources of a tree and what each of them includes."""

    def __init__(self, texts):
        self.includes = {name: includes_of(text) for name, text in texts.items()}
        self.lines = {name: text.count("\n") for name, text in texts.items()}

    def libraries(self):
        """Everything that is included and is no file of the tree."""
        return {i for included in self.includes.values() for i in included if i not in self.includes}

    def public_headers(self):
        """Header -> the rooms that include it, beside its own and not for tests alone."""
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
        """All files that are parsed for `name`, and how it gets to each library: {file: includer}."""
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
    """The files that `#include <header>` brings in; none if it is not installed."""
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
        source.write(f"#include <{header}>\n")
        source.flush()
        ran = subprocess.run([compiler, "-std=c++20", "-M", "-MT", "x", source.name]
                             + [f"-isystem{folder}" for folder in folders], capture_output=True, text=True)
        files = ran.stdout.replace("\\\n", " ").split()[1:]
        return [os.path.normpath(file) for file in files if file != source.name]


def violations(tree, libraries, count):
    """Lines of text: public headers that bring in too much. `count`: lines of a library's file."""
    found = []
    for header in sorted(set(tree.public_headers()) - FIXTURES - set(EXCEPTIONS)):
        files = tree.closure(header, libraries)
        lines = sum(tree.lines[f] if f in tree.lines else count(f) for f in files)
        generated = [f for f in files if f.endswith(".pb.h")]
        if generated:
            includer, what = files[generated[0]]
            found.append(f"{header}: a public header brings in protobuf: {includer} includes {what}. "
                         "Declare the message (format/messages_fwd.h) and include its header in sources")
        elif lines > MOST_LINES:
            found.append(f"{header}: a public header is {lines:,} lines with all that it includes, more than "
                         f"{MOST_LINES:,}. Declare what it names, or keep it in the source")
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
          f"all together {sum(units.values()) / 1e6:.1f} million")
    wrong = violations(tree, libraries, count)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
