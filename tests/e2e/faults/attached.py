"""Attaches to programs while faults occur in them.

The second mode of the checks in this directory (fault_check.py --mode attached). A program starts dormant, or without our
library, which `attach` then injects. When it requests an attach (use_gpu.h), `gpumemtrace attach --watch` attaches, the
recording is split into parts of 0.2 s, and two clients subscribe at its control socket, one of which never reads. With
--mode reattached, it is also detached from and attached to again until it ends.
"""

import contextlib
import os
import pathlib
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import wait_for  # noqa: E402

CHURN = 600  # allocations that a process makes immediately after an attach, all freed (use_gpu.h)
# Parts of 0.2 s, none of which is old enough to be deleted: their counts must add up.
LIMITS = ["--max-size", "64MiB", "--max-time", "120s", "--rotate", "600"]
LEAKS, TOP = 2, 1  # control.proto, Subscribe.What
STAYS = 0.05  # duration of a recording in seconds, in modes with several recordings
TO_THE_END = 600


def frame(message):
    return struct.pack("<I", len(message)) + message


def subscription(what):
    """Returns a Request of version 1 that subscribes to `what` every 100 ms."""
    subscribe = bytes([0x08, what, 0x10, 100])
    return frame(bytes([0x08, 1, 0x10, 1, 0x3A, len(subscribe)]) + subscribe)


class Clients:
    """Two clients per collector: one that reads its data, and one that never does."""

    def __init__(self):
        self.selector, self.deaf = selectors.DefaultSelector(), []
        self.read, self.connected = 0, 0

    def connect(self, path):
        for what in (LEAKS, TOP):
            client = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                client.connect(str(path))
                client.sendall(subscription(what))
                self.connected += 1
                if what == TOP:
                    self.deaf.append(client)
                    continue
                client.setblocking(False)
                self.selector.register(client, selectors.EVENT_READ)
                continue
            client.close()

    def serve(self):
        for key, _ in self.selector.select(timeout=0):
            piece = b""
            with contextlib.suppress(OSError):
                piece = key.fileobj.recv(1 << 16)
            self.read += len(piece)
            if not piece:
                self.selector.unregister(key.fileobj)
                key.fileobj.close()

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
        for client in self.deaf:
            client.close()


class Attach:
    """A `gpumemtrace attach` process and its output."""

    def __init__(self, place, pid, inner, is_first=True):
        self.place, self.pid, self.inner, self.is_first = place, pid, inner, is_first
        self.has_begun, self.stays = False, place.stays
        log = place.root / f"attach.{pid}.{time.monotonic_ns()}"
        self.out, self.err = (open(f"{log}.{name}", "w+") for name in ("out", "err"))
        command = [place.rig.program, "attach", str(pid), "-o", f"{place.out}/%p.gmt", *LIMITS]
        command += [] if place.is_injected else ["--method", "dormant"]
        if place.rig.mode == "reattached":
            script = f'"$@" && sleep {self.stays} && exec "$1" detach {pid}'
            command = ["sh", "-c", script, "sh", *command]
        else:
            command += ["--watch", "10m"]
        self.process = subprocess.Popen(
            [*place.attach_wrap, *command], env=place.environment_of_verbs(), cwd=place.root, stdout=self.out, stderr=self.err,
            start_new_session=True,
        )

    def output(self):
        return "".join(pathlib.Path(file.name).read_text() for file in (self.out, self.err))

    def look(self):
        """Returns whether the recording has started, or the process has given up."""
        has_ended = self.process.poll() is not None  # check this first: it may print and end between two polls
        self.has_begun = self.has_begun or "recording " in pathlib.Path(self.out.name).read_text()
        return self.has_begun or has_ended

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.out.close()
        self.err.close()


def process_of(place, inner):
    """Returns the pid, in our namespace, of the process of this place that has the pid `inner` in its own."""
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, StopIteration):
            lines = (proc / "status").read_text().splitlines()
            pids = next(line for line in lines if line.startswith("NSpid:")).split()
            mark = f"GMT_FAULT_ATTACH={place.wants}".encode()
            if int(pids[-1]) == inner and mark in (proc / "environ").read_bytes().split(b"\0"):
                return int(proc.name)
    return None


class Attacher:
    """Attaches to every process of a place that requests it, on a separate thread."""

    def __init__(self, place, again):
        self.place, self.again = place, again
        self.begun = 0
        self.refusals, self.last_words = [], []
        self.attaches, self.clients = [], Clients()
        self.problem, self.stopped = None, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while not self.stopped.is_set():
                self.look()
                self.stopped.wait(0.005)
        except Exception as error:  # noqa: BLE001  raised again in wait()
            self.problem = error

    def look(self):
        waiting = {attach.inner for attach in self.attaches if not attach.has_begun}
        for want in self.place.wants.iterdir():
            pid = None if int(want.name) in waiting else process_of(self.place, int(want.name))
            if pid is not None:
                self.attaches.append(Attach(self.place, pid, int(want.name)))
        for attach in list(self.attaches):
            had_begun = attach.has_begun
            if attach.look() and not had_begun:
                self.begins(attach)
            if attach.process.poll() is not None:
                self.ends(attach)
        self.clients.serve()

    def begins(self, attach):
        if attach.has_begun:
            self.begun += 1
            for path in self.sockets(attach):
                self.clients.connect(path)
        elif attach.is_first and "is already attached" not in attach.output():
            self.refusals.append(attach.output())  # not a refusal if the runtime was loaded again
        (self.place.wants / str(attach.inner)).unlink(missing_ok=True)

    def sockets(self, attach):
        name = f"{attach.inner}-*.session.sock"
        found = list(self.place.sessions.glob(name))
        root = pathlib.Path(f"/proc/{attach.pid}/root/dev/shm")
        with contextlib.suppress(OSError):
            found += root.glob(f"gpumemtrace-{os.geteuid()}/{name}")
        return found

    def ends(self, attach):
        # A caller that waits for the end of all attaches then reads last_words.
        output = attach.output()
        self.last_words.append(output)
        self.attaches.remove(attach)
        attach.close()
        if not self.again and attach.has_begun and attach.process.returncode not in self.place.attach_codes:
            raise AssertionError(f"attach ended with {attach.process.returncode}: {output}")
        retry = attach.has_begun or "has not detached from its last recording" in output
        if self.again and retry and pathlib.Path(f"/proc/{attach.pid}").exists():
            self.attaches.append(Attach(self.place, attach.pid, attach.inner, is_first=False))

    def stays(self):
        """Returns whether there is an attach that lasts until the process ends."""
        return any(attach.has_begun and attach.stays == TO_THE_END for attach in list(self.attaches))

    def wait(self):
        """Waits until every attach has ended, as its process has."""

        def has_ended():
            if self.problem is not None:
                raise self.problem
            return not self.attaches and not any(self.place.wants.iterdir())

        wait_for(lambda: f"the end of attaches: {[attach.output() for attach in list(self.attaches)]}", has_ended)

    def close(self):
        self.stopped.set()
        self.thread.join()
        for attach in self.attaches:
            attach.close()
        self.clients.close()
