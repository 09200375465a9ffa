#!/usr/bin/env python3
"""`attach` and `detach` as people use them, on programs that run on the simulated device.

Usage: attach_check.py --build BUILD [NAME...]
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback


class Skipped(Exception):
    pass


class Rig:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.program = str(build / "bin" / "gpumemtrace")
        self.loop = str(build / "tests" / "inject" / "gpu_loop")
        self.environment = {**os.environ, "GPUMEMTRACE_DIR": str(folder / "sessions")}
        self.started = []

    def start(self, *words, before=(), children=0, **environment):
        process = subprocess.Popen(
            [*before, self.loop, *map(str, words)], stdout=subprocess.PIPE, text=True,
            env={**self.environment, **environment}, start_new_session=True,
        )
        self.started.append(process)
        process.pids = []
        for _ in range(children or 1):
            line = process.stdout.readline()
            assert line.startswith("ready "), line
            process.pids.append(int(line.split()[1]))
        return process

    def verb(self, *words, code=0, **more):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True,
                              timeout=120, cwd=self.folder, env=self.environment, check=False, **more)
        assert done.returncode == code, (words, done)
        return done

    def attach(self, pid, *options, code=0):
        return self.verb("attach", pid, *options, code=code)

    def info(self, path):
        return json.loads(self.verb("info", "--json", path).stdout)

    def check_recording(self, path):
        """It is complete, has events and has lost none; the blocks that were kept are what is held."""
        info = self.info(path)
        assert info["complete"], info
        assert info["events"]["alloc"] > 5, info["events"]
        losses = info["losses"]
        assert losses["written"] == losses["delivered"], losses
        held = info["events"]["alloc"] - info["events"]["free"]
        kept = info["events"]["alloc"] / 11
        assert abs(held - kept) < 3, info["events"]
        return info

    def end(self):
        for process in self.started:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def ends_well(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and out.rstrip().endswith("ok"), (process.returncode, out)


def brought_in(rig):
    process = rig.start(6)
    said = rig.attach(process.pid, "-o", "run.gmt")
    assert said.stdout == f"recording {process.pid} to {rig.folder}/run.gmt\n", said
    assert f"gpumemtrace detach {process.pid}" in said.stderr, said
    time.sleep(0.7)
    again = rig.attach(process.pid, "-o", "other.gmt", code=1)
    assert "is attached to already" in again.stderr and "run.gmt" in again.stderr, again
    assert not (rig.folder / "other.gmt").exists()
    done = rig.verb("detach", process.pid)
    assert done.stdout == f"{rig.folder}/run.gmt\n", done
    rig.check_recording("run.gmt")
    rig.verb("detach", process.pid, code=1)
    rig.attach(process.pid, "-o", "run.gmt")
    time.sleep(0.7)
    rig.verb("detach", process.pid)
    rig.check_recording("run.1.gmt")
    ends_well(process)


def dormant(rig):
    process = rig.start(4, GPUMEMTRACE="dormant", LD_PRELOAD=rig.verb("preload-path").stdout.strip())
    assert rig.verb("attach", "--check", process.pid).stdout.startswith("Process"), "no answer"
    rig.attach(process.pid, "-o", "run.gmt", "--method", "dormant")
    time.sleep(0.7)
    rig.verb("detach", process.pid)
    rig.check_recording("run.gmt")
    ends_well(process)


def recorded_to_its_end(rig):
    process = rig.start(2)
    rig.attach(process.pid, "-o", "run.gmt")
    ends_well(process)
    deadline = time.monotonic() + 30
    while not rig.info("run.gmt")["complete"]:
        assert time.monotonic() < deadline, "its collector never finished"
        time.sleep(0.05)
    info = rig.check_recording("run.gmt")
    assert info["target"]["exit"] in ({"kind": "exited", "code": 0, "known_by": "shim"},) or info["target"]["exit"]["kind"] == "exited", info["target"]


def watched(rig):
    process = rig.start(4)
    began = time.monotonic()
    rig.attach(process.pid, "-o", "run.gmt", "--watch", "1s")
    assert time.monotonic() - began >= 1
    rig.check_recording("run.gmt")
    ends_well(process)


def preloaded(rig):
    process = rig.start(3, GPUMEMTRACE=f"output={rig.folder}/all.gmt,quiet",
                        LD_PRELOAD=rig.verb("preload-path").stdout.strip())
    said = rig.attach(process.pid, "-o", "run.gmt", code=1)
    assert "recorded from its beginning" in said.stderr and f"snapshot {process.pid}" in said.stderr, said
    said = rig.verb("detach", process.pid, code=1)
    assert "recorded until it ends" in said.stderr or "until it ends" in said.stderr, said
    ends_well(process)


def waits_for_a_call(rig):
    """An idle process: attach waits, says so, and leaves nothing when it is interrupted."""
    process = rig.start(4, "idle")
    attach = subprocess.Popen([rig.program, "attach", str(process.pid), "-o", "run.gmt"], cwd=rig.folder,
                              env=rig.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    assert attach.poll() is None
    attach.send_signal(signal.SIGINT)
    _, err = attach.communicate(timeout=60)
    assert attach.returncode == 1 and "waiting for the next GPU call" in err and "interrupted" in err, err
    assert not list(rig.folder.glob("*.gmt")), "a file was left"
    ends_well(process)


def all_ranks(rig):
    process = rig.start(5, 2, children=2)
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


def container(rig):
    """A process in other mount and PID namespaces, with sessions of its own."""
    if os.geteuid() != 0:
        raise Skipped("takes root")
    script = 'mount --make-rprivate /; mount -t tmpfs none /dev/shm; exec "$@"'
    unshare = rig.start(5, before=["unshare", "--kill-child", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"],
                        GPUMEMTRACE_DIR="/dev/shm/sessions")
    assert unshare.pids == [1], unshare.pids
    children = pathlib.Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text().split()
    pid = int(children[0])
    os.mkdir(f"/proc/{pid}/root/dev/shm/sessions", 0o700)
    rig.attach(pid, "-o", "run.gmt")
    time.sleep(0.7)
    rig.verb("detach", pid)
    rig.check_recording("run.gmt")
    ends_well(unshare)


CASES = [brought_in, dormant, recorded_to_its_end, watched, preloaded, waits_for_a_call, all_ranks, container]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    failed = skipped = 0
    chosen = [case for case in CASES if not args.names or case.__name__ in args.names]
    for case in chosen:
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-attach.") as folder:
            (pathlib.Path(folder) / "sessions").mkdir(mode=0o700)
            rig = Rig(args.build.resolve(), pathlib.Path(folder))
            try:
                case(rig)
                print(f"ok      {case.__name__}", flush=True)
            except Skipped as why:
                skipped += 1
                print(f"skipped {case.__name__}: {why}", flush=True)
            except Exception:  # noqa: BLE001  one failing case must not hide the others
                failed += 1
                print(f"FAILED  {case.__name__}\n{traceback.format_exc()}", flush=True)
            finally:
                rig.end()
    print(f"{len(chosen) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
