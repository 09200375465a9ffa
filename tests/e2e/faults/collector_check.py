"""Faults of the collector, of the session file, and of readers of the program's output.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import struct

import attached
from place import Place, Skipped, collectors_of, whole

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import truth  # noqa: E402  (calls that reached the device)
from waiting import HANG_S, kill_and_wait, let_pass, wait_for  # noqa: E402

TAIL = 4096  # session/layout.h, Control
SMALL_RING = 1024  # slots


def live_set(events):
    live = {}
    for event in events:
        if event.kind == "alloc":
            live[event.address] = event.size
        elif event.kind == "free" and event.result == 0:
            live.pop(event.address, None)
    return live


def with_a_program_that_stops(place, wrap, meanwhile):
    """Runs a program that stops itself between two thousand calls while its collector reads. Calls meanwhile(pid of the
    collector) and resumes the program. Returns its exit code and stderr."""
    if place.rig.mode == "reattached":
        raise Skipped("an attach starts at a call, and a stopped program makes none")
    command = [*wrap, *place.command("processes", "stopped")]
    environment = {**os.environ, **place.preloaded()}
    environment |= place.traced_environment("stacks=none")
    with subprocess.Popen(
        command, env=environment, cwd=place.work, stderr=subprocess.PIPE, text=True
    ) as process:
        stat = pathlib.Path(f"/proc/{process.pid}/stat")
        try:
            wait_for("the stop of the program", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
            wait_for("a recording", lambda: [p for p in place.recordings() if p.stat().st_size])
            (collector,) = collectors_of(place)
            meanwhile(collector)
        finally:  # resume it in any case, otherwise the test hangs
            os.kill(process.pid, signal.SIGCONT)
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 5, (process.returncode, err)
    return err


def tail_of(place):
    """Returns the number of events written by its program; 0 if the session is gone."""
    try:
        (session,) = place.session_files()
        with open(session, "rb") as file:
            file.seek(TAIL)
            return struct.unpack("=Q", file.read(8))[0]
    except (OSError, ValueError):
        return 0


def collector_that_is_stopped_again_and_again(rig, folder):
    """History is overwritten meanwhile, but the live set at the end is correct."""
    if rig.mode == "reattached":
        raise Skipped("only the other modes have a single recording whose live set can be compared")
    choose = random.Random(rig.seed)
    place = Place(rig, folder, "traced")
    command = [str(rig.build / "simcuda" / "with-simcuda")]
    command += [str(rig.build / "tests" / "programs" / "driver_alloc")]
    command += ["--threads", "4", "--count", "20000", "--live", "40", "--leak", "30", "--handover"]
    if rig.attaches:
        command = place.command("processes", "hold")
    environment = {**os.environ, **place.preloaded()}
    environment |= place.traced_environment(f"stacks=none,ring={SMALL_RING * 64},exit_wait=10s")
    environment |= {
        "SIMCUDA_LOG": str(folder / "log"),
        "SIMCUDA_MEMORY": "1000G",
    }
    with subprocess.Popen(
        command, env=environment, cwd=place.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:
        wait_for("a collector", lambda: collectors_of(place) or process.poll() is not None)
        for collector in collectors_of(place):
            os.kill(collector, signal.SIGSTOP)
            goal = tail_of(place) + 3 * SMALL_RING
            wait_for("three laps", lambda: process.poll() is not None or tail_of(place) >= goal)
            os.kill(collector, signal.SIGCONT)
            while process.poll() is None and place.session_files():
                os.kill(collector, signal.SIGSTOP)
                let_pass(choose.random() * 0.05)
                os.kill(collector, signal.SIGCONT)
                let_pass(choose.random() * 0.05)
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == (5 if rig.attaches else 0), err
    place.wait_for_collectors()
    (path,) = place.recordings()
    losses = place.info(path)["losses"]
    assert losses["written"] == sum(
        losses[k] for k in ("delivered", "overrun", "holes", "abandoned", "backlog")
    ), losses
    lines = subprocess.run(
        [rig.program, "cat", "--json", str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    have = live_set(truth.recorded([json.loads(line) for line in lines]))
    want = live_set(truth.expected(folder / "log"))
    missing, phantom = want.items() - have.items(), have.items() - want.items()
    output = (
        f"{losses['written']} events, {losses['overrun']} overwritten, {len(want)} live: "
        f"{len(missing)} missing, {len(phantom)} phantom or of wrong size"
    )
    assert len(want) == 120 and not missing and not phantom, output
    assert losses["overrun"] > 0, "no events were overwritten, so the test is void"
    return output


def session_that_is_deleted(rig, folder):
    """Its collector and its program have it open; only other processes cannot find it any more."""
    place = Place(rig, folder, "traced")
    command = place.command("processes", "long")
    environment = {**os.environ, **place.preloaded()}
    environment |= place.traced_environment("stacks=none,exit_wait=20s")
    with subprocess.Popen(
        command, env=environment, cwd=place.work, stderr=subprocess.DEVNULL
    ) as process:
        wait_for("a session", place.session_files)
        if rig.attaches:
            wait_for("an attach", lambda: place.attacher.begun)
        if rig.mode == "reattached":  # so that it is not deleted between two recordings
            place.stays = attached.TO_THE_END
            wait_for("an attach that lasts", place.attacher.stays)
        place.session_files()[0].unlink()
        assert process.wait(timeout=HANG_S) == 5
    # A part that has ended is complete too, until the next one has its name.
    ends = wait_for("the snapshot at the end", lambda: [
        s for p in place.recordings() if whole(place, p) for s in place.info(p)["snapshots"] if s["name"] == "exit"])
    assert [s["allocations"] for s in ends] == [1], ends


def collector_of_a_real_time_program_is_not(rig, folder):
    chrt = shutil.which("chrt")
    wrap = [chrt or "chrt", "--fifo", "1"]
    if not chrt or subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode:
        raise Skipped("real-time priority is not permitted here")
    place = Place(rig, folder, "traced")
    policies = []
    with_a_program_that_stops(
        place, wrap, lambda collector: policies.append(os.sched_getscheduler(collector))
    )
    assert policies == [os.SCHED_OTHER], policies
    place.wait_for_collectors()


def check_what_a_watch_left(place, err):
    """Checks the recording of a watch: the beginning if it detached from the process, everything if the process ended before."""
    place.attacher.wait()
    output = place.attacher.last_words[-1]
    assert not err and (place.rig.mode == "reattached" or "is not complete" in output), output
    if "orphaned" in place.states().values():
        place.collect()
        info = place.info(place.out / "collected.gmt")
        assert info["complete"] and info["losses"]["written"] == info["losses"]["delivered"], info
        whole = attached.CHURN + 2000
        assert info["events"]["alloc"] == whole or place.rig.mode == "reattached", info["events"]
        return
    place.wait_for_collectors()
    assert any(not place.info(path)["complete"] for path in place.recordings()), output


def collector_that_is_killed(rig, folder):
    """The program reports it at its end, and the session has all data. A watching client reports it at once, detaches, and
    leaves the beginning of the recording."""
    place = Place(rig, folder, "traced")
    place.attach_codes = (1,)
    err = with_a_program_that_stops(place, [], kill_and_wait)
    if rig.attaches:
        check_what_a_watch_left(place, err)
        return
    assert "the collector has died: " in err and "gpumemtrace collect " in err, err
    place.collect()
    info = place.info(place.out / "collected.gmt")
    losses = info["losses"]
    assert losses["written"] == losses["delivered"], losses
    assert (info["events"]["alloc"], info["events"]["free"]) == (2000, 1998), info["events"]
    assert [s["allocations"] for s in info["snapshots"] if s["name"] == "exit"] == [2], info


def collector_that_cannot_load_its_libraries(rig, folder):
    place = Place(rig, folder, "traced")
    broken = folder / "collector"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    place.environment["GPUMEMTRACE_COLLECTOR"] = str(broken)
    place.options += ",exit_wait=100ms"
    if rig.attaches:
        done = place.run("processes", "use")
        assert done.returncode == 5 and not done.stderr, done
        assert "exited with code 127" in place.attacher.refusals[0], place.attacher.refusals
        place.wait_for_collectors()
        return
    done = place.run("processes", "use")
    assert done.returncode == 5, done
    assert "the collector has not started: " in done.stderr, done.stderr
    place.collect()


def reader_of_stderr_that_has_gone(rig, folder):
    place = Place(rig, folder, "traced")
    command = place.command("processes", "use")
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, **place.preloaded(), **place.traced_environment()}
    done = subprocess.run(
        command, env=environment, cwd=place.work, stderr=write,
        check=False, restore_signals=True,
    )
    os.close(write)
    assert done.returncode == 5, f"{done.returncode}: {-signal.SIGPIPE} is SIGPIPE"
    place.wait_for_collectors()
    place.check_recordings([2])


def reader_of_stderr_that_is_stuck(rig, folder):
    place = Place(rig, folder, "traced")
    command = place.command("processes", "use")
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while os.write(write, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(write, True)
    environment = {**os.environ, **place.preloaded(), **place.traced_environment()}
    done = subprocess.run(
        command, env=environment, cwd=place.work, stderr=write,
        check=False, timeout=HANG_S,
    )
    os.close(write)
    os.close(read)
    assert done.returncode == 5, done
    place.wait_for_collectors()
    place.check_recordings([2])


CASES = (
    collector_that_is_stopped_again_and_again,
    session_that_is_deleted,
    collector_of_a_real_time_program_is_not,
    collector_that_is_killed,
    collector_that_cannot_load_its_libraries,
    reader_of_stderr_that_has_gone,
    reader_of_stderr_that_is_stuck,
)
