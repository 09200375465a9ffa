#!/usr/bin/env python3
"""Completes command lines of gpumemtrace in bash, zsh and fish, as a user does with the Tab key.

Usage: completion_check.py --build BUILD
"""

import argparse
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import threading

HANG_S = 120
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"
# A line is typed, then Tab, then the key that reports what the line has become.
TAB, REPORT, KILL_LINE = b"\t", b"\x18\x10", b"\x15"

FILES = ("run.gmt", "run.txt", "settings.json", "holdings.txt", "holder/inner.gmt")
# What is typed after "gpumemtrace ", and what the line becomes.
CASES = (
    ("repor", "report "),
    ("--vers", "--version "),
    ("report --fail-a", "report --fail-above "),
    ("report run.gmt --by cat", "report run.gmt --by category "),
    ("report --by=cat", "report --by=category "),
    ("report --color nev", "report --color never "),
    ("estimate --optimizer adaf", "estimate --optimizer adafactor "),
    ("completion fi", "completion fish "),
    ("report ru", "report run.gmt "),
    ("report run.gmt --js", "report run.gmt --json "),
    ("ranks run.gmt hol", "ranks run.gmt holder/"),
    ("report holder/in", "report holder/inner.gmt "),
    ("report --categories set", "report --categories settings.json "),
    ("report --categories=set", "report --categories=settings.json "),
    ("symbolize --debug-dir hol", "symbolize --debug-dir holder/"),
    ("run --qui", "run --quiet "),
    ("run -- unusual-pro", "run -- unusual-program "),
    ("run --quiet unusual-pro", "run --quiet unusual-program "),
    ("run -- unusual-program --x set", "run -- unusual-program --x settings.json "),
)


class Terminal:
    """A shell with a terminal of its own. Its rc file writes what is asked for to descriptor 9."""

    def __init__(self, command, environment, folder):
        self.reports, write = os.pipe()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.dup2(write, 9)
            os.set_inheritable(9, True)  # dup2() leaves it as it is if it is already number 9
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        os.close(write)
        self.shown = b""
        threading.Thread(target=self.drain, daemon=True).start()
        self.report()  # the rc file is through

    def drain(self):
        try:
            while data := os.read(self.terminal, 4096):
                self.shown += data
        except OSError:  # the shell has ended
            pass

    def report(self):
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.reports], [], [], HANG_S)
            data = os.read(self.reports, 4096) if ready else b""
            assert data, f"the shell reports nothing; it shows:\n{self.shown.decode(errors='replace')}"
            line += data
        return line.decode().rstrip("\n")

    def complete(self, line):
        os.write(self.terminal, line.encode() + TAB + REPORT)
        completed = self.report()
        os.write(self.terminal, KILL_LINE)
        return completed

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.reports)


class Check:
    def __init__(self, build, folder):
        self.program, self.home, self.here = build / "bin" / "gpumemtrace", folder / "home", folder / "here"
        programs = folder / "programs"
        for path in (self.home, programs, *(self.here / name for name in FILES)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir() if path.parent == folder else path.touch()
        (programs / "unusual-program").write_text("#!/bin/sh\n")
        (programs / "unusual-program").chmod(0o755)
        (programs / "gpumemtrace").symlink_to(self.program)
        self.environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(self.home), "TERM": "dumb", "LC_ALL": "C.UTF-8",
                            "COLUMNS": "500", "ZDOTDIR": str(self.home), "XDG_DATA_HOME": str(self.home / "share"),
                            "XDG_CONFIG_HOME": str(self.home / "config")}

    def script(self, shell, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(subprocess.run([self.program, "completion", shell], check=True, capture_output=True, text=True).stdout)

    def all_cases(self, complete):
        for typed, expected in CASES:
            completed = complete(f"gpumemtrace {typed}")
            assert completed == f"gpumemtrace {expected}", f"'{typed}' became '{completed}', not 'gpumemtrace {expected}'"

    def in_terminal(self, name, rc, *command):
        (self.home / name).write_text(rc)
        shell = Terminal(command, self.environment, self.here)
        try:
            self.all_cases(shell.complete)
        finally:
            shell.close()

    def bash(self, setup):
        self.in_terminal("bashrc", f"""{setup}
bind -x '"\\C-x\\C-p": printf "%s\\n" "$READLINE_LINE" >&9'
printf 'ready\\n' >&9
""", "bash", "--noprofile", "--rcfile", str(self.home / "bashrc"), "-i")

    def zsh(self, setup):
        self.in_terminal(".zshrc", f"""{setup}
report() {{ print -r -- "$BUFFER" >&9 }}
ready() {{ print ready >&9; zle -D zle-line-init }}
zle -N report
zle -N zle-line-init ready
bindkey '^X^P' report
bindkey '^U' kill-whole-line
""", "zsh", "-d", "-i")

    def test_bash(self):
        self.bash("source <(gpumemtrace completion bash)")

    def test_bash_with_the_package_bash_completion(self):
        self.script("bash", self.home / "share/bash-completion/completions/gpumemtrace")
        self.bash(f"source {BASH_COMPLETION}")

    def test_zsh_reads_the_script(self):
        self.zsh("autoload -U compinit && compinit -D\nsource <(gpumemtrace completion zsh)")

    def test_zsh_loads_the_function(self):
        self.script("zsh", self.home / "functions/_gpumemtrace")
        self.zsh(f"fpath=({self.home}/functions $fpath)\nautoload -U compinit && compinit -u -D")

    def test_fish(self):
        self.script("fish", self.home / "config/fish/completions/gpumemtrace.fish")

        def complete(line):
            """Returns the line with its last word completed: fish prints the candidates for it."""
            found = subprocess.run(["fish", "-c", "complete -C $argv[1]", line], cwd=self.here, env=self.environment,
                                   capture_output=True, text=True, timeout=HANG_S)
            candidates = [candidate.split("\t")[0] for candidate in found.stdout.splitlines()]
            assert len(candidates) == 1, (line, found)
            before, _, _ = line.rpartition(" ")
            return f"{before} {candidates[0]}" + ("" if candidates[0].endswith("/") else " ")

        self.all_cases(complete)

    def test_descriptions_are_shown(self):
        self.script("fish", self.home / "config/fish/completions/gpumemtrace.fish")
        found = subprocess.run(["fish", "-c", "complete -C 'gpumemtrace repor'"], cwd=self.here, env=self.environment,
                               capture_output=True, text=True, timeout=HANG_S)
        assert "report\tShow what holds the memory" in found.stdout, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    failed = 0
    for test in [test for test in dir(Check) if test.startswith("test_")]:
        with tempfile.TemporaryDirectory() as name:
            try:
                getattr(Check(build, pathlib.Path(name)), test)()
                print(f"passed  {test}")
            except Exception as error:  # noqa: BLE001  all checks run, and each failure is printed
                failed += 1
                print(f"FAILED  {test}: {type(error).__name__}: {error}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
