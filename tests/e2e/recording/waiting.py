"""Waiting in checks: always for the event itself. A check that waits for a time depends on the speed of the machine.
"""

import os
import pathlib
import re
import select
import signal
import time

HANG_S = 120  # ends a check that hangs; long enough for any machine


def wait_for(what, condition, pause_s=0.01):
    """Waits for the first true value of `condition()` and returns it. `what`: a text, or a function that describes the state."""
    deadline = time.monotonic() + HANG_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"timed out waiting for {what() if callable(what) else what}"
        time.sleep(pause_s)
    return value


def let_pass(seconds):
    """Sleeps. Use it only if the duration does not matter for correctness: for a random instant, a minimum time between two
    events, or a chance for an error to occur. Never use it to wait for an event."""
    time.sleep(seconds)


def keeps_waiting(process):
    """Checks that a process keeps waiting: it sleeps and wakes several more times and does not end."""
    status = pathlib.Path(f"/proc/{process.pid}/status")

    def naps():
        assert process.poll() is None, "it has ended"
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.M)[1])

    before = naps()
    wait_for("it to poll again", lambda: naps() >= before + 5)


def kill_and_wait(pid):
    """Kills any process and waits until all its threads have ended and released their locks."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    os.kill(pid, signal.SIGKILL)
    ended, _, _ = select.select([pidfd], [], [], HANG_S)
    os.close(pidfd)
    assert ended, f"process {pid} does not die"
