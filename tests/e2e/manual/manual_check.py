#!/usr/bin/env python3
"""Checks the manual pages of gpumemtrace: mandoc finds nothing wrong in them, and they contain what the help contains.

Usage: manual_check.py --build BUILD
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HANG_S = 60


def run(*command, **more):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "COLUMNS": "80"}
    done = subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=HANG_S, **more)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def check_page(program, verb, folder):
    """Checks gpumemtrace-VERB(1), or gpumemtrace(1) for ""."""
    words = [verb] if verb else []
    name = "-".join(["gpumemtrace", *words])
    page = folder / f"{name}.1"
    page.write_text(run(program, "man", *words))
    run("mandoc", "-Tlint", "-W", "warning", page)
    # As a reader sees it, on one line and without hyphenation.
    text = " ".join(run("mandoc", "-Tutf8", "-O", "width=500", page).split())
    text = re.sub("(.)\b", "", text)  # bold and underlined
    assert f"{name} - " in text and "2023-11-14" in text, text
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
        assert f" {section} " in text, (name, section)
    help_text = run(program, *words, "--help")
    options = set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", help_text, re.MULTILINE))
    missing = [option for option in options if option not in text]
    assert options and not missing, (name, missing)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    program = parser.parse_args().build.resolve() / "bin" / "gpumemtrace"
    verbs = [line.split("\t")[0] for line in run(program, "completion", "--words", "--", "").splitlines()[1:]]
    assert {"run", "report", "man"} <= set(verbs), verbs
    with tempfile.TemporaryDirectory() as name:
        whole = check_page(program, "", pathlib.Path(name))
        pages = {verb: check_page(program, verb, pathlib.Path(name)) for verb in verbs}
    assert all(f"gpumemtrace-{verb}(1)" in whole for verb in verbs), whole
    assert "GPUMEMTRACE_COLLECTOR" in whole and "FILES" in whole
    assert "Why did it run out of memory? gpumemtrace oom run.gmt" in pages["oom"], pages["oom"]
    assert "The condition of --fail-above is violated." in pages["diff"], pages["diff"]
    assert "[OPTIONS] -- COMMAND..." in pages["run"] and "127 The command was not found." in pages["run"], pages["run"]
    assert "--output FILE [OPTIONS] X" in pages["import"], pages["import"]
    assert "fp32|mixed|bf16|fp16" in pages["estimate"], pages["estimate"]
    print(f"{len(pages) + 1} manual pages are right")


if __name__ == "__main__":
    sys.exit(main())
