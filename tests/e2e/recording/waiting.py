"""How checks wait: for the event itself. A check that waits for a time instead passes or fails with the machine's speed.
"""

import os
import pathlib
import re
import select
import signal
import time

HANG_S = 120  # ends a check that hangs; no machine is so slow that what must come comes later


def wait_for(what, condition, pause_s=0.01):
    """The first true value of `condition()`. `what`: a text, or a function that says what is seen instead."""
    deadline = time.monotonic() + HANG_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"never: {what() if callable(what) else what}"
        time.sleep(pause_s)
    return value


def let_pass(seconds):
    """Only for what holds however much longer this takes: an instant that is chosen at random, the shortest time
    between two events, a chance for something to go wrong in. Never for something to have happened."""
    time.sleep(seconds)


def goes_on_waiting(process):
    """That it still waits for something: from now on it has slept and woken some times, and has not ended."""
    status = pathlib.Path(f"/proc/{process.pid}/status")

    def naps():
        assert process.poll() is None, "it did not wait"
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.M)[1])

    before = naps()
    wait_for("its looking again", lambda: naps() >= before + 5)


def kill_and_wait(pid):
    """Until all its threads have ended, and with them its locks. Of any process, not only of a child."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    os.kill(pid, signal.SIGKILL)
    ended, _, _ = select.select([pidfd], [], [], HANG_S)
    os.close(pidfd)
    assert ended, f"process {pid} does not die"
