#!/usr/bin/env python3
"""Executes notebooks with the magics of the Python package, with PyTorch on the simulated device: the answers must name the
right cells and lines, also if the kernel used the GPU before, if it did not, and if the library was preloaded.

Usage: notebook_check.py --build DIR [NAME...]
"""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import ROOT, main_of_cases  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "gpumemtrace")
PYTHON = CACHE / "notebook" / "bin" / "python"  # has Jupyter and PyTorch: scripts/setup

USE_GPU = "import torch\nbefore = torch.zeros(1 << 20, device='cuda')"
LOAD = "%load_ext gpumemtrace"
FUNCTION = """%%gpumemtrace --no-page
import torch
def make(n):
    return [torch.zeros(1 << 20, device='cuda') for _ in range(n)]
a = make(3)
temporary = torch.zeros(1 << 22, device='cuda')
del temporary"""
CALL = """%%gpumemtrace
b = make(7)
sum(tensor.numel() for tensor in b)"""
OUT_OF_MEMORY = """%%gpumemtrace --no-page
def grow():
    parts = []
    while True:
        parts.append(torch.zeros(1 << 26, device='cuda'))
grow()"""
FREE = """%%gpumemtrace --no-page
%%time
del a, b"""
AWAIT = """%%gpumemtrace --no-page
async def answer(): return 42
await answer()"""
LEAK = """%%gpumemtrace --no-page
import torch, gpumemtrace
kept = []
for _ in range(200):
    activation = torch.zeros(1 << 20, device='cuda')
    kept.append(torch.zeros(1 << 16, device='cuda'))
    del activation
    gpumemtrace.step()"""


class Cell:
    """An executed cell."""

    def __init__(self, cell):
        self.number, self._outputs = cell["execution_count"], cell["outputs"]
        self.text = self._stream("stdout")
        self.errors = self._stream("stderr")
        self.exceptions = [output["ename"] for output in self._outputs if output["output_type"] == "error"]
        self.results = [self._data(output, "text/plain") for output in self._outputs if output["output_type"] == "execute_result"]
        self.pages = [self._data(output, "text/html") for output in self._outputs if output["output_type"] == "display_data"]

    def _stream(self, name):
        return "".join("".join(output["text"]) for output in self._outputs if output.get("name") == name)

    @staticmethod
    def _data(output, kind):
        return "".join(output["data"][kind])

    def has(self, *texts):
        for text in texts:
            # Columns are as wide as their sizes.
            assert re.sub(" +", " ", text) in re.sub(" +", " ", self.text), f"no {text!r} in cell [{self.number}]:\n{self.text}{self.errors}"


def execute(rig, folder, *sources, before=(), **environment):
    """Returns the executed cells. `before`: words of a command that starts Jupyter."""
    if not PYTHON.exists():
        sys.exit(f"{PYTHON} does not exist: run scripts/setup --test")
    cells = [{"cell_type": "code", "id": str(i), "metadata": {}, "execution_count": None, "outputs": [], "source": source}
             for i, source in enumerate(sources)]
    notebook = folder / "notebook.ipynb"
    notebook.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
    command = [*before, *rig.simulated([PYTHON, "-m", "nbconvert", "--to", "notebook", "--inplace", "--execute", "--allow-errors",
                                        "--ExecutePreprocessor.timeout=-1", notebook])]
    jupyter = {name: str(folder / "jupyter") for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    more = {"PATH": f"{rig.build / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
            "SIMCUDA_MEMORY": "2G", **jupyter, **environment}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=rig.environment(folder, more), capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return [Cell(cell) for cell in json.loads(notebook.read_text())["cells"]]


class Frame(html.parser.HTMLParser):
    """The attributes of the only element of an output."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)
        (self.name, self.attributes), = self.elements

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


def kernel_that_has_used_the_gpu(rig, folder):
    _, _, function, call, oom, free, waiting, report, unknown = execute(
        rig, folder, USE_GPU, LOAD, FUNCTION, CALL, OUT_OF_MEMORY, FREE, AWAIT, "%gpumemtrace report --top 5", "%gpumemtrace run x")
    function.has("This kernel is recorded from now on.", "not in the recording: PyTorch holds 4.0 MiB of it",
                 "Cell [3], GPU 0: 0 B before it, 28.0 MiB at its peak (28.0 MiB allocated by this cell), 12.0 MiB after it.",
                 "16.0 MiB 1 x cell [3], line 6 > at::native::zeros_symint",
                 "still held:\n 12.0 MiB 3 x cell [3], line 5: make")
    assert function.pages == [], "a page in spite of --no-page"
    call.has("Cell [4], GPU 0: 12.0 MiB before it, 40.0 MiB at its peak (28.0 MiB allocated by this cell), 40.0 MiB after it.",
             "still held:\n 28.0 MiB 7 x cell [4], line 2: make")
    assert re.search(r"7 x  cell \[4\], line 2: make.*\(cell \[3\], line 4\)", call.text), call.text
    assert "recorded from now on" not in call.text and call.results == [str(7 << 20)], call.results
    assert re.search(r"The page about everything recorded so far\. .*\d+\.py is cell \[4\]", call.text), call.text
    frame = Frame(*call.pages)
    assert (frame.name, frame.attributes["sandbox"]) == ("iframe", "allow-scripts"), frame.attributes.keys()
    page = frame.attributes["srcdoc"]
    assert page.startswith("<!doctype html>") and 'data-gmt="meta"' in page and page.rstrip().endswith("</html>"), page[:500]

    assert oom.exceptions == ["OutOfMemoryError"], oom.exceptions
    oom.has("Cell [5] ran out of memory.\nOut of memory (capacity)", "256 MiB requested",
            "request: grow (cell [5], line 5)", "7 x cell [5], line 6: grow (cell [5], line 5)", "The exception keeps",
            "Next: %gpumemtrace report --at oom")
    free.has("Wall time", "Cell [6], GPU 0: 1.79 GiB before it, 1.79 GiB at its peak (0 B allocated by this cell), 1.75 GiB after it.",
             "Nothing that this cell allocated is still held.")
    waiting.has("Cell [7] neither allocated nor freed GPU memory.")
    assert waiting.results == ["42"], waiting.results
    report.has("peak 1.79 GiB allocated on GPU 0", "grow (cell [5], line 5)", "< cell [5], line 6")
    assert "UsageError" in unknown.errors and "not run" in unknown.errors, unknown.errors


def fresh_kernel(rig, folder):
    _, early, idle, function, call, _, cached = execute(
        rig, folder, LOAD, "%gpumemtrace report", "%%gpumemtrace\n1 + 1", FUNCTION, CALL, "del b",
        "%%gpumemtrace --no-page\nc = make(2)\nd = make(1)\ndel c, d")
    assert early.text == "" and "UsageError: this kernel is not recorded yet" in early.errors, early.errors
    idle.has("This kernel is recorded from now on.\nNothing of cell [3] was recorded: it did not use GPU memory")
    assert "used the GPU before" not in idle.text and idle.results == ["2"], idle.text
    function.has("Cell [4], GPU 0: 0 B before it, 28.0 MiB at its peak", "3 x cell [4], line 5: make")
    call.has("Cell [5], GPU 0: 12.0 MiB before it, 40.0 MiB at its peak", "7 x cell [5], line 2: make")
    assert len(call.pages) == 1, call.pages
    # What the allocator keeps in its cache is not held.
    cached.has("Cell [7], GPU 0: 12.0 MiB before it, 24.0 MiB at its peak (12.0 MiB allocated by this cell), 12.0 MiB after it.",
               "8.00 MiB 2 x cell [7], line 2: make", "4.00 MiB 1 x cell [7], line 3: make",
               "Nothing that this cell allocated is still held.")


def preloaded_kernel_reports_a_leak(rig, folder):
    before = [rig.program, "run", "--quiet", "-o", folder / "run.gmt", "--"]
    _, leak, leaks, view, at = execute(rig, folder, LOAD, LEAK, "%gpumemtrace leaks --fail", "%gpumemtrace view",
                                       '%gpumemtrace report --at "snapshot:after cell [2]"', before=before)
    assert "recorded from now on" not in leak.text, leak.text
    leak.has("Cell [2], GPU 0: 0 B before it, 54.0 MiB at its peak (54.0 MiB allocated by this cell), 50.0 MiB after it.",
             "50.0 MiB 200 x cell [2], line 6 > at::native::zeros_symint", "a leak:", "on GPU 0 at cell [2], line 6")
    leaks.has("on GPU 0 at cell [2], line 6")
    assert "UsageError" in leaks.errors, leaks.errors
    assert len(view.pages) == 1, view.errors
    at.has("50.0 MiB", "cell [2], line 6")
    info = json.loads(subprocess.run([rig.program, "info", "--json", str(folder / "run.gmt")], capture_output=True, text=True,
                                     check=True).stdout)
    assert info["complete"], info


def page_opens_in_a_browser(rig, folder):
    """As HTML, which needs neither Jupyter nor the recording."""
    browser = os.environ.get("GMT_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not browser:
        print("no browser: set GMT_CHROMIUM")
        return
    execute(rig, folder, LOAD, "%%gpumemtrace\n" + FUNCTION.split("\n", 1)[1])
    subprocess.run([PYTHON, "-m", "nbconvert", "--to", "html", folder / "notebook.ipynb"], capture_output=True, check=True,
                   env={**os.environ, "JUPYTER_CONFIG_DIR": str(folder / "jupyter"), "JUPYTER_DATA_DIR": str(folder / "jupyter")})
    (folder / "elsewhere").mkdir()
    (folder / "notebook.html").rename(folder / "elsewhere/notebook.html")
    for recording in folder.glob("*.gmt"):
        recording.unlink()
    node = shutil.which("node") or shutil.which("node", path=CACHE / "node/bin")
    done = subprocess.run([node, pathlib.Path(__file__).with_name("open_page.mjs"), browser, folder / "elsewhere/notebook.html"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "headroom on GPU 0" in done.stdout and "28.0 MiB allocated" in done.stdout, done.stdout


def kernel_without_the_program_or_the_library(rig, folder):
    path = ":".join(part for part in os.environ["PATH"].split(":") if not pathlib.Path(part, "gpumemtrace").exists())
    _, cell, magic = execute(rig, folder, LOAD, "%%gpumemtrace\nprint('ran')", "%gpumemtrace report", PATH=path)
    for each in (cell, magic):
        assert each.text == "" and each.exceptions == [] and each.errors.count("\n") == 1, each.text + each.errors
        assert "UsageError" in each.errors, each.errors
    assert "not the program" in cell.errors, cell.errors
    _, cell = execute(rig, folder, LOAD, "%%gpumemtrace\nprint('ran')", GPUMEMTRACE_LIBRARY="/nowhere/libgpumemtrace.so")
    assert cell.text == "" and cell.errors.count("\n") == 1, cell.text + cell.errors
    assert "UsageError: libgpumemtrace.so was not found; looked for /nowhere/libgpumemtrace.so" in cell.errors, cell.errors


if __name__ == "__main__":
    sys.exit(main_of_cases([(case.__name__, case) for case in (
        kernel_that_has_used_the_gpu, fresh_kernel, preloaded_kernel_reports_a_leak, page_opens_in_a_browser,
        kernel_without_the_program_or_the_library)],
        __doc__.splitlines()[0], torch=False))
