#!/usr/bin/env python3
"""Runs the commands of README.md and compares their output with the output shown there.

A ```console block contains commands after "$ " and below each its output, which lines "..." may shorten. A ```python block
whose first line is a comment with a file name is written to that file. The blocks are executed in order in one directory,
with gpumemtrace on PATH, `python` with PyTorch on the simulated device, and train.py. Numbers may differ, words may not.
A command without output below it must succeed; its output is not compared.

Usage: check_readme.py --build DIR --python PYTHON [--print] [PAGE...]
  --print  prints the commands and their output, for updating the page
  PAGE     default: README.md, and the pages whose examples use its recording
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/commands.md", "docs/advise.md", "docs/estimate.md", "docs/whatif.md")
MORE_PAGES = ("docs/tutorials.md",)  # run by themselves
# The model of config.json, for estimate.
CONFIG = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
          "vocab_size": 32000, "torch_dtype": "bfloat16"}
HANG_S = 600
NUMBER = re.compile(r"\d[\d.,]*( [KMGT]?i?B\b| [mµn]?s\b)?")


def commands(page):
    """Returns (line number, command, expected lines) of every command in a console block."""
    found, inside = [], False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append((number, line[2:], []))
        elif inside and found:
            found[-1][2].append(line)
    return found


def programs(page):
    """Returns (name, text) of every program in a python block that begins with its name."""
    blocks = re.findall(r"^```python\n(# (\w+\.py)\n.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [(name, text) for text, name in blocks]


def shape(line):
    return " ".join(NUMBER.sub("#", line).split())


def matches(expected, printed):
    """Returns whether the printed lines are the expected ones; "..." matches any number of lines."""
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(matches(expected[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shape(expected[0]) == shape(printed[0]) and matches(expected[1:], printed[1:])


def prepare(folder, build, python):
    """Prepares what the page assumes: gpumemtrace and a python on PATH, a train.py and a config.json."""
    tools = folder / "bin"
    tools.mkdir()
    wrapper = tools / "python"
    wrapper.write_text(f'#!/bin/sh\nexec "{build}/simcuda/with-simcuda" "{python}" "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    here = folder / "here"
    here.mkdir()
    shutil.copy(ROOT / "tests" / "programs" / "train_gpt.py", here / "train.py")
    (here / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE", "SIMCUDA", "LD_PRELOAD"))}
    return here, {**clean, "PATH": f"{build}/bin:{tools}:{os.environ['PATH']}", "TERM": "dumb", "COLUMNS": "80"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--print", action="store_true")
    parser.add_argument("pages", nargs="*", default=PAGES)
    args = parser.parse_args()

    failed = passed = 0
    with tempfile.TemporaryDirectory(prefix="gmt-readme-") as folder:
        here, environment = prepare(pathlib.Path(folder), args.build.resolve(), args.python)
        for page in args.pages:
            for name, text in programs(ROOT / page):
                (here / name).write_text(text, encoding="utf-8")
            for number, command, expected in commands(ROOT / page):
                done = subprocess.run(["bash", "-c", command], cwd=here, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG_S)
                printed = done.stdout.replace(f"{here}/", "").rstrip().splitlines()
                if args.print:
                    print(f"$ {command}", *printed, sep="\n")
                if done.returncode == 0 and (not expected or matches(expected, printed)):
                    passed += 1
                    continue
                failed += 1
                print(f"{page}:{number}: $ {command}\nexit code {done.returncode}; printed:", *printed, "expected:",
                      *expected, sep="\n")
    print(f"{' and '.join(args.pages)}: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
