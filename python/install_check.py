#!/usr/bin/env python3
"""Installs the package from the tree into a fresh virtual environment, and tests it there.

Usage: install_check.py REPORTED_CALLS_LIBRARY
Needs the network: pip fetches the build backend.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXPECTED = {"__init__.py", "__main__.py", "accelerate.py", "lightning.py", "notebook.py", "py.typed", "pytest_plugin.py",
            "tables.py", "training.py", "transformers.py"}


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"install_check: {' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def state_of_tree():
    return run("git", "-C", str(ROOT), "status", "--porcelain", "--ignored=no")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    reported_calls = str(pathlib.Path(sys.argv[1]).resolve())
    before = state_of_tree() if (ROOT / ".git").exists() else None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(sys.executable, "-m", "venv", str(folder / "venv"))
        python = str(folder / "venv" / "bin" / "python")
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(ROOT), cwd=folder)
        # Runs outside the tree, so that only the installed package can be found.
        package = pathlib.Path(run(python, "-c", "import gpumemtrace; print(gpumemtrace.__file__)", cwd=folder).strip())
        installed = {path.name for path in package.parent.iterdir() if path.name != "__pycache__"}
        assert package.is_relative_to(folder), package
        assert installed == EXPECTED, installed
        version = run(python, "-c", "import importlib.metadata as m; print(m.version('gpumemtrace'))", cwd=folder).strip()
        built = re.search(r"project\(gpumemtrace VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
        assert version == built.group(1), (version, built.group(1))
        plugins = run(python, "-c", "import importlib.metadata as m; print([(e.group, e.value) for e in "
                      "m.distribution('gpumemtrace').entry_points])", cwd=folder).strip()
        assert plugins == "[('pytest11', 'gpumemtrace.pytest_plugin')]", plugins
        commands = sorted(path.name for path in (folder / "venv" / "bin").iterdir())
        assert not any("gpumemtrace" in command for command in commands), commands
        # The test uses the package beside it.
        shutil.copy(ROOT / "python" / "gpumemtrace_test.py", package.parents[1])
        run(python, str(package.parents[1] / "gpumemtrace_test.py"), reported_calls, cwd=folder,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    if before is not None:
        assert state_of_tree() == before, f"the installation has changed the tree:\n{state_of_tree()}"
    print(f"gpumemtrace {version} installs and works")


if __name__ == "__main__":
    main()
