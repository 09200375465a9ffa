#!/usr/bin/env python3
"""Installs the package for Debian in a new Debian 12, and uses there what it contains.

Usage: deb_check.py --build BUILD --release RELEASE [--root ARCHIVE]
  BUILD    build directory with the simulated device
  RELEASE  build directory with what is released
  ARCHIVE  root directory of Debian 12 as mmdebstrap packs it; otherwise it is made
Needs root, mmdebstrap and lintian.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/e2e/recording"), str(ROOT / "tests/e2e/systems")]
from systems import System, make_archive, run  # noqa: E402
from waiting import wait_for  # noqa: E402

NEEDS = ("man-db", "bash-completion", "gcc", "libc6-dev", "cmake", "make", "pkgconf")
MARKS_C = r"""
#include <gpumemtrace.h>
#include <stdio.h>
int cudaMalloc(void **address, size_t size);
int main(void) {
  void *address;
  uint64_t range = gpumemtrace_range_begin("early");
  if (range != 0 || cudaMalloc(&address, 3 << 20) != 0) return 1;
  range = gpumemtrace_range_begin("phase");
  gpumemtrace_mark("step", 7);
  gpumemtrace_mark("moment", GPUMEMTRACE_NO_INDEX);
  gpumemtrace_range_end(range);
  gpumemtrace_snapshot("here");
  printf("recording %d\n", gpumemtrace_recording());
  return 0;
}
"""
CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.13)
project(marks C)
find_package(gpumemtrace 0.1 REQUIRED)
add_executable(marks marks.c)
target_link_libraries(marks gpumemtrace::gpumemtrace /opt/simcuda/libcudart.so.13)
"""


def build_package(release, folder):
    """Builds the package twice, with what must not matter changed."""
    packages = []
    for umask, zone in (("022", "UTC"), ("077", "Asia/Tokyo")):
        work = folder / f"work-{umask}"
        (work / "out").mkdir(parents=True)
        run("bash", "-c", f"set -euo pipefail; umask {umask}; source scripts/common.sh; source scripts/release.sh; "
            'copy_release "$1" "$2/tree"; pack_deb "$2/tree" "$2/out"', "build", release, work, cwd=ROOT, env={**os.environ, "TZ": zone})
        packages += (work / "out").iterdir()
    assert packages[0].read_bytes() == packages[1].read_bytes(), "two builds of the same programs differ"
    return packages[0]


def check_contents(package):
    fields = run("dpkg-deb", "--info", package)
    assert re.search(r"^ Depends: libc6 \(>= 2\.28\)$", fields, re.MULTILINE), fields
    names = run("dpkg-deb", "--contents", package)
    for name in ("usr/lib/x86_64-linux-gnu/libgpumemtrace.so", "usr/bin/gpumemtrace-collector", "usr/share/man/man1/gpumemtrace.1.gz",
                 "usr/share/zsh/vendor-completions/_gpumemtrace", "usr/share/fish/vendor_completions.d/gpumemtrace.fish"):
        assert f"./{name}\n" in names, names
    assert all("root/root" in line for line in names.splitlines()), names
    print(run("lintian", "--fail-on", "error", package))


def check_use(system):
    assert system.run("gpumemtrace", "--version").startswith("gpumemtrace 0.")
    assert system.run("gpumemtrace", "preload-path").strip() == "/usr/lib/x86_64-linux-gnu/libgpumemtrace.so"
    health = system.run("gpumemtrace", "doctor")
    assert "/usr/bin/gpumemtrace-collector" in health and health.splitlines()[-1].startswith("Next: "), health
    page = system.run("man", "gpumemtrace-report", MANPAGER="cat")
    assert "gpumemtrace report" in page and "EXAMPLES" in page, page
    completed = system.run("bash", "-c", """source /usr/share/bash-completion/bash_completion
        _completion_loader gpumemtrace  # as the Tab key does
        COMP_WORDS=(gpumemtrace repor) COMP_CWORD=1; _gpumemtrace gpumemtrace; echo "${COMPREPLY[@]}" """)
    assert completed.split() == ["report"], completed
    print("passed  commands, manual page and completion")
    check_pages(system.root / "usr/share/doc/gpumemtrace")


def check_pages(folder):
    """Checks that links between pages, and to their pictures, lead to files of the package."""
    checked = 0
    for page in folder.rglob("*.md"):
        for target in re.findall(r"""(?:\]\(|src=")(?!https?:)([^)#"\s]+)""", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            if path.suffix in (".md", ".png", ".json") and (path.parent == folder / "docs" or "img" in path.parts):
                assert path.exists(), (page, target)
                checked += 1
    assert checked > 300, checked
    print("passed  links between pages")


def check_recording(system, name):
    # A program that the library records does not wait for its collector without limit.
    wait_for(f"{name} to be complete",
             lambda: json.loads(system.run("gpumemtrace", "info", "--json", f"/opt/work/{name}"))["complete"])
    report = json.loads(system.run("gpumemtrace", "report", "--json", f"/opt/work/{name}"))
    heap, = (heap for heap in report["devices"][0]["heaps"] if heap["heap"] == "driver")
    assert heap["peak_live_bytes"] == 3 << 20, heap
    events = [json.loads(line) for line in system.run("gpumemtrace", "cat", "--json", f"/opt/work/{name}").splitlines()]
    marks = {event["name"]: event.get("index") for event in events if event["kind"] == "mark"}
    assert marks == {"step": 7, "moment": None}, marks
    assert [event["name"] for event in events if event["kind"] == "range_begin"] == ["phase"], events


def check_marks(system):
    """Programs that mark their recordings are built in both ways, and recorded by the library's bare name."""
    work = system.root / "opt" / "work"
    (work / "marks.c").write_text(MARKS_C)
    (work / "CMakeLists.txt").write_text(CMAKE_LISTS)
    system.shell("gcc -std=c99 -Wall -Wextra -Werror marks.c $(pkg-config --cflags --libs 'gpumemtrace >= 0.1') "
                 "/opt/simcuda/libcudart.so.13 -o marks_pkgconf")
    system.shell("cmake -S . -B built && cmake --build built && cp built/marks marks_cmake")
    for way in ("pkgconf", "cmake"):
        line = f"/opt/simcuda/with-simcuda ./marks_{way}"
        assert system.shell(line) == "recording 0\n"
        output = system.shell(line, LD_PRELOAD="libgpumemtrace.so", GPUMEMTRACE=f"output={way}.gmt,quiet", GPUMEMTRACE_DIR="/tmp")
        assert output == "recording 1\n", output
        system.shell(f"gpumemtrace run --quiet -o {way}.run.gmt -- {line}")
        check_recording(system, f"{way}.run.gmt")
        check_recording(system, f"{way}.gmt")
    print("passed  programs in C, recorded by the bare name of the library")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--release", type=pathlib.Path, required=True)
    parser.add_argument("--root", type=pathlib.Path)
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: it needs root")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        package = build_package(arguments.release.resolve(), folder)
        print("passed  two builds are equal")
        check_contents(package)
        archive = arguments.root or folder / "root.tar"
        if not arguments.root:
            make_archive("bookworm", NEEDS, archive, folder)
        system = System(folder / "root", archive)
        shutil.copytree(arguments.build / "simcuda", system.root / "opt" / "simcuda")
        shutil.copy(package, system.root / "opt")
        before = system.files()
        system.run("dpkg", "--install", f"/opt/{package.name}")
        check_use(system)
        check_marks(system)
        system.run("dpkg", "--purge", "gpumemtrace")
        left = system.files() - before
        assert not left, left
        print("passed  purged without a rest")


if __name__ == "__main__":
    main()
