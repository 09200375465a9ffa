#!/usr/bin/env python3
"""Checks every command of gpumemtrace that the documentation mentions, in blocks and in sentences: the command and its options
exist, and a command that reads recordings succeeds on files with the names that it mentions. What check_readme.py runs
is not repeated. And files of the tree that it mentions exist.

Usage: check_commands.py --build DIR --python PYTHON
"""

import argparse
import functools
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_readme  # noqa: E402

ROOT = check_readme.ROOT
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "python/README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN_ELSEWHERE = {*check_readme.PAGES, *check_readme.MORE_PAGES}
# They start or ask processes, serve pages or wait: tests of their own run them (tests/e2e).
NOT_RUN = {"attach", "collect", "detach", "mark", "run", "snapshot", "status", "top", "view"}
PROMPT = ["query", "run.gmt"]  # waits for statements at a terminal
VERIFY = "--verify"  # runs the program again, without the simulated device; tests/e2e/answers does
# What is recorded, and the names in examples that stand for it.
PROGRAMS = {"run": "train.py", "large": "train.py --batch 16", "leak": "leak.py", "oom": "oom.py"}
RECORDINGS = {"run.gmt": "run", "FILE": "run", "FILE...": "run", "main.gmt": "run", "new.gmt": "run", "small.gmt": "run", "BASE": "run",
              "NEW": "run", "large.gmt": "large", "leak.gmt": "leak", "oom.gmt": "oom"}
PLACEHOLDERS = {"SQL": "SELECT 1", "NAME": "csv"}
COMMAND = re.compile(r"(?:^|[;|(&] *)gpumemtrace ([a-z-]+\b.*)")


FILE = re.compile(r"(?<![\w/.~$-])((?:scripts|tests|python|preload|session|collector|analysis|answers|interop|symbols|format|viewer|cli|proto)"
                  r"/[\w./-]*\w)(?![\w*])")
OTHERS_FILES = {"tests/memory/inference.gmt"}  # of a reader's project


def missing_files(page):
    """Yields (line number, path) of each file that a page mentions and the tree does not have."""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        for path in FILE.findall(re.sub(r"\]\([^)]*\)", "]", line)):  # links are checked where the site is built
            if path not in OTHERS_FILES and not any((folder / path).exists() for folder in (ROOT, page.parent)):
                yield number, path


def mentioned(page):
    """Yields (line number, words after "gpumemtrace") of each command on a page."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if re.match(r"\s*```", line):
            inside = not inside
            is_run = line.strip() == "```console" and str(page.relative_to(ROOT)) in RUN_ELSEWHERE
        elif inside and is_run:
            continue
        elif inside or line.startswith("    "):
            text = re.sub(r"^\s*(\$ |# )?", "", line)
            if not text.startswith("Next: "):
                yield from ((number, found) for found in COMMAND.findall(re.sub(r"\s(#|  +)\s?.*", "", text)))
        else:
            yield from ((number, code) for code in re.findall(r"`gpumemtrace ([^`]+)`", line))


def words_of(text):
    """Returns the words of the first command of a shell line; None if it is not complete, or has variables of another shell."""
    try:
        words = shlex.split(re.split(r" \\?\| | > | && ", text)[0].rstrip(" |\\"))
    except ValueError:
        return None
    return None if "..." in words or "$" in text else words


class Check:
    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.counted = 0  # commands that were run

    def run(self, *command, **more):
        return subprocess.run(command, cwd=self.folder, env=self.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, **more)

    def record(self):
        """Records what the examples read."""
        for name, text in check_readme.programs(ROOT / "docs/tutorials.md"):
            (self.folder / name).write_text(text, encoding="utf-8")
        for name, program in PROGRAMS.items():
            done = self.run("gpumemtrace", "run", "--quiet", "-o", f"recorded/{name}.gmt", "--", "python", *program.split())
            assert done.returncode == 0, done.stdout
        self.restore()
        for name in ("out", "DIR", "unpacked"):  # the last two have no debug files
            (self.folder / name).mkdir()
        for rank in (0, 7):
            done = self.run("env", f"RANK={rank}", "gpumemtrace", "run", "--quiet", "-o", "out/r%r.gmt", "--", "python", "train.py", "--steps", "3")
            assert done.returncode == 0, done.stdout
        (self.folder / "mine.txt").touch()
        done = self.run("gpumemtrace", "cat", "--json", "run.gmt")
        (self.folder / "events.jsonl").write_text(done.stdout, encoding="utf-8")
        assert self.run("gpumemtrace", "export", "--format", "torch", "run.gmt", "-o", "snap.pickle").returncode == 0

    def restore(self):
        """Restores what commands may have replaced."""
        for mention, name in RECORDINGS.items():
            shutil.copy(self.folder / f"recorded/{name}.gmt", self.folder / mention)

    @functools.lru_cache(maxsize=None)
    def options(self, verb):
        """Returns the options of a command; None if there is no such command."""
        done = self.run("gpumemtrace", verb, "--help")
        return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", done.stdout)) if done.returncode == 0 else None

    def problem(self, words):
        """Returns what is wrong with a command, "" if nothing."""
        verb, arguments = words[0], words[1:]
        if verb == "COMMAND":
            return ""
        options = self.options(verb)
        if options is None:
            return f"there is no command {verb}"
        own = arguments[:arguments.index("--")] if "--" in arguments else arguments
        unknown = [word for word in own if word.startswith("-") and word.split("=")[0] not in options]
        if unknown:
            return f"{verb} has no option {' '.join(unknown)}"
        placeholders = {**PLACEHOLDERS, "FILE": "events.jsonl"} if verb == "import" else PLACEHOLDERS
        words = [placeholders.get(word, word) for word in words]
        reads = verb == "estimate" or any((self.folder / word).exists() for word in words)
        if verb in NOT_RUN or words == PROMPT or VERIFY in words or not reads:
            return ""
        self.counted += 1
        if "-o" in words:
            (self.folder / words[words.index("-o") + 1]).unlink(missing_ok=True)
        if verb == "repair":
            (self.folder / words[-1]).unlink(missing_ok=True)
        done = self.run("gpumemtrace", *words, timeout=check_readme.HANG_S)
        self.restore()
        return "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stdout}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True)
    arguments = parser.parse_args()
    problems = read = 0
    with tempfile.TemporaryDirectory(prefix="gmt-commands-") as folder:
        here, environment = check_readme.prepare(pathlib.Path(folder), arguments.build.resolve(), arguments.python)
        check = Check(here, environment)
        check.record()
        for page in PAGES:
            for number, path in missing_files(page):
                problems += 1
                print(f"{page.relative_to(ROOT)}:{number}: {path} does not exist")
            for number, text in mentioned(page):
                words = words_of(text)
                read += 1
                problem = check.problem(words) if words else ""
                if problem:
                    problems += 1
                    print(f"{page.relative_to(ROOT)}:{number}: gpumemtrace {text}\n  {problem}")
    assert read > 150 and check.counted > 40, (read, check.counted)
    print(f"{read} commands are mentioned, {check.counted} of them were run")
    print(f"{read - problems} passed, {problems} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
