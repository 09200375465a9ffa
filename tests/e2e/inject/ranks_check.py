#!/usr/bin/env python3
"""`attach --all-ranks` on launchers whose processes use the simulated device.

Usage: ranks_check.py --build BUILD [NAME...]
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import cases
import jsonschema
from attach_rig import Rig
from waiting import HANG_S, wait_for

IDLE_BESIDE = 'exec 3<&0; "$0" "$@" <&3 & exec {} 3<&-'  # a shell removes the input from background processes
SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "schemas"


def all_ranks(rig):
    process = rig.loops(2, children=2)
    output = rig.attach(process.pid, code=1)
    for pid in process.pids:
        assert f"gpumemtrace attach {pid}" in output.stderr, output
    rig.verb("attach", process.pid, "--all-ranks", "-o", "one.gmt", code=2)
    rig.attach(process.pid, "--all-ranks", "-o", "run.%r.gmt")
    for rank, pid in enumerate(process.pids):
        rig.wait_recorded(f"run.{rank}.gmt")
        rig.verb("detach", pid)
    for rank in (0, 1):
        rig.check_recording(f"run.{rank}.gmt")
    process.communicate(timeout=HANG_S)
    assert process.returncode == 0


def workers_of_a_rank(rig):
    """Forks that only inherited the driver from their parent are not ranks, and attach does not wait for them."""
    process = rig.loops("workers", before=("timeout", "1h"))
    output = rig.attach(process.pid, "--all-ranks", "-o", "run.%p.gmt", "--watch", "1s")
    assert [path.name for path in rig.folder.glob("*.gmt")] == [f"run.{process.pids[0]}.gmt"], output
    rig.check_recording(f"run.{process.pids[0]}.gmt", minimum=0)
    process.communicate(timeout=HANG_S)


def rank_that_does_nothing(rig):
    """The others do not wait for it forever."""
    process = rig.loops("idle", before=("sh", "-c", IDLE_BESIDE.format(rig.loop)), children=2)
    active = process.pid
    idle = next(pid for pid in process.pids if pid != active)
    output = rig.attach(active, "--all-ranks", "-o", "run.%p.gmt", "--watch", "1s", code=1)
    assert f"process {idle} is not recorded: it has not called the GPU for 10 s" in output.stderr, output
    assert not (rig.folder / f"run.{idle}.gmt").exists()
    rig.check_recording(f"run.{active}.gmt", minimum=0)
    process.kill()
    os.kill(idle, signal.SIGKILL)
    process.communicate(timeout=HANG_S)


def rank_that_is_left(rig):
    """One of two requested processes is refused, so that the other is the only one: the reason why that one is not recorded
    is reported too."""
    process = rig.loops("idle", before=("sh", "-c", IDLE_BESIDE.format(rig.loop)), children=2)
    refused = process.pid
    left = next(pid for pid in process.pids if pid != refused)
    os.kill(refused, signal.SIGSTOP)
    stat = pathlib.Path(f"/proc/{refused}/stat")
    wait_for("the stop of the process", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    attach = subprocess.Popen([rig.program, "attach", str(refused), "--all-ranks", "-o", "run.%p.gmt"], cwd=rig.folder,
                              env=rig.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output = ""
    for line in attach.stderr:
        output += line
        if f"waiting for the next GPU call of process {left}" in line:
            break
    assert f"process {refused}: it is stopped by a signal" in output, output
    os.kill(left, signal.SIGKILL)
    out, output = attach.communicate(timeout=HANG_S)
    assert attach.returncode == 1 and not out, (attach.returncode, out, output)
    # Reported by whichever notices first: its collector or the attaching client.
    assert re.search(f"process {left} ended before it called|the process ended before its next GPU call", output), output
    assert not list(rig.folder.glob("*.gmt")), "a file remains"
    process.kill()
    process.wait()


def watched_ranks(rig):
    """Verdicts on several running processes: each line contains its process."""
    process = rig.loops(2, children=2)
    wanted = {f"{pid} rank {rank}: [" for rank, pid in enumerate(sorted(process.pids))}
    lines, output = rig.watch(process.pid, "--all-ranks", "-o", "run.%r.gmt", until=lambda lines: all(
        any(line.startswith(who) for line in lines) for who in wanted))
    for rank, pid in enumerate(sorted(process.pids)):
        who = f"{pid} rank {rank}: "
        assert f"recording {pid} to {rig.folder}/run.{rank}.gmt" in lines, output
        own = [line.removeprefix(who) for line in lines if line.startswith(who)]
        live = [line for line in own if line.startswith("[")]
        assert live and "watched; " in live[0], (rank, output)
        final = rig.verb("leaks", f"run.{rank}.gmt").stdout.splitlines()[0]
        assert final in own, (final, output)
        rig.check_recording(f"run.{rank}.gmt", minimum=0)
    strays = [line for line in lines
              if not re.match(r"(\d+ rank [01]: |recording \d+ to )", line)]
    assert not strays, strays
    process.communicate(timeout=HANG_S)
    assert process.returncode == 0


def watched_ranks_in_json(rig):
    process = rig.loops(2, children=2)
    lines, output = rig.watch(process.pid, "--all-ranks", "-o", "run.%p.gmt", "--json", until=lambda lines: all(
        any(f'"pid":{pid},' in line.replace(" ", "") for line in lines) for pid in process.pids))
    objects = [json.loads(line) for line in lines if line.startswith("{")]
    updates = [o for o in objects if o["schema"] == "gpumemtrace.watch/1"]
    assert {o["pid"] for o in updates} == set(process.pids), output
    schema = json.loads((SCHEMAS / "watch.schema.json").read_text(encoding="utf-8"))
    for update in updates:
        jsonschema.validate(update, schema)
    answers = [o for o in objects if o["schema"] == "gpumemtrace.leaks/1"]
    assert {o["file"] for o in answers} == {f"{rig.folder}/run.{pid}.gmt" for pid in process.pids}
    process.communicate(timeout=HANG_S)
    assert process.returncode == 0


CASES = [all_ranks, rank_that_is_left, workers_of_a_rank, rank_that_does_nothing, watched_ranks, watched_ranks_in_json]


if __name__ == "__main__":
    sys.exit(cases.main(__doc__, CASES, Rig, "/dev/shm"))
