#!/usr/bin/env python3
"""Runs pytest with the plugin of the Python package on tests that use the simulated device: what passes and what fails,
with which text, must be what their marks demand, and otherwise what pytest alone reports.

Usage: plugin_check.py --build DIR [NAME...]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import MIB, ROOT, main_of_cases  # noqa: E402

CONFTEST = """
import ctypes, pytest

def pytest_addoption(parser):
    parser.addoption("--mib", type=int, default=48)

@pytest.fixture(scope="session")
def malloc():
    cuda = ctypes.CDLL("libcudart.so.13")
    def malloc(mib):
        address = ctypes.c_void_p()
        code = cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib << 20))
        if code != 0:
            raise MemoryError(f"cudaMalloc: {code}")
        return address
    return malloc
"""

TESTS = """
import os, time
import gpumemtrace, pytest

gpu_memory = pytest.mark.gpu_memory

@gpu_memory(limit="64 MiB")
def test_below_the_limit(malloc, request):
    malloc(request.config.getoption("mib"))

@gpu_memory(limit="32 MiB")
def test_above_the_limit(malloc):
    malloc(48)

@gpu_memory(leaks=False)
def test_leaks(malloc):
    for step in range(200):
        malloc(1)
        gpumemtrace.step(step)

@gpu_memory(limit="32 MiB")
def test_only_its_own_memory_counts(malloc):
    malloc(16)

@gpu_memory(limit="1 MiB")
def test_without_gpu_memory():
    pass

@gpu_memory(limit="1 GiB")
def test_runs_out_of_memory(malloc):
    while True:
        malloc(512)

@gpu_memory(limit="1 GiB")
def test_crashes(malloc):
    malloc(1)
    os.abort()

def test_unmarked(malloc):
    malloc(8)
"""

ALIKE = """
import pytest

class TestClass:
    @pytest.mark.parametrize("size", [1, 2])
    def test_parameters(self, malloc, size):
        malloc(size)

def test_fails(): assert 1 == 2
def test_skips(): pytest.skip("no reason")
@pytest.mark.xfail
def test_expected_to_fail(): assert False
@pytest.fixture
def broken(): raise RuntimeError("in the setup")
def test_broken_fixture(broken): pass
def test_prints(capsys):
    print("text")
    assert capsys.readouterr().out == "text\\n"
"""


class Pytest:
    def __init__(self, rig, folder, **files):
        self.rig, self.folder = rig, folder
        for name, text in {"conftest.py": CONFTEST, "pytest.ini": "[pytest]\n",
                           **{f"{name}.py": text for name, text in files.items()}}.items():
            (folder / name).write_text(text)

    def run(self, *words, plugin=True):
        """Returns the output and {test: outcome}."""
        results = self.folder / "results.xml"
        command = ["/usr/bin/python3", "-m", "pytest", "-q", f"--junitxml={results}", *words]
        if plugin:
            command += ["-p", "gpumemtrace.pytest_plugin"]
        path = f"{self.rig.build / 'bin'}:{os.environ['PATH']}"
        environment = self.rig.environment(self.folder, {
            "PATH": path, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1", "SIMCUDA_MEMORY": "2G"})
        done = subprocess.run(self.rig.simulated(command), cwd=self.folder, env=environment, capture_output=True, text=True)
        outcomes = {}
        for case in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
            kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            outcomes[f"{case.get('classname')}.{case.get('name')}"] = kinds[0] if kinds else "passed"
        return done.stdout + done.stderr, outcomes


def section(output, test):
    """Returns what pytest prints about a failed test."""
    parts = output.split(f" {test} ___", 1)
    assert len(parts) == 2, output
    return parts[1].split("\n____", 1)[0]


def marks_are_enforced(rig, folder):
    output, outcomes = Pytest(rig, folder, test_memory=TESTS).run()
    failed = {name.rpartition(".")[2] for name, outcome in outcomes.items() if outcome != "passed"}
    assert failed == {"test_above_the_limit", "test_leaks", "test_runs_out_of_memory", "test_crashes"}, output
    above = section(output, "test_above_the_limit")
    assert "peak 48.0 MiB on GPU 0 is above the limit of 32.0 MiB" in above and "test_above_the_limit (test_memory.py:" in above, above
    assert "MiB per step on GPU 0 at conftest.py:12" in section(output, "test_leaks"), output
    memory = section(output, "test_runs_out_of_memory")
    assert "MemoryError" in memory and "Out of memory (capacity)" in memory, memory
    assert "was killed by signal 6" in section(output, "test_crashes"), output
    assert "48.0 MiB  test_memory.py::test_below_the_limit" in output and "test_unmarked" not in output, output


def options_reach_the_test(rig, folder):
    output, outcomes = Pytest(rig, folder, test_memory=TESTS).run("--mib=80", "-k", "below")
    assert outcomes == {"test_memory.test_below_the_limit": "failure"} and "peak 80.0 MiB" in output, output


def the_ini_file_selects_tests_only_once(rig, folder):
    test = "import pytest\n@pytest.mark.slow\ndef test_slow(malloc): malloc(1)\ndef test_fast(malloc): malloc(2)\n"
    pytest = Pytest(rig, folder, test_some=test)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\naddopts = -m 'not slow' --maxfail=1\n")
    output, outcomes = pytest.run("--gpumemtrace", "-m", "slow")
    assert outcomes == {"test_some.test_slow": "passed"}, output


def what_earlier_tests_set_up_is_torn_down_before_the_next_module(rig, folder):
    first = """
import pytest
@pytest.fixture(scope="module")
def held():
    yield
    print("torn down")
    assert not {broken}
def test_plain(held): pass
@pytest.mark.gpu_memory
def test_recorded(malloc): malloc(1)
"""
    for broken in (False, True):
        pytest = Pytest(rig, folder, test_a=first.replace("{broken}", str(broken)), test_b="def test_other(): pass\n")
        output, outcomes = pytest.run()
        assert outcomes == {"test_a.test_plain": "passed", "test_a.test_recorded": "error" if broken else "passed",
                            "test_b.test_other": "passed"}, output
        assert not broken or "ERROR at teardown of test_recorded" in output, output


def it_loads_in_a_pytest_that_it_cannot_record_in(rig, folder):
    """Every pytest of an environment loads the plugin of an installed package."""
    older = "import pytest; del pytest.Parser, pytest.Config, pytest.TestReport; import gpumemtrace.pytest_plugin"
    subprocess.run(["/usr/bin/python3", "-c", older], env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, check=True)


def a_baseline_is_a_limit(rig, folder):
    test = "def test_growth(malloc, request): malloc(request.config.getoption('mib'))\n"
    mark = "import pytest\n@pytest.mark.gpu_memory(baseline='base.gmt', fail_above='5%')\n"
    pytest = Pytest(rig, folder, test_memory=mark + test)
    output, outcomes = pytest.run()
    assert outcomes == {"test_memory.test_growth": "failure"} and "base.gmt" in output, output
    (recording,) = (folder / ".pytest_cache").rglob("*.gmt")
    shutil.copy(recording, folder / "base.gmt")
    assert pytest.run()[1] == {"test_memory.test_growth": "passed"}
    output, outcomes = pytest.run("--mib=64")
    assert outcomes == {"test_memory.test_growth": "failure"}, output
    assert "+16.0 MiB (+33.3 %), 48.0 MiB -> 64.0 MiB" in output and "FAIL" in output, output


def the_example_for_github_writes_a_summary(rig, folder):
    page = (ROOT / "docs/pytest.md").read_text(encoding="utf-8")
    script = textwrap.dedent(re.search(r"  run: \|\n((?: {4}.*\n)+)", page)[1])
    pytest = Pytest(rig, folder, test_memory="def test_growth(malloc, request): malloc(request.config.getoption('mib'))\n")
    pytest.run("--gpumemtrace")
    shutil.copytree(folder / ".pytest_cache/d/gpumemtrace", folder / "baseline")
    pytest.run("--gpumemtrace", "--mib=64")
    summary = folder / "summary.md"
    path = f"{rig.build / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env={**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = summary.read_text(encoding="utf-8")
    assert "+16.0 MiB" in text and "| --" in text.replace("|--", "| --") and "test_growth" in text, text + done.stderr


def other_outcomes_are_those_of_pytest_alone(rig, folder):
    pytest = Pytest(rig, folder, test_alike=ALIKE)
    _, alone = pytest.run("-p", "no:cacheprovider", plugin=False)
    assert len(alone) == 7, alone
    output, recorded = pytest.run("--gpumemtrace")
    assert recorded == alone, output
    assert "assert 1 == 2" in output and "in the setup" in output, output
    assert "2.0 MiB  test_alike.py::TestClass::test_parameters[2]" in output, output
    output, again = pytest.run("--gpumemtrace", "--lf")
    assert set(again) == {"test_alike.test_fails", "test_alike.test_broken_fixture"}, output


def workers_of_xdist_record_too(rig, folder):
    output, outcomes = Pytest(rig, folder, test_memory=TESTS, test_alike=ALIKE).run("-n", "2", "--gpumemtrace")
    assert outcomes["test_memory.test_above_the_limit"] == "failure", output
    assert outcomes["test_memory.test_below_the_limit"] == "passed", output
    assert "8.0 MiB  test_memory.py::test_unmarked" in output, output
    peaks = [property.get("value") for property in xml.etree.ElementTree.parse(folder / "results.xml").getroot().iter("property")
             if property.get("name") == "gpu_memory_peak_bytes"]
    assert str(48 * MIB) in peaks, peaks


def wrong_marks_are_errors(rig, folder):
    pytest = Pytest(rig, folder, test_memory="import pytest\n@pytest.mark.gpu_memory(max='1 GiB')\ndef test_it(): pass\n")
    output, _ = pytest.run()
    assert "gpu_memory has baseline, fail_above, leaks, limit, not max" in output, output
    pytest = Pytest(rig, folder, test_memory="import pytest\n@pytest.mark.gpu_memory(limit='much')\n"
                                             "def test_it(malloc): malloc(1)\n")
    output, outcomes = pytest.run()
    assert outcomes == {"test_memory.test_it": "failure"} and "much" in output, output


CASES = [(case.__name__, case) for case in (
    marks_are_enforced, options_reach_the_test, the_ini_file_selects_tests_only_once,
    what_earlier_tests_set_up_is_torn_down_before_the_next_module, it_loads_in_a_pytest_that_it_cannot_record_in,
    a_baseline_is_a_limit,
    the_example_for_github_writes_a_summary, other_outcomes_are_those_of_pytest_alone,
    workers_of_xdist_record_too, wrong_marks_are_errors)]


if __name__ == "__main__":
    if subprocess.run(["/usr/bin/python3", "-c", "import pytest, xdist"], capture_output=True, check=False).returncode != 0:
        sys.exit("pytest is missing: run scripts/setup --test")
    sys.exit(main_of_cases(CASES, __doc__, torch=False))
