#!/usr/bin/env python3
"""Tests `gpumemtrace top` as used at a terminal: in tmux at 80x24, together with programs on the
simulated device. Every key, a resize, programs that begin and end, and the state of the terminal
afterwards.

Usage: top_check.py --build build/dev [NAME...]
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as recording_rig  # noqa: E402
from waiting import HANG_S, let_pass, wait_for  # noqa: E402

HOLD_MIB = 96


class Tmux:
    """A terminal whose screen can be read."""

    def __init__(self, folder, command, environment, columns=80, rows=24):
        self.socket = str(folder / "tmux")
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", environment=environment)
        # Otherwise tmux shrinks a window to the size that a client of another size shows.
        self.tmux("set-option", "-g", "window-size", "manual", check=False)
        self.type(command, "Enter")

    def tmux(self, *words, environment=None, check=True):
        done = subprocess.run(
            ["tmux", "-u", "-f", "/dev/null", "-S", self.socket, *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )
        assert done.returncode == 0 or not check, f"tmux {words}: {done.stderr}"
        return done.stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def until(self, wanted, absent=False):
        """Waits until a text is on the screen, or until it is gone; returns the screen."""
        text = ""

        def is_so():
            nonlocal text
            text = self.text()
            return (wanted in text) != absent

        wait_for(lambda: f"{'the end of ' if absent else ''}{wanted!r} in:\n{text}", is_so, pause_s=0.05)
        return text

    def close(self):
        self.tmux("kill-server", check=False)


@contextlib.contextmanager
def held(rig, folder, name="one", mib=HOLD_MIB):
    """Runs a recorded program that holds memory until the block ends."""
    program = rig.build / "tests" / "devices" / "hold"
    environment = rig.environment(
        folder,
        {"LD_PRELOAD": rig.library(), "GPUMEMTRACE": f"quiet,output={folder}/{name}.gmt"},
    )
    process = subprocess.Popen(
        rig.simulated([program, "input", f"0:{mib}"]), env=environment, cwd=folder,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline(), "the program has ended"
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for("the end of the collector", lambda: not list((folder / "sessions").glob(f"{process.pid}-*")))


@contextlib.contextmanager
def terminal(rig, folder, words="", **size):
    environment = {**os.environ, "GPUMEMTRACE_DIR": str(folder / "sessions"), "LC_ALL": "C.UTF-8", "PS1": "prompt: "}
    tmux = Tmux(folder, f"{rig.program} top {words}", environment, **size)
    try:
        yield tmux
    finally:
        tmux.close()


def listed(rig, folder):
    """Returns the sessions that are being recorded."""
    done = subprocess.run([rig.program, "list", "--json"], env=rig.environment(folder, {}), capture_output=True, check=True)
    return [session for session in json.loads(done.stdout)["sessions"] if session["state"] == "recording"]


def shows_what_is_held_and_gives_the_terminal_back(rig, folder):
    with held(rig, folder) as process, terminal(rig, folder, "--interval 0.2") as screen:
        text = screen.until("96.0 MiB")
        lines = text.splitlines()
        assert lines[0].startswith("gpumemtrace top: 96.0 MiB in 1 process"), lines[0]
        assert len(lines) == 24 and max(map(len, lines)) <= 80, text
        assert str(process.pid) in text and "driver" in text, text
        assert "q quit" in lines[-1], text
        screen.type("q")
        screen.until("gpumemtrace top:", absent=True)
        screen.type("echo alive-$((40+2))", "Enter")
        screen.until("alive-42")


def every_key_does_what_help_says(rig, folder):
    with held(rig, folder), terminal(rig, folder, "--interval 0.2") as screen:
        screen.until("Take (hold")
        screen.type("?")
        screen.until("choose a stack")
        screen.type("x")
        screen.until("Take (hold")
        for order in ("by growth", "by rate", "by live"):
            screen.type("s")
            screen.until(order)
        screen.type("Enter")
        screen.until("main (hold.cc")
        screen.type("Escape")
        screen.type("/")
        screen.type("nowhere")
        screen.until("no stack has that text")
        screen.type("Escape")
        screen.until("Take (hold")
        screen.type("f")
        screen.until("FROZEN")
        screen.type("f")
        screen.until("FROZEN", absent=True)
        screen.type("p")
        screen.until("snapshot/")
        screen.type("m")
        screen.until("name of the mark:")
        screen.type("here", "Enter")
        screen.until('mark "here" is in the recording of')
        screen.type("q")
        screen.until("gpumemtrace top:", absent=True)
    recording = recording_rig.Recording(rig, folder, None)
    wait_for("the end of the recording", lambda: recording.info(folder / "one.gmt")["complete"])
    events = recording.events(folder / "one.gmt")
    assert any(e["kind"] == "mark" and e["name"] == "here" for e in events), "the mark is not in the recording"
    assert recording.info(folder / "one.gmt")["snapshots"], "no snapshot"


def what_is_frozen_stays(rig, folder):
    with terminal(rig, folder, "--interval 0.2") as screen, held(rig, folder, "one", 64):
        screen.until("64.0 MiB in 1 process")
        screen.type("f")
        screen.until("FROZEN")
        with held(rig, folder, "two", 32):
            wait_for("both collectors", lambda: len(listed(rig, folder)) == 2)
            let_pass(1)  # five refresh intervals
            screen.type("?")
            screen.until("choose a stack")  # it still reacts to keys
            screen.type("x")
            assert "64.0 MiB in 1 process" in screen.until("choose a stack", absent=True)
            screen.type("f")
            screen.until("96.0 MiB in 2 processes")


def follows_a_resize(rig, folder):
    with held(rig, folder), terminal(rig, folder, "--interval 0.2") as screen:
        screen.until("96.0 MiB")
        for columns, rows in ((120, 40), (60, 12), (80, 24)):
            screen.tmux("resize-window", "-x", str(columns), "-y", str(rows))
            lines = []

            def fits():
                nonlocal lines
                lines = screen.text().splitlines()
                return len(lines) == rows and "q quit" in lines[-1][:columns]

            wait_for(lambda: f"{columns}x{rows}:\n" + "\n".join(lines), fits, pause_s=0.05)
            assert max(map(len, lines)) <= columns


def processes_come_and_go(rig, folder):
    with terminal(rig, folder, "--interval 0.2") as screen:
        screen.until("No process is being recorded")
        with held(rig, folder, "one", 64) as one:
            screen.until("64.0 MiB in 1 process")
            with held(rig, folder, "two", 32) as two:
                screen.until("96.0 MiB in 2 processes")
                screen.type("Tab")
                screen.until(f"STACK of {max(one.pid, two.pid)}")
            screen.until("two.gmt")  # the path of its recording
            assert "64.0 MiB" in screen.text()


def a_collector_that_comes_back_is_followed(rig, folder):
    with held(rig, folder) as process, terminal(rig, folder, "--interval 0.2") as screen:
        screen.until("96.0 MiB")
        os.kill(next(s["collector_pid"] for s in listed(rig, folder) if s["pid"] == process.pid), signal.SIGKILL)
        screen.until("its collector does not answer")
        with subprocess.Popen([rig.program, "collect", str(process.pid), "-o", str(folder / "again.gmt")],
                              env=rig.environment(folder, {}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as again:
            screen.until("its collector does not answer", absent=True)
            assert "96.0 MiB" in screen.text()
            process.kill()
            again.wait()
        screen.until("again.gmt")


def printed_once_for_programs(rig, folder):
    environment = rig.environment(folder, {})
    with held(rig, folder) as process:
        done = subprocess.run(
            [rig.program, "top", "--json", str(process.pid)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        out = json.loads(done.stdout)
        schema = pathlib.Path(__file__).resolve().parents[3] / "docs" / "schemas" / "top.schema.json"
        jsonschema.validate(out, json.loads(schema.read_text()))
        (row,) = out["processes"]
        assert row["pid"] == process.pid
        assert sum(heap["live_bytes"] for heap in row["heaps"]) == HOLD_MIB << 20, row["heaps"]
        assert sum(stack["bytes"] for stack in row["stacks"]) == HOLD_MIB << 20, row["stacks"]
        plain = subprocess.run([rig.program, "top"], env=environment, capture_output=True, text=True)
        assert plain.returncode == 0 and "Take (hold.cc" in plain.stdout, plain.stdout + plain.stderr
    for words, code in ((["999999999"], 1), (["nonsense"], 2), (["--interval", "0"], 2)):
        done = subprocess.run([rig.program, "top", *words], env=environment, capture_output=True, text=True)
        assert done.returncode == code and done.stderr, f"{words}: {done.returncode}: {done.stderr}"


def stopped_collector_delays_no_other(rig, folder):
    with held(rig, folder) as process, terminal(rig, folder, "--interval 0.2") as screen:
        screen.until("96.0 MiB")
        collector = next(s["collector_pid"] for s in listed(rig, folder) if s["pid"] == process.pid)
        os.kill(collector, signal.SIGSTOP)
        try:
            screen.type("?")
            screen.until("choose a stack")
            screen.type("x")
            screen.until("96.0 MiB")
        finally:
            os.kill(collector, signal.SIGCONT)


CASES = [
    shows_what_is_held_and_gives_the_terminal_back,
    every_key_does_what_help_says,
    what_is_frozen_stays,
    follows_a_resize,
    processes_come_and_go,
    a_collector_that_comes_back_is_followed,
    printed_once_for_programs,
    stopped_collector_delays_no_other,
]


def run_alone():
    """Runs this check again where no other process is visible, since `top` lists all that are recorded. Does nothing
    there, and without the right to do so."""
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    alone += ["sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
    variable = "GMT_TOP_CHECK_IS_ALONE"
    if variable in os.environ or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        return
    environment = {**os.environ, variable: "1"}
    environment.pop("XDG_RUNTIME_DIR", None)
    sys.exit(subprocess.run([*alone, sys.executable, *sys.argv], env=environment, check=False).returncode)


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        sys.exit("tmux is missing: run scripts/setup --test")
    run_alone()
    sys.exit(recording_rig.main_of_cases([(case.__name__, case) for case in CASES], __doc__, torch=False))
