"""Runs the command line of this installation: python -m gpumemtrace VERB ..."""

import os
import shutil
import sys
from typing import Optional


def find_program() -> Optional[str]:
    """Returns the program of this package, otherwise the one in $PATH, otherwise None."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "gpumemtrace")
    return own if os.path.isfile(own) else shutil.which("gpumemtrace")


def main() -> None:
    program = find_program()
    if program is None:
        sys.exit("gpumemtrace: this installation has the Python package, but not the programs. Install the wheel that "
                 "scripts/wheel builds, or add the directory of the program gpumemtrace to PATH")
    if sys.executable:
        os.environ["GPUMEMTRACE_PYTHON"] = sys.executable  # runs the script in `run train.py`
    os.execv(program, ["gpumemtrace", *sys.argv[1:]])


if __name__ == "__main__":
    main()
