"""Part of hatchling's build of the Python package (pyproject.toml): adds what only a wheel with the
programs has. build_wheel.py puts them into the package; without them, the wheel is pure Python."""

import pathlib
import platform
import re
import subprocess

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GLIBC_SYMBOL = re.compile(r"\bGLIBC_(\d+)\.(\d+)")


def required_glibc(files):
    """Returns the oldest glibc, as (major, minor), that has all symbols that the files import."""
    versions = set()
    for file in files:
        table = subprocess.run(["objdump", "-T", file], check=True, capture_output=True, text=True).stdout
        versions.update((int(major), int(minor)) for major, minor in GLIBC_SYMBOL.findall(table))
    return max(versions)


class ProgramsHook(BuildHookInterface):
    def initialize(self, version, build_data):
        package = pathlib.Path(self.root, "python", "gpumemtrace")
        programs = sorted([*package.glob("bin/*"), *package.glob("lib/*.so*")])
        if not programs:
            return
        major, minor = required_glibc(programs)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
        for command in pathlib.Path(self.root, "commands").iterdir():
            build_data["shared_scripts"][str(command)] = command.name
