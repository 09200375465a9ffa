#!/usr/bin/env python3
"""Installs the wheel in all the ways that pip offers, and uses what it installs on the simulated device.

Usage: wheel_check.py --build BUILD [--wheel WHEEL]
  BUILD  build directory with the simulated device
  WHEEL  what scripts/wheel has built; otherwise one is built of the programs in BUILD
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
HATCHLING = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "gpumemtrace", "hatchling")
MIB = 1 << 20
TRAIN = """
import ctypes, sys
import gpumemtrace
runtime = ctypes.CDLL("libcudart.so.13")
for _ in range(3):
    assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 1 << 20) == 0
    gpumemtrace.step()
print(sys.executable, *sys.argv[1:])
"""


def run(*command, code=0, **more):
    """Runs a command in an environment without our variables. Returns its output, errors last."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("GPUMEMTRACE", "PYTHON", "PIP_", "VIRTUAL_ENV"))}
    environment.update(more.pop("environment", {}), PYTHONDONTWRITEBYTECODE="1", PIP_DISABLE_PIP_VERSION_CHECK="1",
                       PIP_ROOT_USER_ACTION="ignore", PIP_BREAK_SYSTEM_PACKAGES="1", PIP_NO_INDEX="1")
    done = subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def shell(line, *arguments):
    return run("bash", "-c", f"set -euo pipefail; cd {ROOT}; source scripts/common.sh; source scripts/release.sh; {line}", "check",
               *arguments)


def build_wheel(build, folder):
    assert HATCHLING.exists(), f"{HATCHLING} does not exist: run scripts/setup"
    shell('copy_release "$1" "$2"', build, folder / "programs")
    wheels = [
        pathlib.Path(run("sh", "-c", f'umask {umask}; exec "$@"', "build", sys.executable, ROOT / "python/wheel/build_wheel.py",
                         folder / "programs", folder / f"wheel-{umask}", cwd=folder,
                         environment={"SOURCE_DATE_EPOCH": "1700000000", "PYTHONPATH": str(HATCHLING)}).strip())
        for umask in ("022", "077")]
    assert wheels[0].read_bytes() == wheels[1].read_bytes(), "two builds of the same programs differ"
    return wheels[0]


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


class Check:
    def __init__(self, build, wheel, folder):
        self.build, self.wheel, self.folder = build, wheel, folder
        run(sys.executable, "-m", "venv", folder / "venv")
        self.bin = folder / "venv" / "bin"
        self.python = self.bin / "python"
        # Can be imported by other Pythons of the same version.
        self.pip = next((folder / "venv").glob("lib*/python*/site-packages"))

    def simulated(self, *command, **more):
        return run(self.build / "simcuda" / "with-simcuda", *command, cwd=self.folder,
                   environment={"GPUMEMTRACE_DIR": str(self.folder / "sessions"), **more}, timeout=300)

    @contextlib.contextmanager
    def installed(self):
        """In the virtual environment, which is afterwards as it was before."""
        before = files_below(self.folder / "venv")
        run(self.python, "-m", "pip", "install", "-q", self.wheel)
        try:
            yield
        finally:
            run(self.python, "-m", "pip", "uninstall", "-q", "-y", "gpumemtrace")
        after = files_below(self.folder / "venv")
        assert after == before, set(after) ^ set(before)

    def check_recording(self, name):
        """Checks the recording of TRAIN: its memory with the line of the program, and its steps."""
        program, path = self.bin / "gpumemtrace", self.folder / name
        report = json.loads(run(program, "report", "--json", path))
        heap, = (heap for heap in report["devices"][0]["heaps"] if heap["heap"] == "driver")
        assert heap["peak_live_bytes"] == 3 * MIB, heap
        assert any((frame["file"] or "").endswith("train.py") for row in report["rows"] for frame in row["frames"]), report["rows"]
        marks = [event for event in map(json.loads, run(program, "cat", "--json", path).splitlines()) if event["kind"] == "mark"]
        assert [mark["index"] for mark in marks if mark["name"] == "step"] == [0, 1, 2], marks

    def is_whole(self, command, python, **environment):
        """Checks that the commands of an installation find each other, and Python finds the package."""
        package = pathlib.Path(run(python, "-c", "import gpumemtrace; print(gpumemtrace.__file__)", environment=environment,
                                   cwd=self.folder).strip()).parent
        library = str((package / "lib" / "libgpumemtrace.so").resolve())
        assert run(command, "preload-path").strip() == library
        assert run(python, "-m", "gpumemtrace", "preload-path", environment=environment, cwd=self.folder).strip() == library
        assert "unknown argument" in run(command.with_name("gpumemtrace-collector"), "--version", code=2)
        healthy = run(self.build / "simcuda" / "with-simcuda", command, "doctor")
        assert str(package / "bin" / "gpumemtrace-collector") in healthy, healthy

    # ---- In one virtual environment ----

    def records_and_reports(self):
        self.is_whole(self.bin / "gpumemtrace", self.python)
        self.simulated(self.bin / "gpumemtrace", "run", "-o", "run.gmt", "--", self.python, "train.py")
        self.check_recording("run.gmt")
        page = self.folder / "run.html"
        run(self.bin / "gpumemtrace", "export", "--format", "html", self.folder / "run.gmt", "-o", page)
        assert page.read_text().lower().startswith("<!doctype html>")

    def module_runs_scripts_with_its_python(self):
        output = self.simulated(self.python, "-m", "gpumemtrace", "run", "--quiet", "-o", "module.gmt", "train.py", "-o", "x",
                                PATH="/usr/bin:/bin")
        assert f"{self.python} -o x" in output.splitlines(), output
        self.check_recording("module.gmt")

    def links_to_the_commands_work(self):
        (self.folder / "links").mkdir()
        for name in ("gpumemtrace", "gpumemtrace-collector"):
            (self.folder / "links" / name).symlink_to(self.bin / name)
        self.is_whole(self.folder / "links" / "gpumemtrace", self.python)

    def files_are_those_of_the_record(self):
        run(self.python, "-c", """if True:
            import base64, hashlib, importlib.metadata as metadata
            files = [file for file in metadata.files("gpumemtrace") if file.hash]
            for file in files:
                digest = hashlib.new(file.hash.mode, file.locate().read_bytes()).digest()
                assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value, file
            licences = {file.name for file in files if "licenses" in file.parts}
            assert {"LICENSE", "libabsl", "libdw", "LGPL-3", "preact"} <= licences, licences""")

    def command_without_its_package_says_so(self):
        lonely = self.folder / "elsewhere" / "bin" / "gpumemtrace"
        lonely.parent.mkdir(parents=True)
        shutil.copy(self.bin / "gpumemtrace", lonely)
        assert "install it again" in run(lonely, "report", code=127)

    # ---- The checks ----

    def test_virtual_environment(self):
        with self.installed():
            for check in (self.records_and_reports, self.module_runs_scripts_with_its_python, self.links_to_the_commands_work,
                          self.files_are_those_of_the_record, self.command_without_its_package_says_so):
                check()
                print(f"passed    {check.__name__}")

    def test_user(self):
        base = self.folder / "user"
        system = run(self.python, "-c", "import sys; print(sys._base_executable)").strip()
        run(system, "-m", "pip", "install", "-q", "--user", "--ignore-installed", self.wheel,
            environment={"PYTHONUSERBASE": str(base), "PYTHONPATH": str(self.pip)})
        self.is_whole(base / "bin" / "gpumemtrace", system, PYTHONUSERBASE=str(base))

    def test_target(self):
        target = self.folder / "target"
        run(self.python, "-m", "pip", "install", "-q", "--target", target, self.wheel)
        self.is_whole(target / "bin" / "gpumemtrace", self.python, PYTHONPATH=str(target))

    def test_prefix(self):
        prefix = self.folder / "prefix"
        run(self.python, "-m", "pip", "install", "-q", "--prefix", prefix, self.wheel)
        package, = prefix.glob("**/gpumemtrace/__init__.py")
        command, = (path for path in prefix.glob("**/bin/gpumemtrace") if path.parents[1] != package.parent)
        self.is_whole(command, self.python, PYTHONPATH=str(package.parents[1]))

    def test_older_glibc_is_refused(self):
        minor = int(re.search(r"-manylinux_2_(\d+)_", self.wheel.name).group(1))
        # How systems restrict what pip installs (PEP 600).
        module = self.pip / "_manylinux.py"
        module.write_text(f"def manylinux_compatible(major, minor, arch): return (major, minor) < (2, {minor})\n")
        try:
            refused = run(self.python, "-m", "pip", "install", self.wheel, code=1)
        finally:
            module.unlink()
        assert f"{self.wheel.name} is not a supported wheel on this platform" in refused, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--wheel", type=pathlib.Path)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        wheel = arguments.wheel.resolve() if arguments.wheel else build_wheel(build, folder)
        (folder / "train.py").write_text(TRAIN)
        check = Check(build, wheel, folder)
        for test in [test for test in dir(Check) if test.startswith("test_")]:
            try:
                getattr(check, test)()
                print(f"passed  {test}")
            except Exception:  # noqa: BLE001  all checks run, and each failure is printed
                failed += 1
                print(f"FAILED  {test}")
                traceback.print_exc()
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
