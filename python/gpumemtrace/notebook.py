"""Magics for notebooks: %%gpumemtrace answers for one cell, %gpumemtrace for the kernel's whole recording.

`%load_ext gpumemtrace` loads this module. docs/notebook.md is its manual.

A recorded cell is a region of the recording, "cell [3]". Its answers come from the commands of gpumemtrace, which read the
file as soon as a snapshot request has ensured that everything is in it.
"""

import json
import linecache
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterable, List, Optional

from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import cell_magic as transform_cell_magic
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

import gpumemtrace

from .__main__ import find_program

_READING = {"advise", "cat", "diff", "export", "frag", "info", "leaks", "ledger", "oom", "query", "report", "show", "whatif"}
_ASKING = {"mark", "snapshot", "status"}
_COLLECTOR_S = 10  # after the first call of the GPU, the collector may still be starting
_CELL_FILE = re.compile(r"\d+\.py|<ipython-input-[^>\s]*>")
_ROWS = 5
_WIDTH = 110
_STILL_WRITTEN = "has no end: it is still being written"

# Jupyter's server drops the output of a kernel that sends more than 3 MB in 3 seconds.
_PAGE_MB = 2
_PAGE = """<iframe sandbox="allow-scripts" title="GPU memory" srcdoc="{}"
  style="width: 100%; height: 680px; border: 1px solid #8884"></iframe>"""


def load(shell: Any) -> None:
    """Adds the magics to IPython. A second call does nothing."""
    if _rewrite_cell not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(_rewrite_cell)
        shell.register_magics(_GpuMemory)


def _rewrite_cell(lines: List[str]) -> List[str]:
    """Replaces the first line `%%gpumemtrace ...` by a call, so that IPython runs the cell as it runs every other: with its
    line numbers, exceptions, `await` and last value."""
    first = re.match(r"%%gpumemtrace(?![\w?])(.*)", lines[0]) if lines else None
    if first is None:
        return lines
    call = f"__import__('gpumemtrace.notebook').notebook.begin_cell(get_ipython(), {first[1].strip()!r})\n"
    return [call, *transform_cell_magic(lines[1:])]


_rewrite_cell.has_side_effects = True  # type: ignore[attr-defined]  # terminals then wait for the rest of the cell


# ---- The commands


def _found_program() -> str:
    program = find_program()
    if program is None:
        raise UsageError("this kernel has the Python package gpumemtrace, but not the program. Install the wheel that "
                         "scripts/wheel builds, or add the directory of the program gpumemtrace to PATH and restart the kernel")
    return program


def _run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([_found_program(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          check=False)


def _answer(*words: str) -> str:
    done = _run(*words)
    if done.returncode != 0:
        raise UsageError(_message(done))
    return done.stdout


def _notes(done: "subprocess.CompletedProcess[str]") -> str:
    """Returns what a command wrote to stderr, except that the recording has no end, as none of a running kernel has."""
    return "\n".join(line for line in done.stderr.strip().splitlines() if _STILL_WRITTEN not in line)


def _message(done: "subprocess.CompletedProcess[str]") -> str:
    """Returns why a command failed."""
    return re.sub(r"^gpumemtrace: ", "", _notes(done)) or f"gpumemtrace ended with code {done.returncode}"


def _rows(file: str, statement: str) -> List[List[Any]]:
    return json.loads(_answer("query", file, "--json", statement))["rows"]


def _complete_recording(name: str) -> str:
    """Returns the path of this kernel's recording after everything has been written to it."""
    deadline = time.monotonic() + _COLLECTOR_S
    while True:
        done = _run("snapshot", str(os.getpid()), "--name", name, "--json")
        if done.returncode == 0:
            return json.loads(done.stdout)["file"]
        if not gpumemtrace.recording():
            raise UsageError("this kernel is not recorded yet. Recording begins with %%gpumemtrace at the top of a cell that "
                             "uses the GPU")
        if time.monotonic() > deadline:
            raise UsageError(_message(done))
        time.sleep(0.05)


def _show_page(file: str, cells: Dict[str, str]) -> None:
    """Shows the page about a recording, and which cells the files are that it names.

    In a sandbox with scripts only, it has an origin of its own: what a recording contains can reach neither the notebook nor
    Jupyter's server, which runs any code for scripts of its own origin.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "page.html")
        _answer("export", "--format", "html", file, "-o", path, "--max-mb", str(_PAGE_MB))
        with open(path, encoding="utf-8") as page:
            text = page.read().replace("&", "&amp;").replace('"', "&quot;")
    named = _rows(file, f"SELECT DISTINCT source_file FROM frames WHERE source_file IN {_sql_list(cells)}")
    files = ", ".join(f"{os.path.basename(name)} is {cells[name]}" for name, in named)
    print(f"The page about everything recorded so far{'. ' if files else ''}{files}:")
    display({"text/html": _PAGE.format(text), "text/plain": f"gpumemtrace view {file}"}, raw=True)


# ---- Names of cells


def _cells(shell: Any) -> Dict[str, str]:
    """Returns the names of the cells by the files of their frames: /tmp/ipykernel_7/456.py, or <ipython-input-3-...>."""
    numbers = {text.rstrip("\n"): number for number, text in enumerate(shell.history_manager.input_hist_parsed)}
    names = {}
    for file, entry in list(linecache.cache.items()):  # IPython adds the source of cells, for tracebacks
        if _CELL_FILE.fullmatch(os.path.basename(file)) and len(entry) == 4:
            number = numbers.get("".join(entry[2]).rstrip("\n"))
            if number is not None:
                names[file] = f"cell [{number}]"
    return names


def _sql_list(texts: Iterable[str]) -> str:
    return "(" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + ")"


def _for_notebook(text: str, cells: Dict[str, str], file: str) -> str:
    """Returns an answer in which places in cells have readable names, and which proposes magics instead of commands."""
    names = {os.path.basename(path): name for path, name in cells.items()}

    def place(found: "re.Match[str]") -> str:
        name = names.get(found[1])
        return found[0] if name is None else f"{name}, line {found[2]}"

    text = re.sub(rf"(?:[^\s()]*/)?({_CELL_FILE.pattern}):(\d+)", place, text)
    text = re.sub(r"<(?:module|cell line: \d+)> \((cell \[\d+\], line \d+)\)", r"\1", text)
    return re.sub(rf"\bgpumemtrace (\w+) {re.escape(shlex.quote(file))}", r"%gpumemtrace \1", text)


# ---- A cell


def _start() -> None:
    """Starts recording this kernel, unless that has been done, and prints what is missed."""
    if gpumemtrace.recording():
        return
    try:
        said = gpumemtrace.start()
    except (OSError, RuntimeError) as error:
        raise UsageError(str(error)) from None
    if said.startswith(("preloaded", "already")):
        return
    print("This kernel is recorded from now on.")
    if "earlier allocations are unknown" in said:
        torch = sys.modules.get("torch")
        held = sum(map(torch.cuda.memory_allocated, range(torch.cuda.device_count()))) if torch is not None else 0
        holder = f": PyTorch holds {held / 2**20:,.1f} MiB of it" if held != 0 else ""
        print(f"It used the GPU before; memory that was allocated then is not in the recording{holder}.")
        print("To record everything, restart the kernel and put %%gpumemtrace at the top of the first cell that uses the GPU.")
    unseen = re.search(r"modules that already have addresses of driver functions.*?: ([^;]*)", said)
    if unseen is not None:
        print(f"Calls of the CUDA driver through addresses that these libraries got before are not seen: {unseen[1]}.")


def begin_cell(shell: Any, options: str) -> None:
    """Records the cell that calls this, and shows its answer when it ends."""
    with_page = options != "--no-page"
    if with_page and options:
        raise UsageError(f"%%gpumemtrace has one option, --no-page: {options}")
    if _Cell.current is not None:  # IPython has not reported its end
        _Cell.current.close()
    _found_program()  # without it, the cell must not run
    _start()
    _Cell.current = _Cell(shell, with_page)


class _Cell:
    """A cell that is being recorded."""

    current: Optional["_Cell"] = None

    def __init__(self, shell: Any, with_page: bool):
        self._shell, self._with_page = shell, with_page
        # The history has this cell already. Whether execution_count has been increased depends on IPython's version.
        self._name = f"cell [{len(shell.history_manager.input_hist_raw) - 1}]"
        # Before the first call of the GPU there is no recording in which the cell could begin.
        self._is_in_recording = gpumemtrace.recording()
        self._region = gpumemtrace.region(self._name)
        self._region.__enter__()
        shell.events.register("post_run_cell", self._end)

    def close(self) -> None:
        _Cell.current = None
        self._region.__exit__()
        self._shell.events.unregister("post_run_cell", self._end)

    def _end(self, result: Any) -> None:
        if "%%gpumemtrace" not in result.info.raw_cell:  # a cell that this one runs
            return
        self.close()
        try:
            if not gpumemtrace.recording():
                print(f"Nothing of {self._name} was recorded: it did not use GPU memory, or a message above says why.")
                return
            file = _complete_recording(f"after {self._name}")
            print(_for_notebook("\n".join(self._lines(file, result)), _cells(self._shell), file))
            if self._with_page:
                _show_page(file, _cells(self._shell))
        except UsageError as error:
            print(f"gpumemtrace: {error}", file=sys.stderr)

    def _lines(self, file: str, result: Any) -> List[str]:
        begin = 0
        if self._is_in_recording:
            begin = _rows(file, f"SELECT max(begin_ns) FROM ranges WHERE name = '{self._name}'")[0][0] or 0
        window = ["--from", f"{begin / 1e9:.9f}"]
        lines = self._out_of_memory(file, begin) or self._peaks(file, begin, window)
        lines += self._left_behind(file, begin, result)
        leaks = json.loads(_answer("leaks", file, *window, "--json"))
        if any(suspect["tier"] in ("leak", "likely") for suspect in leaks["suspects"]):
            lines += ["", _answer("leaks", file, *window, "--width", str(_WIDTH)).rstrip()]
        return lines

    def _out_of_memory(self, file: str, begin: int) -> List[str]:
        answer = json.loads(_answer("oom", file, "--json"))
        if answer["verdict"] in ("none", "unknown") or answer["t_ns"] < begin:
            return []
        return [f"{self._name.capitalize()} ran out of memory.", _answer("oom", file, "--width", str(_WIDTH)).rstrip()]

    def _peaks(self, file: str, begin: int, window: List[str]) -> List[str]:
        if not _rows(file, f"SELECT 1 FROM events WHERE t_ns > {begin} AND device IS NOT NULL LIMIT 1"):
            return [f"{self._name.capitalize()} neither allocated nor freed GPU memory."]
        lines = []
        for device in json.loads(_answer("report", file, *window, "--json"))["devices"]:
            index, peak = device["index"], max(device["t_ns"], begin)
            if index is None:
                continue
            sums = ", ".join(f"human(ifnull(sum(bytes) FILTER (WHERE {condition}), 0))" for condition in
                             (_live_at(begin), _live_at(peak), f"{_live_at(peak)} AND alloc_ns > {begin}", "free_ns IS NULL"))
            before, most, own, after = _rows(file, f"SELECT {sums} FROM memory WHERE holds_blocks = 0 AND device = {index}")[0]
            lines += [f"{self._name.capitalize()}, GPU {index}: {before} before it, {most} at its peak ({own} allocated by this "
                      f"cell), {after} after it.", "At the peak:"]
            lines += self._by_line(file, f"device = {index} AND {_live_at(peak)}")
        return lines

    def _left_behind(self, file: str, begin: int, result: Any) -> List[str]:
        rows = self._by_line(file, f"device IS NOT NULL AND alloc_ns > {begin} AND free_ns IS NULL")
        if rows == []:
            return ["Nothing that this cell allocated is still held."]
        lines = ["", "Allocated by this cell and still held:", *rows]
        if result.error_in_exec is not None:
            lines.append("The exception keeps alive the local variables of the functions that it left, until the next exception.")
        return lines

    def _by_line(self, file: str, condition: str) -> List[str]:
        """Returns a line of text for each of the stacks that allocated most of some memory."""
        cells = _sql_list(_cells(self._shell))
        rows = _rows(file, f"""
            SELECT human(sum(bytes)), count(*), category, stack, stack_text(stack),
              (SELECT source_file || ':' || line FROM frames f WHERE f.stack = m.stack AND source_file IN {cells}
               ORDER BY depth DESC LIMIT 1)
            FROM memory m WHERE holds_blocks = 0 AND {condition} GROUP BY stack ORDER BY sum(bytes) DESC""")
        lines = []
        for size, count, category, stack, text, place in rows[:_ROWS]:
            # If a function allocated: the line of the cell that called it, before its own.
            called = "" if place is None or f"({os.path.basename(place)})" in text else f"{os.path.basename(place)}: "
            lines.append(f"{size:>10} {count:>6} x  {called}{text or 'unknown'}   {category or ''}  stack/{stack}")
        if len(rows) > _ROWS:
            lines.append(f"{'':21}and {len(rows) - _ROWS} more")
        return lines


def _live_at(t_ns: int) -> str:
    """Returns the SQL condition for memory that was held at a moment."""
    return f"(ifnull(alloc_ns, 0) <= {t_ns} AND (free_ns IS NULL OR free_ns > {t_ns}))"


# ---- The magics


@magics_class
class _GpuMemory(Magics):
    @line_cell_magic
    def gpumemtrace(self, line: str, cell: Optional[str] = None) -> None:
        """Records a cell and shows what it did with GPU memory, or answers about this kernel's recording.

        %%gpumemtrace [--no-page]     at the top of a cell; --no-page: without the page below the text
        %gpumemtrace VERB [options]   report, oom, leaks, show stack/7, ... without the name of a file
        %gpumemtrace view             the page about everything recorded so far
        """
        if cell is not None:  # called by its name; at the top of a cell, _rewrite_cell() replaces it
            self.shell.run_cell(f"%%gpumemtrace {line}\n{cell}")
            return
        words = shlex.split(line)
        verb, rest = (words[0], words[1:]) if words else ("", [])
        if verb not in _READING | _ASKING | {"view"}:
            raise UsageError("%gpumemtrace answers about this kernel's recording with one of: "
                             + ", ".join(sorted(_READING | _ASKING | {"view"})) + (f"; not {verb}" if verb else ""))
        file = ""
        if {"-h", "--help"} & set(rest):
            done = _run(verb, *rest)
        elif verb in _ASKING:
            done = _run(verb, str(os.getpid()), *rest)
        else:
            file = _complete_recording(verb)
            if verb == "view":
                _show_page(file, _cells(self.shell))
                return
            done = _run(verb, *rest, file) if verb == "diff" else _run(verb, file, *rest)
        print(_for_notebook(done.stdout, _cells(self.shell), file), end="")
        if done.returncode != 0:
            raise UsageError(_message(done))
        if _notes(done):
            print(_notes(done), file=sys.stderr)
