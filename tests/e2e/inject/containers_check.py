#!/usr/bin/env python3
"""`attach` and `detach` on a program in its own namespaces, from outside and from a sidecar container.

Usage: containers_check.py --build BUILD [NAME...]
"""

import fcntl
import json
import os
import pathlib
import re
import subprocess
import sys

import cases
from attach_rig import Rig, ends_well
from cases import Skipped
from waiting import HANG_S, wait_for


def contained(rig, hides=None):
    """Starts gpu_loop in other mount and PID namespaces, with its own sessions, and with the directory `hides` hidden.
    Returns the process and its pid outside."""
    if os.geteuid() != 0:
        raise Skipped("takes root")
    script = 'mount --make-rprivate /; mount -t tmpfs none /dev/shm; exec "$@"'
    if hides is not None:
        script = script.replace("exec", f"mount -t tmpfs none '{hides}'; exec")
    unshare = rig.loops(before=["unshare", "--kill-child", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"],
                        GPUMEMTRACE_DIR="/dev/shm/sessions")
    assert unshare.pids == [1], unshare.pids
    children = pathlib.Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text().split()
    pid = int(children[0])
    os.mkdir(f"/proc/{pid}/root/dev/shm/sessions", 0o700)
    return unshare, pid


# Default capabilities of root in a container of Docker and Kubernetes, and those that profiles of
# `kubectl debug` add.
CAPABILITIES = ["chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
                "net_bind_service", "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap"]


def beside(rig, pid, *words, more=(), code=0):
    """Runs a command in a container next to that of `pid`: in its PID namespace, with separate mounts and capabilities. Its
    /dev/shm differs from that of the other container."""
    rights = ",".join(f"+{name}" for name in [*CAPABILITIES, *more])
    command = ["nsenter", "--target", pid, "--pid", "unshare", "--mount-proc", f"--wd={rig.folder}", "setpriv", f"--bounding-set=-all,{rights}", f"--inh-caps=-all,{rights}", rig.program, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=HANG_S, env=rig.environment,
                          check=False)
    assert done.returncode == code, (words, done)
    return done


def beside_a_container(rig):
    """As started by `kubectl debug --target`: needs CAP_SYS_PTRACE in addition to the default capabilities."""
    unshare, pid = contained(rig)
    output = beside(rig, pid, "attach", 1, "-o", "run.gmt", code=1)
    assert "--cap-add=SYS_PTRACE" in output.stderr, output
    output = beside(rig, pid, "attach", "--check", 1, more=["sys_ptrace"])
    assert "can be attached to" in output.stdout, output
    watch = beside(rig, pid, "attach", 1, "-o", "watched.gmt", "--watch", "1s", more=["sys_ptrace"])
    assert "watched.gmt is complete" in watch.stderr, watch
    rig.check_recording("watched.gmt", minimum=0)
    beside(rig, pid, "attach", 1, "-o", "run.gmt", more=["sys_ptrace"])
    rig.wait_recorded("run.gmt")
    assert beside(rig, pid, "detach", 1, more=["sys_ptrace"]).stdout == f"{rig.folder}/run.gmt\n"
    rig.check_recording("run.gmt")
    ends_well(unshare)


def container(rig):
    """From the host."""
    unshare, pid = contained(rig)
    rig.attach(pid, "-o", "run.gmt")
    rig.wait_recorded("run.gmt")
    rig.verb("detach", pid)
    rig.check_recording("run.gmt")
    ends_well(unshare)


def again_by_a_copy(rig):
    """The library is not visible in the container: the copy injected by the first attach is used again by the next."""
    unshare, pid = contained(rig, hides=rig.build / "lib")
    for name in ("first.gmt", "second.gmt", "third.gmt"):
        rig.attach(pid, "-o", name)
        rig.wait_recorded(name)
        rig.verb("detach", pid)
        rig.check_recording(name)
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    assert len(set(re.findall(r"libgpumemtrace\.[0-9.]+\.so", maps))) == 1, maps
    ends_well(unshare)


def listed(rig, pid):
    """Returns the sessions of the process. Other sessions in unnamed memory may be listed too."""
    return [row for row in json.loads(rig.verb("list", "--json").stdout)["sessions"] if row["pid"] == pid]


def followed_from_outside(rig):
    """All commands that contact a collector work for a process in a container, by its pid outside."""
    unshare, pid = contained(rig, hides=rig.build / "lib")
    rig.attach(pid, "-o", "run.gmt")
    rig.wait_recorded("run.gmt")
    assert [row["state"] for row in listed(rig, pid)] == ["recording"], listed(rig, pid)
    assert f"Process {pid} is being recorded" in rig.verb("status", pid).stdout
    assert str(pid) in rig.verb("top", "--once", pid).stdout
    rig.verb("mark", pid, "seen")
    rig.verb("snapshot", pid, "-o", "now.gmt")
    rig.verb("detach", pid)
    info = rig.check_recording("run.gmt")
    assert "cuda_runtime" in json.dumps(info["libraries"]), info["libraries"]
    assert not listed(rig, pid), listed(rig, pid)
    assert not list((rig.folder / "sessions").iterdir()), "a socket remains"

    lines, err = rig.watch(pid, "-o", "watched.gmt", until=lambda lines: lines[-1].startswith("["))
    assert any("watched; " in line for line in lines) and "No such file" not in err, (lines, err)
    ends_well(unshare)


def is_traced(pid):
    statuses = [status.read_text() for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return any("TracerPid:\t0\n" not in status for status in statuses)


def copy_that_was_left(rig):
    """A client was killed while a copy of the library was in the container: the next attach deletes it, but no other copy."""
    for attempt in range(20):
        unshare, pid = contained(rig, hides=rig.build / "lib")  # a new one per try, because a completed attach changes it
        folder = pathlib.Path(f"/proc/{pid}/root/tmp")
        killed = subprocess.Popen([rig.program, "attach", str(pid), "-o", f"killed{attempt}.gmt"], cwd=rig.folder, env=rig.environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        left = folder / f"libgpumemtrace.1.{killed.pid}.so"
        while killed.poll() is None and not left.exists():
            pass
        killed.kill()
        killed.wait()
        wait_for("the end of its injector, a process of its own", lambda: not is_traced(pid))
        if left.exists():
            break
        ends_well(unshare)
    assert left.exists(), "it was never killed in time"
    used, other = folder / f"libgpumemtrace.1.{os.getpid()}.so", folder / f"libgpumemtrace.{os.getpid()}.so"
    try:
        other.touch()
        with open(used, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            rig.attach(pid, "-o", "run.gmt")
        assert (left.exists(), used.exists(), other.exists()) == (False, True, True), list(folder.glob("libgpumemtrace.*"))
    finally:
        used.unlink(missing_ok=True)
        other.unlink(missing_ok=True)
    rig.wait_recorded("run.gmt")
    rig.verb("detach", pid)
    rig.check_recording("run.gmt")
    ends_well(unshare)


CASES = [container, beside_a_container, again_by_a_copy, followed_from_outside, copy_that_was_left]


if __name__ == "__main__":
    sys.exit(cases.main(__doc__, CASES, Rig, "/dev/shm"))
