#!/usr/bin/env python3
"""`attach` and `detach` as used by people, on programs that run on the simulated device.

Usage: attach_check.py --build BUILD [NAME...]
"""

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time

import cases
from attach_rig import Rig, ends_well
from cases import Skipped
from waiting import HANG_S, keeps_waiting, kill_and_wait, wait_for


def slots_to_the_library(pid):
    """Returns how many words in the data of modules point into our library. These are slots of their function tables.
    Excludes libc and the loader, which store pointers into every library."""
    ours, data = [], []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        place, rights, _, _, _, *name = line.split(None, 5)
        begin, end = (int(x, 16) for x in place.split("-"))
        file = pathlib.Path(name[0]).name if name and name[0].startswith("/") else ""
        if file.startswith("libgpumemtrace"):
            ours.append((begin, end))
        elif file and rights[0::3] == "rp" and "x" not in rights and not file.startswith(("libc.so", "ld-linux")):
            data.append((begin, end))
    count = 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for begin, end in data:
            memory.seek(begin)
            words = struct.unpack(f"{(end - begin) // 8}Q", memory.read(end - begin))
            count += sum(any(low <= word < high for low, high in ours) for word in words)
    return count


def injected(rig, loop=""):
    process = rig.loops(loop=loop)
    assert slots_to_the_library(process.pid) == 0
    output = rig.attach(process.pid, "-o", "run.gmt")
    assert output.stdout == f"recording {process.pid} to {rig.folder}/run.gmt\n", output
    assert f"gpumemtrace detach {process.pid}" in output.stderr, output
    rig.wait_recorded("run.gmt")
    assert slots_to_the_library(process.pid) > 3
    again = rig.attach(process.pid, "-o", "other.gmt", code=1)
    assert "is already attached" in again.stderr and "run.gmt" in again.stderr, again
    assert not (rig.folder / "other.gmt").exists()
    done = rig.verb("detach", process.pid)
    assert done.stdout == f"{rig.folder}/run.gmt\n", done
    assert slots_to_the_library(process.pid) == 0
    rig.check_recording("run.gmt")
    rig.verb("detach", process.pid, code=1)
    rig.attach(process.pid, "-o", "run.gmt")
    rig.wait_recorded("run.gmt")
    rig.verb("detach", process.pid)
    rig.check_recording("run.1.gmt")
    ends_well(process)


def injected_into_bound_at_once(rig):
    """Its slots are read-only from the start (full RELRO)."""
    injected(rig, "_now")


def what_it_has(pid):
    """Returns the numbers of descriptors, threads and mappings, and the KiB of private memory."""
    folder = pathlib.Path(f"/proc/{pid}")
    count = [len(list((folder / of).iterdir())) for of in ("fd", "task")]
    count.append(len((folder / "maps").read_text().splitlines()))
    return count, int(re.search(r"^RssAnon:\s*(\d+)", (folder / "status").read_text(), re.M)[1])


def rounds_leave_no_growth(rig):
    """Injects the library and detaches repeatedly while the program allocates. GMT_TEST_ROUNDS: number of rounds."""
    rounds = int(os.environ.get("GMT_TEST_ROUNDS", "20"))
    process = rig.loops("passing")
    for n in range(rounds):
        rig.attach(process.pid, "-o", f"run{n}.gmt")
        rig.verb("detach", process.pid)
        assert rig.info(f"run{n}.gmt")["complete"], n
        assert slots_to_the_library(process.pid) == 0, n
        if n == 2:  # measure after the first rounds, which leave some resources
            counts, memory = what_it_has(process.pid)
    counts_now, memory_now = what_it_has(process.pid)
    assert counts_now == counts, (counts, counts_now)
    assert memory_now - memory < 512, (memory, memory_now)
    print(f"        {rounds} rounds: {counts} descriptors, threads and mappings, {memory_now - memory} KiB more")
    process.kill()


def word(rig, offset):
    """Returns a word of the only session (session/layout.h, Control)."""
    (session,) = (rig.folder / "sessions").glob("*.session")
    with open(session, "rb") as file:
        file.seek(4096 + offset)
        return struct.unpack("=I", file.read(4))[0]


COLLECTOR_PID, ATTACH_WANTED, ATTACH_NOW, SLOTS_RESTORED = 256, 2436, 2440, 3632


class Held:
    """An attach that is blocked while it prints a message: its stderr is full and is not read."""

    def __init__(self, rig, pid, *options):
        self.read, write = os.pipe()
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, bytes(4096))
        except BlockingIOError:
            os.set_blocking(write, True)
        self.process = subprocess.Popen(
            [rig.program, "attach", str(pid), *options], cwd=rig.folder, env=rig.environment,
            stdout=subprocess.PIPE, stderr=write, text=True)
        os.close(write)
        stat = pathlib.Path(f"/proc/{self.process.pid}/syscall")
        wait_for("its blocked write", lambda: stat.read_text().split()[:2] == ["1", "0x2"])

    def unblock(self):
        """Unblocks it. Returns its stdout and stderr."""
        with open(self.read, "rb") as pipe:
            output = pipe.read().strip(b"\0").decode()  # reading to the end unblocks it
        try:
            out, _ = self.process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it waits forever: {output}") from None
        return out, output


def slower_than_another(rig):
    """Between the injection and the attach request of one client, another one attaches and detaches, which restores the
    calls of the process. They must be intercepted again."""
    process = rig.loops()
    slow = Held(rig, process.pid, "-o", "slow.gmt")
    rig.attach(process.pid, "-o", "quick.gmt")
    rig.verb("detach", process.pid)
    wait_for("the calls to be restored", lambda: word(rig, SLOTS_RESTORED) == 1)
    assert slots_to_the_library(process.pid) == 0
    out, output = slow.unblock()
    assert slow.process.returncode == 0 and "recording " in out, (out, output)
    rig.wait_recorded("slow.gmt")
    rig.verb("detach", process.pid)
    assert slots_to_the_library(process.pid) == 0
    rig.check_recording("slow.gmt")
    ends_well(process)


def detach_whose_collector_dies(rig):
    """The recording is reported as incomplete, and the process can be attached to again."""
    process = rig.loops()
    rig.attach(process.pid, "-o", "run.gmt")
    wait_for("the beginning of the recording", lambda: (rig.folder / "run.gmt").stat().st_size > 0)
    collector = word(rig, COLLECTOR_PID)
    os.kill(collector, signal.SIGSTOP)
    detach = subprocess.Popen([rig.program, "detach", str(process.pid)], cwd=rig.folder, env=rig.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for("the attach request to be withdrawn", lambda: word(rig, ATTACH_WANTED) == 0)
    keeps_waiting(detach)
    kill_and_wait(collector)
    out, err = detach.communicate(timeout=HANG_S)
    assert detach.returncode == 1 and not out, (detach.returncode, out, err)
    assert "run.gmt is not complete: its collector has died" in err, err
    assert not rig.info("run.gmt")["complete"]
    wait_for("the process to detach", lambda: word(rig, ATTACH_NOW) == 0)
    rig.attach(process.pid, "-o", "again.gmt")
    rig.wait_recorded("again.gmt")
    rig.verb("detach", process.pid)
    rig.check_recording("again.gmt")
    ends_well(process)


def child_of_a_recorded_process(rig):
    """Forked while one of our threads records the parent. The child has no such thread and gets one of its own. None of its
    calls would start the recording, because its runtime has stored the driver's function pointers."""
    process = start_static(rig, "forks", GPUMEMTRACE_CUPTI="/nowhere/libcupti.so.13")
    rig.attach(process.pid, "-o", "parent.gmt")
    assert threads(process.pid) == 2, "there is no recording thread in the parent"
    process.send_signal(signal.SIGUSR1)
    child = int(process.stdout.readline().removeprefix("child "))
    assert threads(child) == 1
    rig.attach(child, "-o", "child.gmt")
    assert threads(child) == 2
    for pid, path in ((child, "child.gmt"), (process.pid, "parent.gmt")):
        done = rig.verb("detach", pid)
        assert done.stdout == f"{rig.folder}/{path}\n", done
        assert rig.info(path)["complete"] and rig.info(path)["target"]["pid"] == pid, path
    ends_well(process)


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def dormant(rig):
    process = rig.loops(GPUMEMTRACE="dormant", LD_PRELOAD=rig.verb("preload-path").stdout.strip())
    assert rig.verb("attach", "--check", process.pid).stdout.startswith("Process"), "no answer"
    rig.attach(process.pid, "-o", "run.gmt", "--method", "dormant")
    rig.wait_recorded("run.gmt")
    rig.verb("detach", process.pid)
    rig.check_recording("run.gmt")
    ends_well(process)


def recorded_to_its_end(rig):
    process = rig.loops()
    rig.attach(process.pid, "-o", "run.gmt")
    rig.wait_recorded("run.gmt")
    ends_well(process)
    wait_for("its collector to end", lambda: rig.info("run.gmt")["complete"])
    info = rig.check_recording("run.gmt")
    assert info["target"]["exit"]["kind"] == "exited", info["target"]


def watched(rig):
    process = rig.loops()
    began = time.monotonic()
    rig.attach(process.pid, "-o", "run.gmt", "--watch", "1s")
    assert time.monotonic() - began >= 1
    rig.check_recording("run.gmt", minimum=0)
    ends_well(process)


def preloaded(rig):
    process = rig.loops(GPUMEMTRACE=f"output={rig.folder}/all.gmt,quiet",
                        LD_PRELOAD=rig.verb("preload-path").stdout.strip())
    output = rig.attach(process.pid, "-o", "run.gmt", code=1)
    assert "was started under gpumemtrace" in output.stderr and f"snapshot {process.pid}" in output.stderr, output
    output = rig.verb("detach", process.pid, code=1)
    assert "recorded until it ends" in output.stderr or "until it ends" in output.stderr, output
    ends_well(process)


def waits_for_a_call(rig):
    """An idle process: attach waits, reports this, and leaves nothing if it is interrupted."""
    process = rig.loops("idle")
    attach = subprocess.Popen([rig.program, "attach", str(process.pid), "-o", "run.gmt"], cwd=rig.folder,
                              env=rig.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output = next((line for line in attach.stderr if "waiting for the next GPU call" in line), "")
    keeps_waiting(attach)
    assert slots_to_the_library(process.pid) > 3
    attach.send_signal(signal.SIGINT)
    _, err = attach.communicate(timeout=HANG_S)
    assert attach.returncode == 1 and output and "interrupted" in err, (output, err)
    assert not list(rig.folder.glob("*.gmt")), "a file remains"
    assert slots_to_the_library(process.pid) == 0, "its calls are still intercepted"
    ends_well(process)


def exec_before_a_call(rig):
    """A process that executes another program before its next GPU call: attach reports that, and the new program can be
    attached to."""
    process = rig.loops("execs")
    attach = subprocess.Popen([rig.program, "attach", str(process.pid), "-o", "run.gmt"], cwd=rig.folder,
                              env=rig.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output = next((line for line in attach.stderr if "waiting for the next GPU call" in line), "")
    process.send_signal(signal.SIGUSR1)
    _, err = attach.communicate(timeout=HANG_S)
    assert attach.returncode == 1 and output and "executed another program" in err, (output, err)
    assert not list(rig.folder.glob("*.gmt")), "a file remains"
    assert process.stdout.readline().startswith("ready"), "the other program does not run"
    rig.attach(process.pid, "-o", "more.gmt")
    rig.wait_recorded("more.gmt")
    rig.verb("detach", process.pid)
    rig.check_recording("more.gmt")
    ends_well(process)


def start_static(rig, *words, **environment):
    """Starts a program with a statically linked runtime that has stored the addresses of the driver's functions."""
    return rig.loops(*words, loop="_static", LD_LIBRARY_PATH=rig.simcuda,
                     SIMCUDA_LOG=str(rig.folder / "log"), **environment)


# Calls that provide memory or addresses, and calls that release them.
OF_MEMORY = {"cuMemAlloc_v2", "cuMemFree_v2"}
OF_OTHER_KINDS = {"cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap",
                  "cuArrayCreate_v2", "cuArrayDestroy", "cuMipmappedArrayCreate", "cuMipmappedArrayDestroy",
                  "cuMemHostAlloc", "cuMemFreeHost", "cuMemAllocManaged", "cuMemAllocAsync", "cuMemFreeAsync",
                  "cuGraphAddMemAllocNode", "cuGraphAddMemFreeNode", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle"}


def calls_of_device(rig):
    """Returns the calls that reached the device, in order: (call, address or handle, size)."""
    lines = map(json.loads, (rig.folder / "log").read_text().splitlines())
    return [(line["call"], line["address"] or line["handle"], line["size"]) for line in lines
            if line["call"] in OF_MEMORY | OF_OTHER_KINDS and line["result"] == 0]


def check_equals_device(rig, path, minimum, calls=frozenset(OF_MEMORY)):
    """Checks that between attach and detach each call of the device is recorded once, in order."""
    events = [json.loads(line) for line in rig.verb("cat", "--json", path).stdout.splitlines()]
    recorded = [(e["api"], e["address"], e.get("size")) for e in events
                if "address" in e and e["kind"] not in ("free_done", "context_create")]
    assert {call for call, _, _ in recorded} == calls, recorded[:20]
    assert len(recorded) >= minimum, len(recorded)
    # Memory allocated before the attach has no size in its free.
    for i, (call, address, size) in enumerate(recorded):
        assert size is not None or all(address != before for _, before, _ in recorded[:i]), (call, i)
    truth = calls_of_device(rig)

    def same(asked, claimed):
        return asked[:2] == claimed[:2] and claimed[2] in (None, asked[2])

    begins = [i for i in range(len(truth)) if same(truth[i], recorded[0])]
    assert any(len(truth) - i >= len(recorded) and all(map(same, truth[i:], recorded)) for i in begins), (
        "the recording is not a part of the device's calls", recorded[:6], len(recorded), len(truth))


def static_runtime(rig):
    process = start_static(rig)
    for round in range(2):
        rig.attach(process.pid, "-o", f"run{round}.gmt")
        rig.wait_recorded(f"run{round}.gmt", 100)
        rig.verb("detach", process.pid)
        check_equals_device(rig, f"run{round}.gmt", 100)
        info = rig.info(f"run{round}.gmt")
        assert info["complete"], info
        sources = json.dumps(info["sources"])
        assert "bypass the hooks" in sources and "addresses of driver functions: the program" in sources, sources
    wait_for("our threads to end", lambda: threads(process.pid) == 1)
    ends_well(process)


def static_runtime_of_all_kinds(rig):
    """Virtual memory, arrays, pinned and managed memory, memory of a pool, of a graph and of another process."""
    process = start_static(rig, "kinds")
    rig.attach(process.pid, "-o", "run.gmt")
    rig.wait_recorded("run.gmt", 100)
    rig.verb("detach", process.pid)
    check_equals_device(rig, "run.gmt", 100, OF_MEMORY | OF_OTHER_KINDS)
    ends_well(process)


def static_runtime_without_cupti(rig):
    """None of its calls can be seen: both reasons are recorded, and the program continues."""
    process = start_static(rig, GPUMEMTRACE_CUPTI="/nowhere/libcupti.so.13")
    rig.attach(process.pid, "-o", "run.gmt")
    log = rig.folder / "log"
    size = log.stat().st_size
    wait_for("calls", lambda: log.stat().st_size > size + 10_000)
    rig.verb("detach", process.pid)  # which no call of the program would notice
    info = rig.info("run.gmt")
    assert info["complete"] and info["events"].get("alloc", 0) == 0, info
    sources = json.dumps(info["sources"])
    assert "seen only while cupti is on" in sources and "was not found" in sources, sources
    ends_well(process)


def locked(rig):
    """A program that has locked all its memory: a detach releases memory anyway."""
    process = rig.loops("locked")
    for round in range(2):
        rig.attach(process.pid, "-o", f"run{round}.gmt")
        rig.wait_recorded(f"run{round}.gmt")
        rig.verb("detach", process.pid)
        rig.check_recording(f"run{round}.gmt")
        (session,) = (rig.folder / "sessions").glob("*.session")
        wait_for("the release of the session's memory", lambda: session.stat().st_blocks * 512 < 1 << 20)
    ends_well(process)


def full_directory(rig):
    """There is no shared memory left at the injection and at a later attach: this is reported, and the program continues."""
    if os.geteuid() != 0:
        raise Skipped("takes root")
    script = 'mount --make-rprivate /; mount -t tmpfs -o size=48m,mode=0755 none /dev/shm; exec "$@"'
    process = rig.loops(before=["unshare", "--mount", "sh", "-c", script, "sh"], GPUMEMTRACE_DIR="/dev/shm/sessions")
    shm = pathlib.Path(f"/proc/{process.pid}/root/dev/shm")
    os.mkdir(shm / "sessions", 0o700)

    def fill():
        filler = os.open(shm / "filler", os.O_CREAT | os.O_WRONLY)
        try:
            while True:
                os.write(filler, bytes(1 << 20))
        except OSError:
            os.close(filler)

    fill()
    output = rig.attach(process.pid, "-o", "run.gmt", code=1)
    assert "there is no shared memory for it" in output.stderr, output
    os.unlink(shm / "filler")
    ends_well(process)

    process = rig.loops(before=["unshare", "--mount", "sh", "-c", script, "sh"], GPUMEMTRACE_DIR="/dev/shm/sessions")
    shm = pathlib.Path(f"/proc/{process.pid}/root/dev/shm")
    os.mkdir(shm / "sessions", 0o700)
    rig.attach(process.pid, "-o", "run.gmt")
    rig.wait_recorded("run.gmt")
    rig.verb("detach", process.pid)
    rig.check_recording("run.gmt")
    fill()
    output = rig.attach(process.pid, "-o", "more.gmt", code=1)
    assert "No space left on device" in output.stderr, output
    os.unlink(shm / "filler")
    rig.attach(process.pid, "-o", "more.gmt")
    rig.wait_recorded("more.gmt")
    rig.verb("detach", process.pid)
    rig.check_recording("more.gmt")
    ends_well(process)


CASES = [injected, injected_into_bound_at_once, slower_than_another, detach_whose_collector_dies,
         child_of_a_recorded_process, rounds_leave_no_growth, dormant, recorded_to_its_end, watched, preloaded, waits_for_a_call,
         exec_before_a_call, static_runtime, static_runtime_of_all_kinds, static_runtime_without_cupti, locked, full_directory]


if __name__ == "__main__":
    sys.exit(cases.main(__doc__, CASES, Rig, "/dev/shm"))
