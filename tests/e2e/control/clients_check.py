#!/usr/bin/env python3
"""Clients of a running collector that belong to another user, are idle, send partial messages, or die. Neither the recording
nor other clients are affected, and the collector releases all their resources.

Usage: clients_check.py --build DIR [--kills N] [NAME...]
"""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from control_check import running  # noqa: E402
from rig import Rig, run_cases  # noqa: E402
from waiting import HANG_S, let_pass, wait_for  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

NOBODY = 65534
BOUNDED = "max_size=16MiB"  # parts, and a search for leaks
LEAKS, TOP = 2, 1  # control.proto, Subscribe.What
kills = 60

# subscribe(argv[2]), then read forever (argv[3] == "reads") or never.
CLIENT = """
import signal, socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(bytes.fromhex(sys.argv[2]))
print("asked", flush=True)
while client.recv(65536) if sys.argv[3] == "reads" else not signal.pause():
    pass
"""


def request(body):
    """Returns a Request of version 1 with id 1."""
    message = bytes([0x08, 1, 0x10, 1]) + body
    return len(message).to_bytes(4, "little") + message


STATUS = request(bytes([0x1A, 0]))


def subscription(what):
    return request(bytes([0x3A, 4, 0x08, what, 0x10, 100]))


def connect(run):
    client = socket.socket(socket.AF_UNIX)
    client.connect(f"{run.session}.sock")  # waits if the kernel's queue is full
    client.settimeout(HANG_S)
    return client


def receive(client):
    """Returns the next message, or empty bytes if the other side has closed the connection."""
    wanted, piece = b"", b"?"
    while len(wanted) < 4 and piece:
        piece = client.recv(4 - len(wanted))
        wanted += piece
    size, message = int.from_bytes(wanted, "little"), b""
    while piece and len(message) < size:
        piece = client.recv(size - len(message))
        message += piece
    return message if piece else b""


def resources(run):
    """Returns descriptors, threads and resident KiB of the collector."""
    proc = pathlib.Path(f"/proc/{run.status()['collector']['pid']}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    return len(os.listdir(proc / "fd")), int(status["Threads"]), int(status["VmRSS"].split()[0])


def goes_on(run):
    before = run.driver()["allocations"]
    wait_for("more allocations", lambda: run.driver()["allocations"] > before + 3)


def check_at_its_end(run):
    info = run.stop().check_whole()
    assert info["events"]["alloc"] >= run.made() > 0, info["events"]


def command_waits_for_the_socket_of_a_collector_that_starts(rig, folder):
    with running(rig, folder) as run:
        there = pathlib.Path(f"{run.session}.sock")
        away = folder / "away.sock"

        def is_answered():
            there.rename(away)
            command = subprocess.Popen([rig.program, "status", str(run.process.pid)], env={
                **os.environ, "GPUMEMTRACE_DIR": str(folder / "sessions")}, stdout=subprocess.DEVNULL)
            let_pass(0.3)  # the command looks for the socket meanwhile
            waits = command.poll() is None
            away.rename(there)
            return command.wait(timeout=HANG_S) == 0 and waits

        # On a very slow machine, the command may give up before the socket is back.
        wait_for("a command that waits", is_answered)
        check_at_its_end(run)


def client_of_another_user_is_refused(rig, folder):
    """Refused by the modes of directory and socket, and, if those permit access, by the kernel's peer credentials."""
    if os.geteuid() != 0:
        print("       (not root: cannot act as another user)")
        return
    with running(rig, folder, BOUNDED) as run:
        as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        words = ["/usr/bin/python3", "-c", CLIENT, f"{run.session}.sock", STATUS.hex(), "reads"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, **as_nobody)
        assert done.returncode != 0 and "PermissionError" in done.stderr, done
        for opened, mode in ((folder, 0o755), (folder / "sessions", 0o755)):
            opened.chmod(mode)
        pathlib.Path(f"{run.session}.sock").chmod(0o666)
        words[2] = CLIENT.replace("client.sendall", "print(b''.join(iter(lambda: client.recv(4096), b''))); client.sendall")
        done = subprocess.run(words, capture_output=True, text=True, check=False, **as_nobody)
        assert "belongs to another user" in done.stdout, done
        assert str(run.path) not in done.stdout, "it received data nevertheless"
        goes_on(run)
        check_at_its_end(run)


def two_hundred_idle_clients_block_no_other(rig, folder):
    with running(rig, folder, BOUNDED) as run:
        goes_on(run)
        before = resources(run)
        crowd = [connect(run) for _ in range(200)]
        goes_on(run)
        during = resources(run)
        assert during[0] <= before[0] + 20 and during[1] == before[1], (before, during)
        for client in crowd:
            client.close()
        wait_for("the closing of their descriptors", lambda: resources(run)[0] <= before[0])
        check_at_its_end(run)


def flood_without_a_reader_is_bounded(rig, folder):
    """Sends status requests as fast as possible without reading any reply."""
    with running(rig, folder, BOUNDED) as run:
        goes_on(run)
        before, most = resources(run), 64 << 20
        client = connect(run)
        client.setblocking(False)
        taken, flood = 0, STATUS * 6000

        def takes_no_more():
            """Returns whether the collector no longer reads although it has answered others since, or has closed."""
            nonlocal taken
            sent = 0
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                while taken + sent < most:
                    sent += client.send(flood)
            taken += sent
            goes_on(run)
            return sent == 0

        wait_for("the collector to stop reading", takes_no_more)
        during = resources(run)
        assert taken < 4 << 20, f"it took {taken} bytes"
        assert during[2] <= before[2] + (8 << 10), (before, during)
        goes_on(run)
        client.close()
        wait_for("the closing of its descriptor", lambda: resources(run)[0] <= before[0])
        print(f"       {taken} bytes taken; descriptors, threads, KiB before {before}, then {during}")
        check_at_its_end(run)


def half_a_message_waits_for_its_other_half(rig, folder):
    with running(rig, folder, BOUNDED) as run:
        for cut in range(1, len(STATUS)):
            client = connect(run)
            assert receive(client), "no hello"
            client.sendall(STATUS[:cut])
            if cut % 3 == 0:
                goes_on(run)
            client.sendall(STATUS[cut:])
            assert receive(client), f"{cut} bytes, then the rest"
            client.close()
        halves = [connect(run) for _ in range(30)]  # more than the maximum number of clients
        for client in halves:
            with contextlib.suppress(OSError):
                client.sendall(STATUS[:5])
        goes_on(run)
        check_at_its_end(run)
        for client in halves:
            client.close()


def killed_clients_leave_nothing(rig, folder):
    """kill -9 of clients at random instants: readers, clients that never read, and commands."""
    for seed in seeds(1):
        place = folder / str(seed)
        (place / "sessions").mkdir(parents=True, mode=0o700)
        kill_clients(rig, place, random.Random(seed))


def kill_clients(rig, folder, chance):
    with running(rig, folder, BOUNDED) as run:
        goes_on(run)
        before, killed = resources(run), 0
        while killed < kills:
            words = [sys.executable, "-c", CLIENT, f"{run.session}.sock"]
            crowd = [[*words, subscription(what).hex(), how] for what in (LEAKS, TOP) for how in ("reads", "never")]
            crowd += [[rig.program, "status", str(run.process.pid)],
                      [rig.program, "snapshot", str(run.process.pid)]]  # fmt: skip
            environment = {**os.environ, "GPUMEMTRACE_DIR": str(folder / "sessions")}
            clients = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL) for command in crowd]
            chance.shuffle(clients)
            for client in clients:
                let_pass(chance.uniform(0, 0.06))
                client.send_signal(signal.SIGKILL)
                client.wait()
            killed += len(clients)
        goes_on(run)
        wait_for("the closing of their descriptors", lambda: resources(run)[0] <= before[0])
        after = resources(run)
        assert after[1] == before[1] and after[2] <= before[2] + (16 << 10), (before, after)
        print(f"       {killed} killed; descriptors, threads, KiB before {before}, after {after}")
        check_at_its_end(run)


CASES = (
    command_waits_for_the_socket_of_a_collector_that_starts,
    client_of_another_user_is_refused, two_hundred_idle_clients_block_no_other,
    flood_without_a_reader_is_bounded, half_a_message_waits_for_its_other_half, killed_clients_leave_nothing,
)


def main():
    global kills
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    kills = given.kills
    chosen = [(case.__name__, case) for case in CASES if not given.names or case.__name__ in given.names]
    return run_cases(Rig(given.build.resolve(), sys.executable), chosen)


if __name__ == "__main__":
    sys.exit(main())
