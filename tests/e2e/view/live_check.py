#!/usr/bin/env python3
"""Tests `gpumemtrace view --live` from outside: which processes it follows, what it refuses, and
what it answers while a program runs. The page's side is tested in viewer/page/e2e/live_test.ts.

Usage: live_check.py --build DIR [NAME...]
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as recording_rig  # noqa: E402
from waiting import HANG_S, wait_for  # noqa: E402

MIB = 1 << 20


class RecordedProgram:
    """A recorded program that allocates and frees memory on command."""

    def __init__(self, rig, folder, name, options=""):
        environment = rig.environment(
            folder,
            {"LD_PRELOAD": rig.library(), "GPUMEMTRACE": f"quiet,output={folder}/{name}.gmt{options}"},
        )
        self.process = subprocess.Popen(
            rig.simulated(rig.built("memory_commands")), env=environment, cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        assert self.process.stdout.readline().startswith("ready "), "it did not begin"
        self.ask = [rig.program, "status", str(self.pid)]
        self.environment = {k: v for k, v in environment.items() if k != "LD_PRELOAD"}
        wait_for("its collector", self.collector_answers)

    def collector_answers(self):
        done = subprocess.run(self.ask, env=self.environment, capture_output=True, check=False)
        return done.returncode == 0

    def backlog(self):
        """Returns the number of events that its collector has not read yet."""
        done = subprocess.run([*self.ask, "--json"], env=self.environment, capture_output=True, check=True)
        return json.loads(done.stdout)["losses"]["backlog"]

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        """Kills the program; its collector then completes the recording and ends."""
        self.process.kill()
        self.process.wait()
        wait_for("its collector's end", lambda: not self.collector_answers())

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=HANG_S)


@contextlib.contextmanager
def recorded(rig, folder, name="run", options=""):
    program = RecordedProgram(rig, folder, name, options)
    try:
        yield program
    finally:
        program.kill()


class LiveView:
    """A `gpumemtrace view --live` process and its answers."""

    def __init__(self, rig, folder, *words):
        self.process = subprocess.Popen(
            [rig.program, "view", "--no-browser", "--keep", "--live", *map(str, words)],
            env=rig.environment(folder, {}), cwd=folder, text=True, stdout=subprocess.PIPE,
        )
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.url

    def ask(self, question):
        with urllib.request.urlopen(f"{self.url}api/{question}", timeout=HANG_S) as answer:
            return json.loads(answer.read())

    def until(self, question, holds):
        answer = {}

        def holds_now():
            nonlocal answer
            answer = self.ask(question)
            return holds(answer)

        wait_for(lambda: json.dumps(answer)[:3000], holds_now)
        return answer

    def until_held(self, held, file=0):
        def holds(meta):
            lanes = meta["files"][file]["lanes"]
            return (lanes[0]["end_bytes"] if lanes else 0) == held
        return self.until("meta", holds)["files"][file]


@contextlib.contextmanager
def live_view(rig, folder, *words):
    view = LiveView(rig, folder, *words)
    try:
        yield view
    finally:
        view.process.send_signal(signal.SIGTERM)
        view.process.wait(timeout=HANG_S)


def refused(rig, folder, *words, code=1):
    done = subprocess.run(
        [rig.program, "view", "--no-browser", *map(str, words)], env=rig.environment(folder, {}),
        cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=False,
    )
    assert done.returncode == code, f"{done.returncode}: {done.stderr}"
    return done.stderr


def is_alone(rig, folder):
    """Returns whether no other process of this user is being recorded: `view --live` would offer it."""
    listed = subprocess.run([rig.program, "list", "--json"], env=rig.environment(folder, {}), capture_output=True, check=True)
    sessions = json.loads(listed.stdout)["sessions"]
    if sessions:
        print(f"       ({len(sessions)} other processes are being recorded: not all is checked)")
    return not sessions


def process_it_cannot_follow_is_reported_with_a_remedy(rig, folder):
    if is_alone(rig, folder):
        assert "gpumemtrace run" in refused(rig, folder, "--live")
    assert "there is no process 999999999" in refused(rig, folder, "--live", 999999999)
    stderr = refused(rig, folder, "--live", os.getpid())
    assert "has no session" in stderr and f"gpumemtrace attach {os.getpid()}" in stderr, stderr
    assert "--live" in refused(rig, folder, code=2)
    with recorded(rig, folder, "one") as one, recorded(rig, folder, "two") as two:
        stderr = refused(rig, folder, "--live")
        assert " processes are being recorded" in stderr, stderr
        assert f"  {one.pid}  " in stderr and f"  {two.pid}  " in stderr, stderr


def only_process_needs_no_name(rig, folder):
    if not is_alone(rig, folder):
        return
    with recorded(rig, folder) as program, live_view(rig, folder) as view:
        assert program.say(f"take {MIB}")[0] == "took"
        file = view.until_held(MIB)
        assert file["pid"] == program.pid and file["live"]["window"] == 0, file["live"]


def several_processes_are_files_of_one_page(rig, folder):
    with recorded(rig, folder, "one") as one, recorded(rig, folder, "two") as two:
        with live_view(rig, folder, one.pid, two.pid) as view:
            one.say(f"take {MIB}")
            two.say(f"take {2 * MIB}")
            view.until_held(MIB, 0)
            view.until_held(2 * MIB, 1)


def each_answer_is_of_its_moment(rig, folder):
    with recorded(rig, folder) as program, live_view(rig, folder, program.pid) as view:
        held = []
        for n in range(1, 21):
            if n % 3 == 0:
                program.say(f"give {held.pop(0)[0]}")
            held.append((program.say(f"take {n * 4096}")[1], n * 4096))
            total = sum(size for _, size in held)
            file = view.until_held(total)
            window, lane = file["live"]["window"], file["lanes"][0]["lane"]
            scope = f"file=0&window={window}&lane={lane}&of=live&from=0&to={file['events']}"
            table = view.ask(f"table?{scope}&by=block&sort=bytes&offset=0&limit=100")
            assert table["total_bytes"] == total and table["total_blocks"] == len(held), table
        answer = view.ask("answer?file=0&name=report")
        assert answer["json"]["rows"][0]["count"] == len(held), answer["headline"]


def recording_in_parts_is_followed_over_their_change(rig, folder):
    with recorded(rig, folder, options=",max_size=16MiB") as program, live_view(rig, folder, program.pid) as view:
        program.say(f"take {MIB}")

        def next_part():
            program.say("pass 20000 4096")
            wait_for("the collector to have read that", lambda: program.backlog() == 0)
            return list(folder.glob("run.part-*.gmt"))

        wait_for("the end of a part", next_part)
        program.say(f"take {2 * MIB}")
        file = view.until_held(3 * MIB)
        assert not file["losses"], file["losses"]
        events = file["events"] + file["live"]["dropped_events"]
        assert events % 2 == 0, "each passing block must have been allocated and freed"


def end_is_reported(rig, folder):
    with recorded(rig, folder) as program, live_view(rig, folder, program.pid) as view:
        program.say(f"take {MIB}")
        view.until_held(MIB)
        program.end()
        progress = view.until("progress", lambda p: p["files"][0]["live"]["state"] == "ended")
        assert f"process {program.pid} has ended" in progress["files"][0]["live"]["words"], progress
        assert view.ask("answer?file=0&name=report")["headline"]


def another_collector_is_followed(rig, folder):
    with recorded(rig, folder) as program, live_view(rig, folder, program.pid) as view:
        program.say(f"take {MIB}")
        view.until_held(MIB)
        listed = subprocess.run([rig.program, "list", "--json"], env=rig.environment(folder, {}),
                                capture_output=True, text=True, check=True)
        sessions = json.loads(listed.stdout)["sessions"]
        os.kill(next(s["collector_pid"] for s in sessions if s["pid"] == program.pid), signal.SIGKILL)
        view.until("progress", lambda p: p["files"][0]["live"]["state"] == "lost")
        collect = subprocess.Popen([rig.program, "collect", str(program.pid)], cwd=folder,
                                   env=rig.environment(folder, {}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            view.until("progress", lambda p: p["files"][0]["live"]["state"] == "following")
            program.say(f"take {2 * MIB}")
            file = view.until_held(3 * MIB)
            assert file["live"]["window"] > 0, file["live"]
        finally:
            program.end()
            collect.wait(timeout=HANG_S)


def requests_are_checked_as_usual(rig, folder):
    with recorded(rig, folder) as program, live_view(rig, folder, program.pid) as view:
        program.say(f"take {MIB}")
        view.until_held(MIB)
        assert view.ask("moved?file=0&from=0&to=0&row=0")["row"] == 0
        assert view.ask("moved?file=0&from=9&to=0&row=0")["row"] == 0xFFFFFFFF
        for wrong in ("moved?file=1&from=0&to=0&row=0", "moved?file=0&from=x&to=0&row=0", "meta?window=0",
                      "moved?file=0&from=0&row=0", "block?file=0&row=0&window=-1"):
            try:
                view.ask(wrong)
                raise AssertionError(f"{wrong} was answered")
            except urllib.error.HTTPError as refusal:
                assert refusal.code == 400, f"{wrong}: {refusal.code}"
        try:
            view.ask("block?file=0&row=0&window=9")
            raise AssertionError("a window that does not exist got an answer")
        except urllib.error.HTTPError as refusal:
            assert "no longer kept" in refusal.read().decode(), refusal.code


CASES = [
    process_it_cannot_follow_is_reported_with_a_remedy,
    only_process_needs_no_name,
    several_processes_are_files_of_one_page,
    each_answer_is_of_its_moment,
    recording_in_parts_is_followed_over_their_change,
    end_is_reported,
    another_collector_is_followed,
    requests_are_checked_as_usual,
]


if __name__ == "__main__":
    sys.exit(recording_rig.main_of_cases([(case.__name__, case) for case in CASES], __doc__, torch=False))
