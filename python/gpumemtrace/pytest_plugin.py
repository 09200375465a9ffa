"""A pytest plugin that records tests and fails those that use too much GPU memory or leak it.

    @pytest.mark.gpu_memory(limit="2 GiB", leaks=False, baseline="base.gmt", fail_above="2%")
    def test_training(): ...

A marked test runs in a process of its own, under `gpumemtrace run`, so that its peak contains nothing that other tests
left behind. `--gpumemtrace` records tests without the mark, too. The recordings are kept in pytest's cache.

The process of the test loads this plugin, too. It runs the test as usual and passes its reports back in a file.
"""

from __future__ import annotations  # the annotations name classes that pytest has since version 7

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import pytest

_MARK = "gpu_memory"
_KEYS = {"limit", "leaks", "baseline", "fail_above"}
_PEAK = "gpu_memory_peak_bytes"  # name of a user property of a test's report
_FILE = "gpu_memory_recording"
_CHILD = "GPUMEMTRACE_PYTEST_CHILD"  # names the file that describes the run to the process of a test
_GATE_FAILED = 3  # exit code

# Options that select tests or report on the whole run, and their values in the process of a test: there, an ini file
# and PYTEST_ADDOPTS set them again.
_RUN_OPTIONS = {
    "cacheclear": False, "cacheshow": None, "deselect": None, "durations": None, "failedfirst": False, "keyword": "",
    "lf": False, "markexpr": "", "maxfail": 0, "newfirst": False, "stepwise": False, "stepwise_skip": False,
    "xmlpath": None,
}
# Options that the command of that process sets itself.
_COMMAND_OPTIONS = {"capture", "dist", "file_or_dir", "inifilename", "numprocesses", "override_ini", "plugins", "tx"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpumemtrace")
    group.addoption("--gpumemtrace", action="store_true", help="record the GPU memory of every test, marked or not")


@pytest.hookimpl(tryfirst=True)  # before other plugins read their options
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARK}(limit=None, leaks=True, baseline=None, fail_above='2%'): run the test in a process of its own, record "
        "its GPU memory, and fail if its peak is above the limit or grew from the baseline, or, with leaks=False, if it "
        "leaks")
    if _CHILD in os.environ:
        description = Path(os.environ.pop(_CHILD))  # not for processes that the test starts
        config.pluginmanager.register(_Child(config, description), "gpumemtrace-child")
    else:
        config.pluginmanager.register(_Recorder(config), "gpumemtrace-recorder")


class _Child:
    """Runs in the process of one test: collects its reports."""

    def __init__(self, config: pytest.Config, description: Path):
        run = json.loads(description.read_text())
        options = vars(config.option)
        options.update({name: value for name, value in _RUN_OPTIONS.items() if name in options})
        options.update(run["options"])
        self._config = config
        self._file = Path(run["reports"])
        self._reports: List[Dict[str, Any]] = []

    def pytest_sessionstart(self) -> None:
        # They record in pytest's cache which tests failed in the whole run.
        for name in ("lfplugin", "nfplugin", "stepwiseplugin"):
            self._config.pluginmanager.unregister(name=name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._reports))


class _Gate(NamedTuple):
    """What the mark of a test demands."""

    limit: Optional[str] = None
    leaks: bool = True
    baseline: Optional[str] = None
    fail_above: str = "2%"

    @staticmethod
    def of(item: pytest.Item) -> "_Gate":
        mark = item.get_closest_marker(_MARK)
        if mark is None:
            return _Gate()
        unknown = set(mark.kwargs) - _KEYS
        if mark.args or unknown:
            wrong = ", ".join(sorted(unknown)) or "arguments without a name"
            raise pytest.UsageError(f"{item.nodeid}: {_MARK} has {', '.join(sorted(_KEYS))}, not {wrong}")
        texts = {key: str(value) for key, value in mark.kwargs.items() if key != "leaks" and value is not None}
        return _Gate(**texts, leaks=mark.kwargs.get("leaks", True))

    def commands(self, recording: Path, root: Path) -> List[List[str]]:
        commands = []
        if self.limit is not None:
            commands.append(["report", str(recording), "--fail-above", self.limit.replace(" ", "")])
        if not self.leaks:
            commands.append(["leaks", str(recording), "--fail"])
        if self.baseline is not None:
            commands.append(["diff", str(root / self.baseline), str(recording), "--fail-above", self.fail_above])
        return commands


def _gpumemtrace(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "gpumemtrace", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)


class _Recorder:
    """Runs recorded tests in processes of their own and judges their recordings."""

    def __init__(self, config: pytest.Config):
        self._config = config
        self._measured: List[Tuple[str, int, str]] = []  # test, peak, recording

    # ---- Running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
        is_wanted = self._config.getoption("gpumemtrace") or item.get_closest_marker(_MARK) is not None
        if not is_wanted or self._config.getoption("usepdb", False):
            return None
        if not hasattr(pytest, "version_tuple"):
            raise pytest.UsageError(f"recording GPU memory needs pytest 7 or later; this is {pytest.__version__}")
        gate = _Gate.of(item)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._run(item, gate) + self._tear_down(item, nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _tear_down(self, item: pytest.Item, nextitem: Optional[pytest.Item]) -> List[pytest.TestReport]:
        """Tears down the modules and classes of earlier tests that `nextitem` is not in, as after any other test."""
        call = pytest.CallInfo.from_call(
            lambda: item.session._setupstate.teardown_exact(nextitem), "teardown", (pytest.exit.Exception, KeyboardInterrupt))
        return [] if call.excinfo is None else [item.ihook.pytest_runtest_makereport(item=item, call=call)]

    def _run(self, item: pytest.Item, gate: _Gate) -> List[pytest.TestReport]:
        recording = self._file(item, ".gmt")
        reports_file, description = self._file(item, ".reports.json"), self._file(item, ".run.json")
        for old in (recording, reports_file):
            if old.exists():
                old.unlink()
        description.write_text(json.dumps({"options": self._options(), "reports": str(reports_file)}))
        command = ["run", "--quiet", "-o", str(recording), "--", sys.executable, "-m", "pytest"]
        # A node id is relative to the root directory, an argument to the working directory.
        command += ["::".join([str(item.path), *item.nodeid.split("::")[1:]]), f"--rootdir={self._config.rootpath}"]
        for option, name in (("-p", "plugins"), ("-o", "override_ini")):
            for value in self._config.getoption(name) or []:
                command += [option, value]
        if self._config.getoption("capture") == "no":
            command += ["-s"]
        if self._config.inipath is not None:
            command += ["-c", str(self._config.inipath)]
        if self._config.pluginmanager.hasplugin("xdist"):
            command += ["-n", "0"]
        done = subprocess.run([sys.executable, "-m", "gpumemtrace", *command], cwd=str(self._config.invocation_params.dir),
                              env={**os.environ, _CHILD: str(description)}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        description.unlink()
        if self._config.getoption("capture") == "no":
            print(done.stdout, end="")
        if not reports_file.exists():
            how = f"was killed by signal {done.returncode - 128}" if done.returncode > 128 else f"ended with code {done.returncode}"
            return [_failure(item, f"The process of this test {how}:\n{done.stdout}\n{self._why(recording)}".rstrip())]
        serialized = json.loads(reports_file.read_text())
        reports_file.unlink()
        reports = [self._deserialized(data) for data in serialized]
        if not reports:
            return [_failure(item, f"The process of this test did not run it:\n{done.stdout}")]
        properties = self._measure(recording)
        for report in reports:
            if report.when == "call" and not report.skipped:
                self._judge(report, recording, gate)
            if report.when != "setup":  # pytest writes those of the last phase to its XML file
                report.user_properties += properties
        return reports

    def _deserialized(self, data: Dict[str, Any]) -> pytest.TestReport:
        # JSON has no tuples. That of a skipped test is its file, line and reason.
        if isinstance(data["longrepr"], list):
            data["longrepr"] = tuple(data["longrepr"])
        data["location"] = tuple(data["location"])
        return self._config.hook.pytest_report_from_serializable(config=self._config, data=data)

    def _options(self) -> Dict[str, Any]:
        """Returns the options of this run, with those of other plugins and of conftest.py."""
        options = {}
        for name, value in vars(self._config.option).items():
            if name in _RUN_OPTIONS or name in _COMMAND_OPTIONS:
                continue
            try:
                json.dumps(value)
            except (TypeError, ValueError):
                continue
            options[name] = value
        return options

    def _file(self, item: pytest.Item, suffix: str) -> Path:
        cache = self._config.cache
        folder = Path(str(cache.mkdir("gpumemtrace"))) if cache is not None else self._config.rootpath
        name = re.sub(r"[^\w.\[\]-]+", "_", item.nodeid)
        return folder / (name[-200:] + suffix)

    # ---- Judging

    def _measure(self, recording: Path) -> List[Tuple[str, Union[int, str]]]:
        if not recording.exists():
            return [(_PEAK, 0)]
        done = _gpumemtrace("report", str(recording), "--json")
        peaks = [device["bytes"] for device in json.loads(done.stdout)["devices"]] if done.returncode == 0 else []
        return [(_PEAK, max(peaks, default=0)), (_FILE, str(recording))]

    def _judge(self, report: pytest.TestReport, recording: Path, gate: _Gate) -> None:
        if not recording.exists():
            return
        if report.failed:
            report.sections.append(("GPU memory", self._why(recording)))
            return
        failures = []
        for command in gate.commands(recording, self._config.rootpath):
            done = _gpumemtrace(*command)
            if done.returncode != 0:
                # A gate that cannot be evaluated, such as one without its baseline, must not pass.
                text = f"{done.stderr}\n{done.stdout}" if done.returncode == _GATE_FAILED else done.stderr
                failures.append(text.strip() + f"\n\ngpumemtrace {' '.join(command)}")
        if failures:
            report.outcome = "failed"
            report.longrepr = "\n\n".join(failures)

    def _why(self, recording: Path) -> str:
        """Returns why memory ran out, if it did, and otherwise what the test held at its peak."""
        if not recording.exists():
            return "no GPU memory was used"
        answer = _gpumemtrace("oom", str(recording)).stdout
        return answer if answer.startswith("Out of memory") else _gpumemtrace("report", str(recording)).stdout

    # ---- The summary, which contains the tests of all of xdist's workers

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if report.when == "call" and _PEAK in properties:
            self._measured.append((report.nodeid, int(properties[_PEAK]), str(properties.get(_FILE, ""))))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._measured:
            return
        terminalreporter.section("GPU memory at the peak")
        for nodeid, peak, recording in self._measured:
            terminalreporter.line(f"{peak / 2**20:>10,.1f} MiB  {nodeid}")
            if recording:
                terminalreporter.line(f"{'':14}  {os.path.relpath(recording)}")


def _failure(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
