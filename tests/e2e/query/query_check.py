#!/usr/bin/env python3
"""Tests the prompt of `gpumemtrace query` as used at a terminal: completion, statements of several lines, errors,
Ctrl-C, the history, the commands, and text of a recording that would control the terminal.

Usage: query_check.py --build BUILD [NAME...]
"""

import argparse
import json
import os
import pathlib
import pty
import re
import stat
import subprocess
import sys
import tempfile
import termios
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import HANG_S, wait_for  # noqa: E402

# It would change the title of the terminal's window.
HOSTILE = "\x1b]0;owned\x07"
EVENTS = [
    {"kind": "header", "schema": "gpumemtrace.events/1", "start_unix_ns": 0, "argv": ["train" + HOSTILE]},
    {"kind": "alloc", "t_ns": 1, "heap": "driver", "memory": "device", "device": 0, "address": 1 << 30, "size": 4096},
    {"kind": "alloc", "t_ns": 2, "heap": "host", "memory": "pinned", "address": 1 << 20, "size": 1000},
    {"kind": "alloc", "t_ns": 3, "heap": "host", "memory": "pinned", "address": 1 << 21, "size": 234},
    {"kind": "mark", "t_ns": 4, "name": "half" + HOSTILE},
]
ENTER, TAB, INTERRUPT, END, UP = "\r", "\t", "\x03", "\x04", "\x1b[A"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;"
CONTROL_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>]|[\x07\r]")


class Prompt:
    """The program with a terminal of its own."""

    def __init__(self, program, folder, *words):
        self.shown, self.seen = b"", 0
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": str(folder / "state")}
            os.execve(program, [str(program), "query", *words], environment)
        self.drained = threading.Thread(target=self.drain, daemon=True)
        self.drained.start()
        self.until("sql> ")

    def drain(self):
        try:
            while data := os.read(self.terminal, 4096):
                self.shown += data
        except OSError:  # the program has ended
            pass

    def text(self):
        """Returns all that has been shown, without what moves the cursor."""
        return CONTROL_SEQUENCE.sub(b"", self.shown).decode(errors="replace")

    def until(self, wanted):
        """Waits until a text is shown after the last one that was waited for; returns what is shown up to it."""
        wait_for(lambda: f"{wanted!r} in:\n{self.text()[self.seen:]}", lambda: wanted in self.text()[self.seen:], pause_s=0.02)
        text = self.text()
        begin, self.seen = self.seen, text.index(wanted, self.seen) + len(wanted)
        return text[begin:self.seen]

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def ask(self, line):
        """Types a line, and returns what is shown until the next prompt."""
        self.type(line + ENTER)
        return self.until("\nsql> ")

    def is_typing(self):
        """Returns whether the program reads keys: Ctrl-C is one of them then, and not a signal."""
        return termios.tcgetattr(self.terminal)[6][termios.VINTR] != INTERRUPT.encode()

    def exit_code(self):
        codes = []
        waiting = threading.Thread(target=lambda: codes.append(os.waitpid(self.pid, 0)[1]), daemon=True)
        waiting.start()
        waiting.join(HANG_S)
        assert codes, f"the program does not end; it shows:\n{self.text()}"
        return os.waitstatus_to_exitcode(codes[0])

    def quit(self):
        self.type(".quit" + ENTER)
        assert self.exit_code() == 0
        self.drained.join(HANG_S)


def answers_statements_of_several_lines(prompt):
    prompt.type("SELECT heap," + ENTER)
    prompt.until("\n...> ")
    shown = prompt.ask("sum(bytes) AS s FROM memory GROUP BY heap;")
    assert re.search(r"heap +s\ndriver +4096\nhost +1234\n", shown), shown
    shown = prompt.ask("SELECT 20 + 1; SELECT ';' AS semicolon; -- both")
    assert "\n21\n" in shown.replace(" ", "") and "\nsemicolon\n;\n" in shown, shown


def completes_words(prompt):
    # Keywords continue in the case that was typed; a column that only memory has, and a table.
    shown = prompt.ask(f"sel{TAB}max(request{TAB}), sum(holds_{TAB}) AS h FROM mem{TAB};")
    assert "select max(requested ), sum(holds_blocks ) AS h FROM memory ;" in shown and "max(requested )" in shown, shown


def lists_words(prompt):
    prompt.type(f"SELECT h{TAB}")
    shown = prompt.until("human(")
    assert "heap" in shown and "holds_blocks" in shown, shown
    prompt.until("sql> SELECT h")
    prompt.type(INTERRUPT)
    prompt.until("\nsql> ")
    # The columns of one table, by an alias, and nothing within a string.
    shown = prompt.ask(f"SELECT 'm.num{TAB}' AS t FROM marks AS m WHERE m.num{TAB}IS NULL;")
    assert "\nt\nm.num\n" in shown, shown
    assert "every piece of memory" in prompt.ask(f".ta{TAB}")


def errors_do_not_end_it(prompt):
    assert "no such column: colour" in prompt.ask("SELECT colour FROM memory;")
    assert "only read" in prompt.ask("ATTACH 'other' AS other;")
    assert ".nonsense is not a command" in prompt.ask(".nonsense")
    assert "there is no table nothing" in prompt.ask(".schema nothing")
    assert "expected table, box, csv or json" in prompt.ask(".mode wide")
    # The second of two statements does not run after an error.
    assert "43" not in prompt.ask("SELECT nonsense; SELECT 42 + 1;")
    assert "\n42\n" in prompt.ask("SELECT 40 + 2 AS n;")


def interrupts_statements_and_not_the_program(prompt):
    prompt.type(ENDLESS + ENTER)
    wait_for("the statement to run", lambda: not prompt.is_typing())
    prompt.type(INTERRUPT)
    prompt.until("SQL: interrupted")
    prompt.until("sql> ")
    # What is typed is discarded.
    prompt.type("SELECT nonsense," + ENTER)
    prompt.until("\n...> ")
    prompt.type("more" + INTERRUPT)
    prompt.until("\nsql> ")
    assert "\n42\n" in prompt.ask("SELECT 40 + 2 AS n;")


def obeys_commands(prompt):
    shown = prompt.ask(".tables")
    assert re.search(r"^memory +every piece of memory", shown, re.M) and re.search(r"^blocks ", shown, re.M), shown
    shown = prompt.ask(".schema marks")
    assert "marks that the program set" in shown and "frames" not in shown, shown
    assert ".mode table|box|csv|json" in prompt.ask(".help")
    for mode, result in (("box", "│ 1 │ a │"), ("csv", 'n,t\n1,a\n'), ("json", '[1,"a"]'), ("table", "n  t\n1  a\n")):
        prompt.ask(f".mode {mode}")
        shown = prompt.ask("SELECT 1 AS n, 'a' AS t;")
        assert result in shown, shown


def text_cannot_control_the_terminal(prompt):
    for mode in ("table", "box", "csv", "json"):
        prompt.ask(f".mode {mode}")
        for statement in (
            "SELECT name FROM marks;",
            "SELECT * FROM recordings;",
            "SELECT char(27) || ']0;' || 'owned' || char(7) AS made;",
            "SELECT no_such_column FROM marks;",
        ):
            prompt.ask(statement)
    assert "half" in prompt.text() and "owned" in prompt.text()
    assert HOSTILE.encode()[:4] not in prompt.shown, prompt.shown


CASES = [
    answers_statements_of_several_lines,
    completes_words,
    lists_words,
    errors_do_not_end_it,
    interrupts_statements_and_not_the_program,
    obeys_commands,
    text_cannot_control_the_terminal,
]


def remembers_statements(program, folder, recording):
    """Of earlier prompts too, in a file that only the user may read."""
    prompt = Prompt(program, folder, recording)
    prompt.type("SELECT 40 +" + ENTER)
    prompt.until("\n...> ")
    assert "\n42\n" in prompt.ask("2 AS n;")
    prompt.quit()
    history = folder / "state" / "gpumemtrace" / "query_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600, oct(history.stat().st_mode)
    prompt = Prompt(program, folder, recording)
    prompt.type(UP + UP)  # the last entry is .quit
    shown = prompt.ask("")
    assert "\n42\n" in shown, shown
    # An end of the input, too, ends the program.
    prompt.type(END)
    assert prompt.exit_code() == 0


def does_without_a_history(program, folder, recording):
    (folder / "state").write_text("a file and no folder")
    prompt = Prompt(program, folder, recording)
    assert "the history cannot be written" in prompt.ask("SELECT 1;")
    assert "the history" not in prompt.ask("SELECT 2;")
    prompt.quit()


def needs_a_terminal(program, folder, recording):
    done = subprocess.run([program, "query", recording], input="SELECT 40 + 2 AS n", cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, " n\n42\n"), done
    main, terminal = pty.openpty()
    done = subprocess.run([program, "query", recording], stdin=terminal, cwd=folder, capture_output=True, text=True)
    os.close(main), os.close(terminal)
    assert done.returncode == 2 and "expected a statement" in done.stderr, done


ALONE = [remembers_statements, does_without_a_history, needs_a_terminal]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    program = (arguments.build / "bin" / "gpumemtrace").resolve()
    for case in CASES + ALONE:
        if arguments.names and case.__name__ not in arguments.names:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            recording = f"run{HOSTILE}.jsonl"
            (folder / recording).write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
            if case in ALONE:
                case(program, folder, recording)
            else:
                prompt = Prompt(program, folder, "--timeout", "0", recording)
                case(prompt)
                prompt.quit()
        print(f"{case.__name__}: passed")


if __name__ == "__main__":
    main()
