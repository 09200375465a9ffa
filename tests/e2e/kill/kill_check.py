#!/usr/bin/env python3
"""Kills traced processes and their collectors at random instants, and checks the results.

Usage: kill_check.py --build DIR [--count N] [--stops N] [--attaches N] [--keep]

Each of --count trials (default 20) starts a program on the simulated device, waits for a random time (from before its first
GPU call until the middle of its work) and sends SIGKILL to the target, to its collector, or to both; or kills the collector
and lets `gpumemtrace collect` take over while the target lives. --stops trials (default 2) stop the collector until the ring
has wrapped around several times. Afterwards every recording must be readable and agree with the device's log (verdict.py),
an orphaned session must be collectable, and nothing may be left: no process, no session, no other file. --attaches trials
(default 6) attach to the program and kill one of the processes involved (attached.py).

The options give the number of trials per seed (tests/seeds/seeds.py). --keep leaves the directory of a failed trial. The
last line of the output is "N passed, N failed".
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import traceback

import attached
import verdict
from waiting import HANG_S, let_pass, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

TAIL, COLLECTOR_PID = 4096, 4096 + 256  # session/layout.h, Control
THREADS = 2
SMALL_RING = 2048  # slots


class Trial:
    """A traced process in its own directory."""

    def __init__(self, build, folder, options=""):
        self.build, self.folder = build, folder
        self.program = str(build / "bin" / "gpumemtrace")
        self.sessions = folder / "sessions"
        self.sessions.mkdir(mode=0o700)
        self.mark = f"GMT_KILL_TRIAL={folder}"
        self.environment = {
            **os.environ,
            "GMT_KILL_TRIAL": str(folder),
            "SIMCUDA_LOG": str(folder / "log"),
            "GPUMEMTRACE_DIR": str(self.sessions),
            "GPUMEMTRACE": f"output={folder}/run.gmt,quiet{options}",
        }
        self.target, self.clients = None, 0

    def start(self, *options, preload=True):
        self.target = self.launch(self.environment, *options, preload=preload)

    def start_another(self, *options):
        """Starts a program recorded to last.gmt; its collector cleans up after the others."""
        more = {"GPUMEMTRACE": f"output={self.folder}/last.gmt,quiet", "SIMCUDA_LOG": "/dev/null"}
        return self.launch({**self.environment, **more}, *options)

    def launch(self, environment, *options, preload=True):
        library = {"LD_PRELOAD": str(self.build / "lib" / "libgpumemtrace.so")} if preload else {}
        command = [self.build / "simcuda" / "with-simcuda"]
        command += [self.build / "tests" / "programs" / "driver_alloc", "--threads", THREADS]
        return subprocess.Popen(
            list(map(str, [*command, *options])),
            env={**environment, **library},
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    def session(self):
        return next(iter(self.sessions.glob("*.session")), None)

    def word(self, offset, form):
        session = self.session()
        try:
            with open(session or "", "rb") as file:
                file.seek(offset)
                return struct.unpack(form, file.read(struct.calcsize(form)))[0]
        except (OSError, struct.error):
            return 0

    def processes(self):
        """Returns all processes with this trial's mark in their environment."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def collectors(self):
        own = {self.target.pid, os.getpid()}
        return [pid for pid in self.processes() if pid not in own]

    def kill(self, pids, how=signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass

    def kill_target(self):
        self.target.kill()
        self.target.wait()

    def verb(self, *words):
        return subprocess.run(
            [self.program, *map(str, words)], env=self.environment, cwd=self.folder,
            capture_output=True, text=True, timeout=HANG_S, check=False,
        )

    def read(self, path):
        """Returns (info, lines), or None if the file ended before its first complete chunk."""
        info = self.verb("info", "--json", path)
        if info.returncode != 0:
            assert "nothing was recorded" in info.stderr, info.stderr
            return None
        events = self.verb("cat", "--json", path)
        assert events.returncode == 0, events.stderr
        return json.loads(info.stdout), [json.loads(line) for line in events.stdout.splitlines()]

    def truth(self):
        log = self.folder / "log"
        if not log.exists():
            return []
        # A write across a page boundary can be cut by the kill: the call was still in progress.
        whole = log.read_bytes().rpartition(b"\n")[0]
        log.write_bytes(whole + b"\n" if whole else b"")
        return verdict.truth.expected(log, self.target.pid)


# ---- Faults -------------------------------------------------------------------------------------


def kill_the_target(trial, _):
    trial.kill_target()


def kill_the_collector(trial, chance):
    trial.kill(trial.collectors())
    let_pass(chance.uniform(0, 0.03))
    trial.kill_target()


def kill_both(trial, chance):
    victims = [trial.target.pid, *trial.collectors()]
    chance.shuffle(victims)
    trial.kill(victims)
    trial.target.wait()


def take_over(trial, chance):
    """The collector dies, another one takes over, then the target dies."""
    victims = trial.collectors()
    trial.kill(victims)
    wait_for("the collector's death", lambda: not set(victims) & set(trial.processes()))
    session = trial.session()
    if session is None:  # there is no session yet, or its process has already ended
        trial.kill_target()
        return
    collecting = subprocess.Popen(
        [trial.program, "collect", str(session), "-o", "taken.gmt"], env=trial.environment,
        cwd=trial.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    let_pass(chance.uniform(0, 0.15))
    trial.kill_target()
    _, output = collecting.communicate(timeout=HANG_S)
    # One that was only about to start when its like were killed may have been there first, or have
    # done it all.
    first = ("already recording it", "another collector", "No such file")
    assert collecting.returncode == 0 or any(words in output for words in first), output


WAYS = (kill_the_target, kill_the_collector, kill_both, take_over)


def wait_for_the_instant(trial, chance):
    if chance.random() < 0.3:  # during its start
        let_pass(chance.uniform(0, 0.08))
        return
    wait_for("a session", trial.session)
    let_pass(chance.uniform(0, 0.12))


# ---- Requirements -------------------------------------------------------------------------------


def collect_what_waits(trial):
    """Waits for active collectors to finish, and collects orphaned sessions."""
    here = []

    def nothing_is_recording():
        if trial.processes():  # check this first: sessions listed while a collector ends may disappear
            return False
        listed = json.loads(trial.verb("list", "--json").stdout)["sessions"]
        here[:] = [s for s in listed if s["path"].startswith(str(trial.sessions))]
        # A process that was just becoming a collector had no environment to identify it by; it has
        # now, or has ended.
        if trial.processes() or not all(pathlib.Path(s["path"]).exists() for s in here):
            return False
        return all(s["state"] != "recording" for s in here)

    wait_for("the end of the collector", nothing_is_recording)
    for session in here:
        # "collected": the collector was killed between finishing the file and removing the session.
        assert session["state"] in ("orphaned", "collected"), session
        done = trial.verb("collect", session["pid"], "-o", "collected.gmt")
        assert done.returncode == 0, done.stderr
    return bool(here)


def check_nothing_is_left(trial):
    assert trial.processes() == [], trial.processes()
    assert list(trial.sessions.iterdir()) == [], list(trial.sessions.iterdir())
    known = {"log", "run.gmt", "collected.gmt", "taken.gmt", "sessions"}
    left = {path.name for path in trial.folder.iterdir()} - known
    assert not left, left


def check_recordings(trial, tally):
    """Complete recordings contain everything, others a beginning. Returns the number of checked events."""
    want, complete = trial.truth(), 0
    for name in ("run.gmt", "taken.gmt", "collected.gmt"):
        path = trial.folder / name
        if not path.exists():
            continue
        found = trial.read(path)
        if found is None:
            assert name == "run.gmt", f"{name} is empty"
            continue
        info, lines = found
        if info["complete"]:
            complete += 1
            tally["lost"] += verdict.check_complete(want, lines, info, THREADS)
        else:
            assert name == "run.gmt", f"{name} is not complete"
            verdict.check_cut(want, lines, THREADS)
    # A process is not recorded before its session exists; it is then in its first call.
    assert complete >= 1 or len(want) <= THREADS, f"{len(want)} calls, {complete} recordings"
    tally["events"] += len(want)
    tally["recordings"] += complete
    tally["before the session"] += complete == 0


def killed(trial, chance, tally):
    way = chance.choice(WAYS)
    trial.start("--count", 100000000)
    wait_for_the_instant(trial, chance)
    way(trial, chance)
    tally["collected later"] += collect_what_waits(trial)
    check_nothing_is_left(trial)
    check_recordings(trial, tally)
    tally[way.__name__] += 1


def stopped(trial, chance, tally):
    """A collector is stopped for several laps of the ring while its process works."""
    trial.start("--count", 20000, "--leak", 5)
    wait_for("a collector", lambda: trial.word(COLLECTOR_PID, "=I") != 0)
    let_pass(chance.uniform(0, 0.02))
    trial.kill([trial.target.pid], signal.SIGSTOP)  # so that it does not end before its collector is stopped
    collectors = trial.collectors()
    trial.kill(collectors, signal.SIGSTOP)
    trial.kill([trial.target.pid], signal.SIGCONT)
    goal = trial.word(TAIL, "=Q") + 3 * SMALL_RING
    wait_for("three laps", lambda: trial.word(TAIL, "=Q") >= goal)
    trial.kill(collectors, signal.SIGCONT)
    assert trial.target.wait(HANG_S) == 0
    wait_for("the end of the collector", lambda: not trial.processes())
    check_nothing_is_left(trial)
    info, lines = trial.read(trial.folder / "run.gmt")
    lost = verdict.check_complete(trial.truth(), lines, info, 0)
    assert lost >= SMALL_RING, f"only {lost} events lost: the collector was not stopped"
    exits = [s for s in info["snapshots"] if s["name"] == "exit"]
    assert exits[0]["exact"] and exits[0]["allocations"] == 5 * THREADS, exits
    tally["events"] += len(trial.truth())
    tally["lost"] += lost
    tally["stopped"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--stops", type=int, default=2)
    parser.add_argument("--attaches", type=int, default=6)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    tally, run, failed = collections.Counter(), 0, 0
    trials = [(killed, "")] * args.count + [(stopped, f",ring={SMALL_RING * 64}")] * args.stops
    trials += [(attached.attached, "")] * args.attaches
    for seed in seeds(1):
        for number, (what, options) in enumerate(trials):
            chance = random.Random(seed * 1000003 + number)
            folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm", prefix="gmt-kill."))
            trial = Trial(args.build.resolve(), folder, options)
            try:
                what(trial, chance, tally)
                kept = False
            except Exception:  # noqa: BLE001  one failing trial must not hide the others
                failed += 1
                kept = args.keep
                print(f"FAILED trial {number} ({folder})\n{traceback.format_exc()}", flush=True)
                trial.kill(trial.processes())
            if not kept:
                shutil.rmtree(folder)
        run += len(trials)
        if failed:
            break
    print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(tally.items())))
    print(f"{run - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
