"""Simulates the attaching client of a session (session/attach.h): sets the words of its control page, and runs the
collector that records.
"""

import fcntl
import json
import mmap
import os
import pathlib
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import HANG_S, wait_for  # noqa: E402

CONTROL = 4096
# Offsets in the control page (session/layout.h).
GATE, WANTED, NOW, ERRNO, REFUSED, LAST = 2432, 2436, 2440, 2444, 2448, 2452
COLLECTOR_PID = 256
BEGIN_NS, OPTIONS_SIZE, OPTIONS = 2464, 2600, 2604
REQUESTED = 1 << 31  # set in every attach number


class AttachGate:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.page = mmap.mmap(self.fd, 4096, offset=CONTROL)

    def close(self):
        self.page.close()
        os.close(self.fd)

    def word(self, offset):
        return struct.unpack_from("<I", self.page, offset)[0]

    def quad(self, offset):
        return struct.unpack_from("<Q", self.page, offset)[0]

    def set(self, offset, value):
        struct.pack_into("<I", self.page, offset, value)

    def request_attach(self, options=""):
        """Requests an attach while holding the lock, like an attaching client. Returns the number of the attach."""
        fcntl.flock(self.fd, fcntl.LOCK_EX)
        assert self.word(WANTED) == 0 and self.word(NOW) == 0
        text = options.encode()
        self.page[OPTIONS : OPTIONS + len(text)] = text
        self.set(OPTIONS_SIZE, len(text))
        number = max(self.word(LAST), self.word(REFUSED)) + 1 | REQUESTED
        self.set(WANTED, number)
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        return number

    def withdraw(self):
        self.set(WANTED, 0)

    def wait_begun(self, number):
        wait_for("the recording to begin", lambda: self.word(NOW) == number)

    def wait_ended(self):
        wait_for("the recording to end", lambda: self.word(NOW) == 0)

    def blocks(self):
        return os.fstat(self.fd).st_blocks


def find_gate(folder, pid=None):
    """Waits for the session with an attach gate in that directory and returns it."""
    found = []

    def look():
        found[:] = [
            p for p in folder.glob("*.session") if pid is None or p.name.startswith(f"{pid}-")
        ]
        return len(found) == 1

    wait_for("the dormant session", look)
    return AttachGate(found[0])


class Collector:
    """gpumemtrace-collector --session FILE --output FILE."""

    def __init__(self, build, session, output):
        self.output = pathlib.Path(output)
        self.process = subprocess.Popen(
            [build / "bin" / "gpumemtrace-collector", "--session", session, "--output", output],
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self):
        _, self.errors = self.process.communicate(timeout=HANG_S)
        return self.process.returncode

    def wait_until_at_work(self, gate):
        wait_for("the collector", lambda: gate.word(COLLECTOR_PID) == self.process.pid)
        return self

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


class Load:
    """Runs tests/programs/attach_load and sends it commands."""

    def __init__(self, rig, folder, *options, **environment):
        self.folder = folder
        self.process = subprocess.Popen(
            rig.simulated(rig.built("attach_load", *map(str, options))),
            env=rig.environment(folder, environment),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = int(self.expect("ready").split()[1])

    def expect(self, word):
        line = self.process.stdout.readline()
        assert line.startswith(word), (line, self.process.poll(), word)
        return line

    def command(self, line, answer):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.expect(answer)

    def pause(self):
        """Stops all threads. Returns the held memory: (address, size, ns before, ns after the call)."""
        count = int(self.command("pause", "live").split()[1])
        return [tuple(map(int, self.process.stdout.readline().split())) for _ in range(count)]

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=HANG_S)
        return code, self.process.stderr.read()


def resources(pid):
    """Returns resources that must not grow: (descriptors, mappings, resident KiB, threads)."""
    proc = pathlib.Path(f"/proc/{pid}")
    descriptors = len(list((proc / "fd").iterdir()))
    mappings = len((proc / "maps").read_text().splitlines())
    status = (proc / "status").read_text()
    resident = int(next(x for x in status.splitlines() if x.startswith("VmRSS")).split()[1])
    return descriptors, mappings, resident, len(list((proc / "task").iterdir()))


def state_of(rig, folder, path):
    done = subprocess.run(
        [rig.program, "list", "--json"],
        env=rig.environment(folder, {}),
        capture_output=True,
        text=True,
        check=True,
    )
    for row in json.loads(done.stdout)["sessions"]:
        if row["path"] == str(path):
            return row["state"]
    return None
