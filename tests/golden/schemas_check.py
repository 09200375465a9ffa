#!/usr/bin/env python3
"""Validates the --json output of the verbs against docs/schemas/, and checks that each verb has a schema
and each key of a schema a description.

Runs every command of the texts in tests/golden/answers/ that has --json, and every verb on small files
of all kinds. The rig of the end-to-end tests (tests/e2e/recording/rig.py) validates the output for
recordings of real programs.

Usage: schemas_check.py --build DIR
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import answers_check

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e/recording"))
import schemas  # noqa: E402

FILES = ("torch-1.13.pickle", "torch-2.11.pickle", "v1.gmt", "v1.jsonl", "v1-roles.gmt")
WITHOUT_FILE = {"doctor", "list"}
# These need a running process; tests/e2e/control and tests/e2e/top check their output.
OF_A_PROCESS = {"status", "snapshot", "top"}
TWO_FILES = {"diff"}
OF_PROCESS = {"attach": ("--check",)}
OF_ITSELF = {"export": ("--list",)}
COPIES = {"repair": ("repaired.gmt",), "symbolize": ("--debug-dir", ".", "-o", "named.gmt")}
WITH_ID = {"show": ("device/0", "heap/driver", "event/1")}


def described(schema, where):
    """Yields the keys without a description."""
    for key, value in schema.get("properties", {}).items():
        if not value.get("description"):
            yield f"{where}.{key}"
        yield from described(value, f"{where}.{key}")
    if isinstance(schema.get("items"), dict):
        yield from described(schema["items"], f"{where}[]")


def verbs_with_json(program):
    """Returns the verbs that have the option --json."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in text.split("Subcommands:")[1].splitlines() if line.startswith("  ") and line.strip()]
    helps = {name: subprocess.run([program, name, "--help"], capture_output=True, text=True).stdout for name in names}
    return {name for name, help_text in helps.items() if "--json" in help_text}


def commands(verbs, folder):
    """Yields the commands to run with --json, as lists of words."""
    for path in sorted(answers_check.ANSWERS.glob("*.txt")):
        words = answers_check.command_of(path.read_text(encoding="utf-8"))
        if words[0] in verbs and "--markdown" not in words:
            yield words
    for verb in sorted(verbs):
        if verb in WITHOUT_FILE:
            yield [verb]
            continue
        if verb in OF_ITSELF:
            yield [verb, *OF_ITSELF[verb]]
            continue
        if verb in OF_PROCESS:
            yield [verb, *OF_PROCESS[verb], str(os.getpid())]
            continue
        if verb in COPIES:
            yield [verb, "golden/v1.gmt", *COPIES[verb]]
            continue
        for file in FILES:
            name = f"golden/{file}"
            for rest in WITH_ID.get(verb, (None,)):
                yield [verb, name] + ([name] if verb in TWO_FILES else []) + ([rest] if rest else [])
    for log in sorted(folder.glob("*.jsonl")):
        yield from ([verb, log.name, *rest] for verb, *rest in schemas.VERBS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    program = str(parser.parse_args().build.resolve() / "bin/gpumemtrace")
    problems, checked = [], {}
    verbs = verbs_with_json(program)
    for verb in sorted(verbs):
        path = schemas.path_of(verb)
        if not path.exists():
            problems.append(f"{verb} --json has no schema: {path.relative_to(ROOT)}")
            verbs.remove(verb)
            continue
        problems += [f"{path.name}: {key} has no description" for key in described(schemas.validator(verb).schema, "")]
    with tempfile.TemporaryDirectory() as folder:
        answers_check.prepare(program, pathlib.Path(folder))
        (pathlib.Path(folder) / "golden").mkdir()
        for file in FILES:  # copies, because `ranks` writes beside a recording
            shutil.copy(ROOT / "tests" / "golden" / file, pathlib.Path(folder) / "golden")
        for words in commands(verbs - OF_A_PROCESS, pathlib.Path(folder)):
            text = schemas.output(program, words, folder)
            if not text:
                continue  # errors have no JSON; the texts show which commands fail
            checked[words[0]] = checked.get(words[0], 0) + 1
            problems += schemas.problems(words, text)
    problems += [f"{verb}: no output was checked" for verb in verbs - OF_A_PROCESS if verb not in checked]
    for problem in problems:
        print(problem)
    print(f"{sum(checked.values())} outputs of {len(checked)} verbs were checked")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
