#!/usr/bin/env python3
"""`attach --all-ranks`, on launchers whose processes use the simulated device.

Usage: ranks_check.py --build BUILD [NAME...]
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import cases
import jsonschema
from attach_rig import Rig, wait

SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "schemas"


def all_ranks(rig):
    process = rig.loops(5, 2, children=2)
    said = rig.attach(process.pid, code=1)
    for pid in process.pids:
        assert f"gpumemtrace attach {pid}" in said.stderr, said
    rig.verb("attach", process.pid, "--all-ranks", "-o", "one.gmt", code=2)
    rig.attach(process.pid, "--all-ranks", "-o", "run.%r.gmt")
    time.sleep(0.7)
    for rank, pid in enumerate(process.pids):
        rig.verb("detach", pid)
    for rank in (0, 1):
        rig.check_recording(f"run.{rank}.gmt")
    process.communicate(timeout=120)
    assert process.returncode == 0


def workers_of_a_rank(rig):
    """Forks that have no more than their parent's driver are no ranks, and nobody waits for them."""
    process = rig.loops(8, "workers", before=("timeout", "60"))
    said = rig.attach(process.pid, "--all-ranks", "-o", "run.%p.gmt", "--watch", "1s")
    assert [path.name for path in rig.folder.glob("*.gmt")] == [f"run.{process.pids[0]}.gmt"], said
    rig.check_recording(f"run.{process.pids[0]}.gmt")
    process.communicate(timeout=60)


def rank_that_does_nothing(rig):
    """The others do not wait for it for ever."""
    process = rig.loops(25, "idle", before=("sh", "-c", f'"$0" "$@" & exec {rig.loop} 25'), children=2)
    active = process.pid
    idle = next(pid for pid in process.pids if pid != active)
    said = rig.attach(active, "--all-ranks", "-o", "run.%p.gmt", "--watch", "1s", code=1)
    assert f"process {idle} is not recorded: it has not called the GPU for 10 s" in said.stderr, said
    assert not (rig.folder / f"run.{idle}.gmt").exists()
    rig.check_recording(f"run.{active}.gmt")
    process.kill()
    os.kill(idle, signal.SIGKILL)
    process.communicate(timeout=60)


def rank_that_is_left(rig):
    """Of two that are asked for one is refused, so that the other is the only one: why that one is not recorded
    is told, too."""
    process = rig.loops(30, "idle", before=("sh", "-c", f'"$0" "$@" & exec {rig.loop} 30'), children=2)
    refused = process.pid
    left = next(pid for pid in process.pids if pid != refused)
    os.kill(refused, signal.SIGSTOP)
    stat = pathlib.Path(f"/proc/{refused}/stat")
    wait("its stop", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    attach = subprocess.Popen([rig.program, "attach", str(refused), "--all-ranks", "-o", "run.%p.gmt"], cwd=rig.folder,
                              env=rig.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = ""
    for line in attach.stderr:
        said += line
        if f"waiting for the next GPU call of process {left}" in line:
            break
    assert f"process {refused}: it is stopped by a signal" in said, said
    os.kill(left, signal.SIGKILL)
    out, said = attach.communicate(timeout=60)
    assert attach.returncode == 1 and not out, (attach.returncode, out, said)
    # By whoever noticed first: its collector, or who attaches.
    assert re.search(f"process {left} ended before it called|the process ended before its next GPU call", said), said
    assert not list(rig.folder.glob("*.gmt")), "a file was left"
    process.kill()
    process.wait()


def watched_ranks(rig):
    """Verdicts of several processes while they run: each line says whose it is."""
    process = rig.loops(14, 2, children=2)
    said = rig.attach(process.pid, "--all-ranks", "-o", "run.%r.gmt", "--watch", "8s")
    lines = said.stdout.splitlines()
    for rank, pid in enumerate(sorted(process.pids)):
        who = f"{pid} rank {rank}: "
        assert f"recording {pid} to {rig.folder}/run.{rank}.gmt" in lines, said
        own = [line.removeprefix(who) for line in lines if line.startswith(who)]
        live = [line for line in own if line.startswith("[")]
        assert live and "watched; " in live[0], (rank, said)
        final = rig.verb("leaks", f"run.{rank}.gmt").stdout.splitlines()[0]
        assert final in own, (final, said)
        rig.check_recording(f"run.{rank}.gmt")
    strays = [line for line in lines
              if not re.match(r"(\d+ rank [01]: |recording \d+ to )", line)]
    assert not strays, strays
    process.communicate(timeout=120)
    assert process.returncode == 0


def watched_ranks_in_json(rig):
    process = rig.loops(10, 2, children=2)
    said = rig.attach(process.pid, "--all-ranks", "-o", "run.%p.gmt", "--watch", "4s", "--json")
    objects = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
    updates = [o for o in objects if o["schema"] == "gpumemtrace.watch/1"]
    assert {o["pid"] for o in updates} == set(process.pids), said
    schema = json.loads((SCHEMAS / "watch.schema.json").read_text(encoding="utf-8"))
    for update in updates:
        jsonschema.validate(update, schema)
    answers = [o for o in objects if o["schema"] == "gpumemtrace.leaks/1"]
    assert {o["file"] for o in answers} == {f"{rig.folder}/run.{pid}.gmt" for pid in process.pids}
    process.communicate(timeout=120)
    assert process.returncode == 0


CASES = [all_ranks, rank_that_is_left, workers_of_a_rank, rank_that_does_nothing, watched_ranks, watched_ranks_in_json]


if __name__ == "__main__":
    sys.exit(cases.main(__doc__, CASES, Rig, "/dev/shm"))
