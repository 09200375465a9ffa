"""Kills around a process that is attached to: of the process, its collector, attaching clients, or clients of the control
socket, each at a random instant, during rounds of attach and detach. Recordings rotate by size, leaks are watched, and two
clients subscribe, one of which never reads.

The process must continue and must be attachable again, and every recording that was started must be readable and contain
what happened while it was made (windows.py).
"""

import json
import os
import pathlib
import subprocess
import sys

import windows
from waiting import HANG_S, let_pass, wait_for

LIMITS = ("--max-size", "16MiB", "--rotate", "128", "--max-time", "60s")  # parts of 128 KiB
THREADS = 2
ATTACH_WANTED, ATTACH_NOW = 4096 + 2436, 4096 + 2440  # session/layout.h, Control

# subscribe(TOP or LEAKS, every 100 ms), then read forever or never.
CLIENT = """
import signal, socket, sys
path, what, reads = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "reads"
client = socket.socket(socket.AF_UNIX)
client.connect(path)
payload = bytes([0x08, what, 0x10, 100])
request = bytes([0x08, 1, 0x10, 1, 0x3A, len(payload)]) + payload
client.sendall(len(request).to_bytes(4, "little") + request)
print("asked", flush=True)
while client.recv(65536) if reads else not signal.pause():
    pass
"""


class Scene:
    """A process that is attached to, and all clients around it."""

    def __init__(self, trial, chance):
        self.trial, self.chance = trial, chance
        self.attacher, self.clients, self.count = None, [], 0
        self.whole = []  # recordings reported as complete by a detach
        self.is_injected = chance.random() < 0.5  # each attach injects the library into a program started without it
        trial.environment["GPUMEMTRACE"] = "dormant"
        # A process that is always inside the driver leaves no moment for an injection.
        pause = ("--pause", 100) if self.is_injected else ()
        trial.start("--count", 100000000, "--live", 200, *pause, preload=not self.is_injected)
        log = trial.folder / "log"
        wait_for("a call", lambda: log.exists() and log.stat().st_size if self.is_injected else trial.session())

    @property
    def pid(self):
        return self.trial.target.pid

    def begin(self, watches):
        """Starts an attach and returns at once."""
        self.count += 1
        words = [self.trial.program, "attach", str(self.pid), *LIMITS]
        words += [] if self.is_injected else ["--method", "dormant"]
        words += ["-o", f"run{self.count}.gmt", *(["--watch", "10m"] if watches else [])]
        self.attacher = subprocess.Popen(
            words, env=self.trial.environment, cwd=self.trial.folder, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )

    def slow_down(self):
        for task in os.listdir(f"/proc/{self.pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(task), 19)

    def await_request(self):
        """Waits until an attach is requested and not yet started, or until the attaching client has given up."""
        while self.attacher.poll() is None:
            if self.trial.word(ATTACH_WANTED, "=I") != 0 and self.trial.word(ATTACH_NOW, "=I") == 0:
                return

    def listen(self):
        """Starts the clients, if there is a socket already."""
        for path in self.trial.sessions.glob("*.sock"):
            for what, how in (("2", "reads"), ("1", "never")):
                self.clients.append(subprocess.Popen(
                    [sys.executable, "-c", CLIENT, str(path), what, how],
                    env=self.trial.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                ))

    def kill_clients(self):
        for client in self.clients:
            client.kill()
            client.communicate()
        killed, self.clients = len(self.clients), []
        return killed

    def kill_attacher(self):
        self.attacher.kill()
        return self.attacher.communicate()[0]

    def collectors(self):
        others = {self.pid, self.attacher.pid, *(client.pid for client in self.clients)}
        return [pid for pid in self.trial.collectors() if pid not in others]

    def detach(self):
        """Returns whether there was an attach to end. The recording that it names is complete."""
        done = self.trial.verb("detach", self.pid)
        self.whole += [pathlib.Path(line).name for line in done.stdout.splitlines()]
        return done.returncode == 0

    def attach_and_detach(self):
        """Attaching works again, whatever was killed, as soon as the process has made its next call."""
        output = ""

        def is_attached():
            nonlocal output
            self.begin(watches=False)
            output, _ = self.attacher.communicate(timeout=HANG_S)
            return self.attacher.returncode == 0 or self.detach() and False

        wait_for(lambda: f"an attach: {output}", is_attached)
        let_pass(self.chance.uniform(0, 0.05))
        assert self.detach() and self.whole[-1] == f"run{self.count}.gmt", self.whole


# ---- Victims ------------------------------------------------------------------------------------


def the_target(scene):
    scene.trial.kill_target()


def the_collector(scene):
    scene.trial.kill(scene.collectors())
    scene.attach_and_detach()


def attaching_client(scene):
    scene.kill_attacher()
    scene.detach()
    scene.attach_and_detach()


def attaching_client_while_it_begins(scene):
    """With little CPU time the process needs long for this: the next attach may come before it has detached from this
    one."""
    attaching_client(scene)
    scene.slow_down()
    scene.begin(watches=False)
    scene.await_request()
    attaching_client(scene)


def clients_again_and_again(scene):
    for _ in range(5):
        scene.listen()
        let_pass(scene.chance.uniform(0, 0.06))
        scene.trial.clients += scene.kill_clients()
    scene.kill_attacher()
    scene.detach()


def target_and_collector(scene):
    victims = [scene.pid, *scene.collectors()]
    scene.chance.shuffle(victims)
    scene.trial.kill(victims)
    scene.trial.target.wait()


def all_processes(scene):
    victims = [scene.pid, scene.attacher.pid, *scene.collectors(), *(c.pid for c in scene.clients)]
    scene.chance.shuffle(victims)
    scene.trial.kill(victims)
    scene.trial.target.wait()


WAYS = (
    the_target, the_collector, attaching_client, attaching_client_while_it_begins, clients_again_and_again, target_and_collector,
    all_processes,
)


# ---- A trial ------------------------------------------------------------------------------------


def collect_what_waits(trial):
    """Collects orphaned sessions; other files of a dead process are removed by the next collector."""
    wait_for("the end of the collectors", lambda: not trial.processes())

    def sessions():
        listed = json.loads(trial.verb("list", "--json").stdout)["sessions"]
        return [session for session in listed if session["path"].startswith(str(trial.sessions))]

    # A killed process has no environment to identify it by, and keeps its locks until it is
    # completely dead.
    wait_for("the release of locks", lambda: all(session["state"] != "recording" for session in sessions()))
    for session in sessions():
        if session["state"] == "orphaned":
            done = trial.verb("collect", session["path"], "-o", "collected.gmt")
            assert done.returncode == 0, done.stderr
    last = trial.start_another("--count", "1")
    assert last.wait(timeout=HANG_S) == 0
    wait_for("the end of its collector", lambda: not trial.processes())
    left = list(trial.sessions.iterdir())
    assert left == [], left


def check_recordings(trial, tally, whole):
    want = trial.truth()
    for path in sorted(trial.folder.glob("*.gmt")):
        if ".part-" in path.name or path.name == "last.gmt":
            continue
        found = trial.read(path)
        if found is None:
            assert path.name not in whole, f"{path.name} is empty"
            tally["killed before their first chunk"] += 1
            continue
        info, lines = found
        assert info["complete"] or path.name not in whole, f"{path.name} is not complete"
        tally["lost"] += windows.check(want, info, lines, THREADS)
        tally["recordings"] += 1
        tally["complete"] += info["complete"]
        tally["parts"] += (info.get("history") or {}).get("files", 1)
        tally["events"] += info["losses"]["delivered"]


def attached(trial, chance, tally):
    way = chance.choice(WAYS)
    scene = Scene(trial, chance)
    for _ in range(chance.choice((0, 0, 1, 2))):
        scene.attach_and_detach()
        tally["rounds before"] += 1
    scene.begin(watches=chance.random() < 0.5)
    let_pass(chance.uniform(0, 0.1))
    scene.listen()
    let_pass(chance.uniform(0, 0.15))
    way(scene)
    trial.kill_target()
    trial.clients += scene.kill_clients()
    scene.attacher.communicate(timeout=HANG_S)
    collect_what_waits(trial)
    check_recordings(trial, tally, scene.whole)
    tally[f"killed {way.__name__}"] += 1
    tally["library injected" if scene.is_injected else "dormant"] += 1
    tally["clients"] += trial.clients
