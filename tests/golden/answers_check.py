#!/usr/bin/env python3
"""Compares the program's output for small recordings with the texts in tests/golden/answers/.

The recordings are those of cases.py, and event logs in the folder of the texts, beside configurations of models. A text has the command
in its first line and then the output. Lines of stderr begin with "stderr: ", and an exit code other
than 0 is the last line.

    $ gpumemtrace oom capacity.jsonl
    Out of memory: ...

To add a text, create a file with the command alone and run with --update. Every answer must fit a
screen: at most 25 lines of 100 columns, unless the command sets the number of rows. `report`, which
prints a list, and verbs that convert are exempt.

Usage: answers_check.py --build DIR [--update] [NAME...]

NAME is a text without ".txt". Exits with 1 if any text differs.
"""

import argparse
import difflib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

import cases

ANSWERS = pathlib.Path(__file__).resolve().parent / "answers"
PROMPT = "$ gpumemtrace "
WIDTH, LINES = 100, 25
# Verbs whose output may have any length.
LISTS = {"report", "cat", "info", "list", "export", "import", "repair", "symbolize"}
LONGER = ("--top", "--raw-frames", "--json", "--markdown", "--by", "--all")
TIMEOUT_S = 300


def command_of(text):
    """Returns the words after the prompt in a text's first line."""
    first = text.split("\n", 1)[0]
    if not first.startswith(PROMPT):
        sys.exit(f"the first line must be a command, such as '{PROMPT}oom capacity.jsonl', not {first!r}")
    return shlex.split(first[len(PROMPT):])


def prepare(program, folder):
    """Writes all files that a text can name: cases, logs, configurations, a complete and a truncated recording."""
    cases.write(folder)
    for path in (*ANSWERS.glob("*.jsonl"), *ANSWERS.glob("*.json")):
        shutil.copy(path, folder)
    subprocess.run([program, "import", "short.jsonl", "-o", "short.gmt"], cwd=folder, check=True, capture_output=True)
    whole = (folder / "short.gmt").read_bytes()
    (folder / "cut.gmt").write_bytes(whole[:len(whole) * 2 // 3])


def run(program, words, cache, folder):
    """Returns the output as a text."""
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("COLUMNS", "GPUMEMTRACE", "LD_PRELOAD")}
    environment |= {"NO_COLOR": "1", "XDG_CACHE_HOME": cache, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([program, *words, "--width", str(WIDTH)], cwd=folder, env=environment, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
    seen = done.stdout
    if seen and not seen.endswith("\n"):
        seen += "\n"
    seen += "".join(f"stderr: {line}\n" for line in done.stderr.splitlines())
    if done.returncode:
        seen += f"exit code {done.returncode}\n"
    return seen


def too_big(words, seen):
    """Returns why an answer does not fit a screen, or None."""
    if words[0] in LISTS or any(word.startswith(LONGER) for word in words):
        return None
    lines = [line for line in seen.splitlines() if not line.startswith(("stderr: ", "exit code "))]
    if len(lines) > LINES:
        return f"{len(lines)} lines; an answer has at most {LINES}"
    wide = [line for line in lines if len(line) > WIDTH]
    return f"a line of {len(wide[0])} columns; an answer has at most {WIDTH}: {wide[0]}" if wide else None


def check(program, path, update, cache, folder):
    """Returns what is wrong with a text, or None."""
    text = path.read_text(encoding="utf-8")
    words = command_of(text)
    seen = run(program, words, cache, folder)
    want = text.split("\n", 1)[1] if "\n" in text else ""
    if seen != want and update:
        path.write_text(PROMPT + shlex.join(words) + "\n" + seen, encoding="utf-8")
        print(f"updated {path.name}")
    elif seen != want:
        return "\n" + "\n".join(difflib.unified_diff(want.splitlines(), seen.splitlines(), path.name,
                                                    "program output", lineterm=""))
    return too_big(words, seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true", help="replace texts by the current output")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    program = str(options.build.resolve() / "bin/gpumemtrace")
    texts = [ANSWERS / f"{name}.txt" for name in options.names] or sorted(ANSWERS.glob("*.txt"))
    failed = 0
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        prepare(program, pathlib.Path(folder))
        for path in texts:
            problem = check(program, path, options.update, cache, folder)
            if problem:
                failed += 1
                print(f"FAILED {path.stem}: {problem}")
    print(f"{len(texts) - failed} of {len(texts)} texts match")
    if failed and not options.update:
        print(f"To accept the changes: {pathlib.Path(__file__).name} --build {options.build} --update")
    sys.exit(1 if failed or not texts else 0)


if __name__ == "__main__":
    main()
