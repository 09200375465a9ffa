#!/usr/bin/env python3
"""Builds a wheel of the Python package together with the programs and the preloaded library.

Usage: build_wheel.py PROGRAMS DIR
  PROGRAMS  directory with bin/, lib/ and share/doc/gpumemtrace/licences/, as scripts/bundle makes it
  DIR       output directory
Prints the path of the wheel. Needs the package hatchling. The time stamps in the wheel are
$SOURCE_DATE_EPOCH.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("gpumemtrace", "gpumemtrace-collector")


def version():
    return re.search(r"project\(gpumemtrace VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def stage(programs, tree):
    """Lays out in `tree` what hatchling packs: the Python package with the programs inside, found by
    each other as in the bundle, and the licences."""
    for file in ("pyproject.toml", "CMakeLists.txt", "LICENSE", "python/README.md", "python/wheel/hook.py"):
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tree / file)
    package = tree / "python" / "gpumemtrace"
    shutil.copytree(ROOT / "python" / "gpumemtrace", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("bin", "lib"):
        (package / name).mkdir()
    for program in PROGRAMS:
        shutil.copy(programs / "bin" / program, package / "bin" / program)
    shutil.copy(programs / "lib" / "libgpumemtrace.so", package / "lib")
    shutil.copytree(programs / "share" / "doc" / "gpumemtrace" / "licences", tree / "licences")
    (tree / "commands").mkdir()
    for program in PROGRAMS:
        command = tree / "commands" / program
        command.write_text((ROOT / "python/wheel/command.sh").read_text().replace("@VERSION@", version()))
        command.chmod(0o755)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    programs, output = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree, built = pathlib.Path(folder, "tree"), pathlib.Path(folder, "built")
        stage(programs, tree)
        done = subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)], cwd=tree,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"build_wheel: hatchling failed:\n{done.stdout}")
        wheel, = built.iterdir()
        print(shutil.copy(wheel, output))


if __name__ == "__main__":
    main()
