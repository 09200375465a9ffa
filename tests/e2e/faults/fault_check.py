#!/usr/bin/env python3
"""Lets happen to traced processes what can happen, and checks that nothing came of it.

Usage: fault_check.py --build DIR [--repeat N] [NAME...]

Each case runs a program of this folder on the simulated device, alone and preloaded: output and
exit code must be the same, stderr too but for our lines; then each recording must be complete, hold
what the program did, and account for every event; or one line must say why there is none. Cases
that need rights which this machine does not give are skipped, with the reason. --repeat N runs all
of them N times. The last line of the output is "N passed, N failed, N skipped".
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import truth  # noqa: E402  (what the device was asked)


class Skipped(Exception):
    pass


class Place:
    """A folder of one case: where it runs, its sessions, its recordings."""

    def __init__(self, rig, root, name):
        self.rig, self.root = rig, root / name
        self.work, self.out, self.sessions = (self.root / d for d in ("work", "out", "sessions"))
        for folder in (self.work, self.out, self.sessions):
            folder.mkdir(parents=True, mode=0o700)
        self.options = f"output={self.out}/%p.gmt"
        self.environment = {"GPUMEMTRACE_DIR": str(self.sessions)}

    def run(self, program, *arguments, traced=True, wrap=()):
        command = [str(self.rig.build / "simcuda" / "with-simcuda")]
        command += [str(self.rig.build / "tests" / "faults" / program), *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        if traced:
            environment |= {"GPUMEMTRACE": self.options, **self.environment}
            command = ["env", f"LD_PRELOAD={self.rig.library}", *command]
        return subprocess.run(
            [*wrap, *command], env=environment, cwd=self.work, capture_output=True, text=True,
            timeout=120, check=False,
        )

    def wait(self, what, done, seconds=20):
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, f"never came: {what}"
            time.sleep(0.01)

    def session_files(self):
        return sorted(self.sessions.glob("*.session"))

    def wait_for_collectors(self):
        self.wait("the end of every collector", lambda: not self.session_files())

    def info(self, path):
        done = subprocess.run(
            [self.rig.program, "info", "--json", str(path)], capture_output=True, text=True,
            check=False,
        )
        assert done.returncode == 0, f"{path}: {done.stderr}"
        return json.loads(done.stdout)

    def check_recordings(self, allocations, left=None):
        """One complete recording for each number, with so many allocations, `left` of them live."""
        found = []
        for path in sorted(self.out.glob("*.gmt")):
            info = self.info(path)
            assert info["complete"], (path, info)
            losses = info["losses"]
            lost = sum(losses[k] for k in ("overrun", "holes", "abandoned", "backlog"))
            assert losses["written"] == losses["delivered"] and lost == 0, losses
            events = info["events"]
            found.append((events["alloc"], events["free"]))
            live = [s["allocations"] for s in info["snapshots"] if s["name"] == "exit"]
            assert live == [events["alloc"] - events["free"]], (live, events)
            assert left is None or live == [left], live
        counts = sorted(a for a, _ in found)
        assert counts == sorted(allocations), f"allocations {counts}, should be {allocations}"
        return found

    def collect(self):
        """What `gpumemtrace collect` makes of the only session."""
        (session,) = self.session_files()
        done = subprocess.run(
            [self.rig.program, "collect", str(session), "-o", str(self.out / "collected.gmt")],
            capture_output=True, text=True, check=False,
        )
        assert done.returncode == 0, done.stderr


class Rig:
    def __init__(self, build):
        self.build = build
        self.program = str(build / "bin" / "gpumemtrace")
        self.library = subprocess.run(
            [self.program, "preload-path"], capture_output=True, text=True, check=True
        ).stdout.strip()


def own_lines(done):
    return [line for line in done.stderr.splitlines() if line.startswith("gpumemtrace: ")]


def check_undisturbed(alone, traced):
    assert traced.returncode == alone.returncode, (traced.returncode, alone.returncode)
    assert traced.stdout == alone.stdout, (traced.stdout, alone.stdout)
    other = [line for line in traced.stderr.splitlines() if line not in own_lines(traced)]
    assert other == alone.stderr.splitlines(), (traced.stderr, alone.stderr)


def both(rig, folder, program, *arguments, wrap=(), prepare=None):
    """Runs it alone and traced; returns the traced run and its place."""
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        if prepare is not None:
            prepare(place)
        outcomes.append(place.run(program, *arguments, traced=traced, wrap=wrap))
    check_undisturbed(*outcomes)
    return outcomes[1], place


# ---- The moment of the first call, the ways of processes ----------------------------------------

MOMENTS = (
    "constructor", "destructor", "atexit", "handler", "small-stack", "thread-local", "cancel",
    "timer", "forks",
)

# Way -> allocations per recording.
WAYS = {
    "use": [2],
    "fork-before": [2],
    "fork-after": [0, 4],  # a child cannot use the GPU of its parent: its failure is recorded
    "raw-clone": [2, 4],
    "vfork-exec": [2, 4],
    "spawn": [2, 4],
    "exec": [1, 2, 3],
    "close-all": [3],
    "close-all-and-stderr": [3],
    "many": [5] * 64,
    "subreaper": [1],
    "drop-rights-late": [2],
    "deleted-directory": [1],
    "limit-memory": [3],
    "limit-file-size-20m": [3],
    "deny-madvise": [3],
    "deny-pidfd": [3],
}

# Way -> what the one line says instead.
REASONS = {
    "drop-rights": "cannot be written: Permission denied",
    "chroot": "cannot be written: No such file or directory",
    "limit-nofile": "cannot be written: Too many open files",
    "limit-no-memory": "not recording: no shared memory for the session: Cannot allocate memory",
    "limit-file-size": "not recording: no shared memory for the session: File too large",
    "limit-file-size-0": "not recording: no shared memory for the session: File too large",
}

# Way -> why there is no collector; the session holds three allocations.
WITHOUT_COLLECTOR = {
    "deny-clone": "no collector (Operation not permitted)",
    "deny-exec": "no collector (Operation not permitted)",
    "kill-exec": "no collector (Operation not permitted)",
}


def check_moment(rig, folder, moment):
    _, place = both(rig, folder, "moments", moment)
    place.wait_for_collectors()
    place.check_recordings([1])


def check_way(rig, folder, way):
    done, place = both(rig, folder, "processes", way)
    place.wait_for_collectors()
    place.check_recordings(WAYS[way])
    if way != "close-all-and-stderr":
        assert any(": recording " in line for line in own_lines(done)), done.stderr


def check_reason(rig, folder, way):
    done, place = both(rig, folder, "processes", way)
    lines = own_lines(done)
    assert len(lines) == 1 and REASONS[way] in lines[0], done.stderr
    place.check_recordings([])
    assert not place.session_files()


def check_without_collector(rig, folder, way):
    done, place = both(rig, folder, "processes", way)
    lines = own_lines(done)
    assert len(lines) == 1 and WITHOUT_COLLECTOR[way] in lines[0], done.stderr
    assert "gpumemtrace collect " in lines[0], done.stderr
    place.collect()
    place.check_recordings([3])


# ---- Processes that need a story of their own ----------------------------------------------------


def daemon_whose_parents_have_gone(rig, folder):
    for way, allocations in (("daemon", [2]), ("daemon-late", [1, 2])):
        done, place = both(rig, folder / way, "processes", way)
        place.wait("the daemon's work", lambda p=place: (p.work / "done").exists())
        place.wait_for_collectors()
        place.check_recordings(allocations)


def process_limit_leaves_the_session(rig, folder):
    def prepare(place):
        for made in (place.root, place.out, place.sessions, place.work, folder):
            os.chmod(made, 0o777)
        os.chmod(place.sessions, 0o700)
        os.chown(place.sessions, 65534, 65534)

    if os.geteuid() != 0:
        raise Skipped("needs root to become somebody else")
    done, place = both(rig, folder, "processes", "limit-nproc", prepare=prepare)
    assert "no collector (Resource temporarily unavailable)" in done.stderr, done.stderr
    place.collect()
    place.check_recordings([3])


def first_process_of_a_pid_namespace(rig, folder):
    wrap = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("a PID namespace is not permitted here")
    _, place = both(rig, folder, "processes", "use", wrap=wrap)
    # Everything in the namespace has ended with its first process, the collector perhaps between
    # finishing the recording and removing the session, which the next one to start then does.
    place.check_recordings([2])


def setuid_program_is_left_alone(rig, folder):
    if os.geteuid() != 0:
        raise Skipped("needs root to make one")
    place = Place(rig, folder, "setuid")
    for made in (folder, place.root, place.work, place.out):
        os.chmod(made, 0o777)
    program = place.work / "setuid-env"
    shutil.copy("/usr/bin/env", program)
    os.chmod(program, 0o4755)
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(program), "env"],
        env={"PATH": os.environ["PATH"], "LD_PRELOAD": rig.library, "GPUMEMTRACE": place.options},
        cwd=place.work, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    place.check_recordings([])


def runtime_that_is_unloaded(rig, folder):
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        faults = rig.build / "tests" / "faults"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(rig.build / "simcuda")}
        if traced:
            environment |= {"LD_PRELOAD": rig.library, "GPUMEMTRACE": place.options}
            environment |= place.environment
        outcomes.append(subprocess.run(
            [str(faults / "unload"), str(faults / "libplugin.so"), "5"], env=environment,
            cwd=place.work, capture_output=True, text=True, check=False,
        ))
    check_undisturbed(*outcomes)
    assert outcomes[0].returncode == 5, outcomes
    place.wait_for_collectors()
    place.check_recordings([10], left=5)


def child_that_a_subreaper_gets(rig, folder):
    """The one thing that cannot be hidden: a process that adopts orphans adopts the collector."""
    done = [
        Place(rig, folder, name).run("processes", "subreaper-waits", traced=traced).stdout
        for name, traced in (("alone", False), ("traced", True))
    ]
    assert done == ["no child\n", "a child\n"], done


# ---- Places that are full, missing or not for writing --------------------------------------------


def in_own_mounts(*mounts):
    """The words that run a command where `mounts`, shell commands, have been carried out."""
    script = " && ".join(["mount --make-rprivate /", *mounts, 'exec "$@"'])
    wrap = ("unshare", "--mount", "sh", "-c", script, "sh")
    if subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("mounting is not permitted here")
    return wrap


def shared_memory(rig, folder, mount, sees=None):
    """With /dev/shm as mounted; no directory for sessions is named."""
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        place.environment = {}
        outcomes.append(place.run("processes", "use", traced=traced, wrap=in_own_mounts(mount)))
    check_undisturbed(*outcomes)
    place.wait("a whole recording", lambda: [p for p in place.out.glob("*.gmt") if whole(place, p)])
    place.check_recordings([2])


def whole(place, path):
    return path.stat().st_size > 0 and place.info(path)["complete"]


def shared_memory_of_one_mebibyte(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o size=1m tmpfs /dev/shm")


def shared_memory_that_is_missing(rig, folder):
    shared_memory(rig, folder, "umount -l /dev/shm && rmdir /dev/shm 2>/dev/null || "
                  "mount -t tmpfs -o size=4k,nr_inodes=1 tmpfs /dev/shm")


def shared_memory_that_is_read_only(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o ro tmpfs /dev/shm")


def shared_memory_without_execution(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o noexec,nosuid,nodev tmpfs /dev/shm")


def session_directory_that_nobody_may_write_to(rig, folder):
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        mount = f"mount -t tmpfs -o ro,mode=0700 tmpfs {place.sessions}"
        outcomes.append(place.run("processes", "use", traced=traced, wrap=in_own_mounts(mount)))
    check_undisturbed(*outcomes)
    place.wait("a whole recording", lambda: [p for p in place.out.glob("*.gmt") if whole(place, p)])
    place.check_recordings([2])


def output_directory_that_is_read_only(rig, folder):
    place = Place(rig, folder, "traced")
    place.environment["XDG_STATE_HOME"] = str(folder)
    mount = f"mount -t tmpfs -o ro tmpfs {place.out}"
    done = place.run("processes", "use", wrap=in_own_mounts(mount))
    assert done.returncode == 5, done
    assert "(Read-only file system where it was asked for)" in done.stderr, done.stderr
    place.wait_for_collectors()
    place.out = folder / "gpumemtrace"
    place.check_recordings([2])


def output_directory_that_has_been_deleted(rig, folder):
    place = Place(rig, folder, "traced")
    place.environment["XDG_STATE_HOME"] = str(folder)
    place.out.rmdir()
    done = place.run("processes", "use")
    assert done.returncode == 5, done
    assert "(No such file or directory where it was asked for)" in done.stderr, done.stderr
    place.wait_for_collectors()
    place.out = folder / "gpumemtrace"
    place.check_recordings([2])


def output_directory_that_is_full(rig, folder):
    """The program goes on; the session keeps what the file had no room for."""
    place = Place(rig, folder, "traced")
    mount = f"mount -t tmpfs -o size=64k tmpfs {place.out}"
    fill = f"(cat /dev/zero >{place.out}/fill 2>/dev/null || true)"
    done = place.run("processes", "use", wrap=in_own_mounts(mount, fill))
    assert done.returncode == 5, done
    place.wait("its session", lambda: place.session_files(), seconds=1)
    for collector in collectors_of(place):
        kill_and_wait(collector)
    place.collect()
    place.check_recordings([2])


# ---- The collector's own fate --------------------------------------------------------------------


def collectors_of(place):
    """Processes that hold a session of this place open."""
    found = []
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if "gpumemtrace-col" not in (proc / "comm").read_text():
                continue
            links = [os.readlink(fd) for fd in (proc / "fd").iterdir()]
            if any(link.startswith(str(place.root)) for link in links):
                found.append(int(proc.name))
        except OSError:
            continue
    return found


def kill_and_wait(pid):
    """Until all its threads have ended, and with them its locks."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    os.kill(pid, signal.SIGKILL)
    ended, _, _ = select.select([pidfd], [], [], 20)
    os.close(pidfd)
    assert ended, f"process {pid} does not die"


def live_set(events):
    live = {}
    for event in events:
        if event.kind == "alloc":
            live[event.address] = event.size
        elif event.kind == "free" and event.result == 0:
            live.pop(event.address, None)
    return live


def collector_that_is_stopped_again_and_again(rig, folder):
    """History is overwritten meanwhile; what is live at the end is right all the same."""
    seed = int(os.environ.get("GMT_TEST_SEED", random.randrange(1 << 30)))
    choose = random.Random(seed)
    place = Place(rig, folder, "traced")
    command = [str(rig.build / "simcuda" / "with-simcuda")]
    command += [str(rig.build / "tests" / "programs" / "driver_alloc")]
    command += ["--threads", "4", "--count", "20000", "--live", "40", "--leak", "30", "--handover"]
    environment = {**os.environ, "LD_PRELOAD": rig.library, **place.environment}
    environment |= {
        "GPUMEMTRACE": f"stacks=none,ring=64KiB,exit_wait=10s,{place.options}",
        "SIMCUDA_LOG": str(folder / "log"),
        "SIMCUDA_MEMORY": "1000G",
    }
    with subprocess.Popen(
        command, env=environment, cwd=place.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:
        place.wait("a collector", lambda: collectors_of(place) or process.poll() is not None)
        for collector in collectors_of(place):
            while process.poll() is None and place.session_files():
                os.kill(collector, signal.SIGSTOP)
                time.sleep(choose.random() * 0.05)
                os.kill(collector, signal.SIGCONT)
                time.sleep(choose.random() * 0.05)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    place.wait_for_collectors()
    (path,) = place.out.glob("*.gmt")
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
    said = (
        f"{losses['written']} events, {losses['overrun']} overwritten, {len(want)} live: "
        f"{len(missing)} missing, {len(phantom)} phantom or of wrong size (seed {seed})"
    )
    assert len(want) == 120 and not missing and not phantom, said
    assert losses["overrun"] > 0, "nothing was overwritten, so nothing was tested"
    return said


def session_that_is_deleted(rig, folder):
    """Its collector and its program have it open: only others cannot find it any more."""
    place = Place(rig, folder, "traced")
    command = [str(rig.build / "simcuda" / "with-simcuda")]
    command += [str(rig.build / "tests" / "faults" / "processes"), "long"]
    environment = {**os.environ, "LD_PRELOAD": rig.library, **place.environment}
    environment["GPUMEMTRACE"] = f"stacks=none,exit_wait=20s,{place.options}"
    with subprocess.Popen(
        command, env=environment, cwd=place.work, stderr=subprocess.DEVNULL
    ) as process:
        place.wait("a session", place.session_files)
        place.session_files()[0].unlink()
        assert process.wait(timeout=120) == 5
    place.wait("a whole recording", lambda: [p for p in place.out.glob("*.gmt") if whole(place, p)])
    info = place.info(next(place.out.glob("*.gmt")))
    assert [s["allocations"] for s in info["snapshots"] if s["name"] == "exit"] == [1], info


def with_a_program_that_stops(place, wrap, meanwhile):
    """Runs a program that stops itself between two thousand calls, with its collector reading;
    calls meanwhile(pid of the collector) and lets it go on. Its exit code and stderr."""
    command = [*wrap, str(place.rig.build / "simcuda" / "with-simcuda")]
    command += [str(place.rig.build / "tests" / "faults" / "processes"), "stopped"]
    environment = {**os.environ, **place.environment, "LD_PRELOAD": place.rig.library}
    environment["GPUMEMTRACE"] = f"stacks=none,{place.options}"
    with subprocess.Popen(
        command, env=environment, cwd=place.work, stderr=subprocess.PIPE, text=True
    ) as process:
        stat = pathlib.Path(f"/proc/{process.pid}/stat")
        place.wait("its stop", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        place.wait("a recording", lambda: [p for p in place.out.glob("*.gmt") if p.stat().st_size])
        (collector,) = collectors_of(place)
        meanwhile(collector)
        os.kill(process.pid, signal.SIGCONT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 5, (process.returncode, err)
    return err


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


def collector_that_is_killed(rig, folder):
    """The program says so at its end, and the session has everything."""
    place = Place(rig, folder, "traced")
    err = with_a_program_that_stops(place, [], kill_and_wait)
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
    done = place.run("processes", "use")
    assert done.returncode == 5, done
    assert "the collector has not started: " in done.stderr, done.stderr
    place.collect()


def reader_of_stderr_that_has_gone(rig, folder):
    place = Place(rig, folder, "traced")
    command = [str(rig.build / "simcuda" / "with-simcuda")]
    command += [str(rig.build / "tests" / "faults" / "processes"), "use"]
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "LD_PRELOAD": rig.library, **place.environment}
    done = subprocess.run(
        command, env=environment | {"GPUMEMTRACE": place.options}, cwd=place.work, stderr=write,
        check=False, restore_signals=True,
    )
    os.close(write)
    assert done.returncode == 5, f"{done.returncode}: {-signal.SIGPIPE} is SIGPIPE"
    place.wait_for_collectors()
    place.check_recordings([2])


def reader_of_stderr_that_is_stuck(rig, folder):
    place = Place(rig, folder, "traced")
    command = [str(rig.build / "simcuda" / "with-simcuda")]
    command += [str(rig.build / "tests" / "faults" / "processes"), "use"]
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while os.write(write, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(write, True)
    environment = {**os.environ, "LD_PRELOAD": rig.library, **place.environment}
    done = subprocess.run(
        command, env=environment | {"GPUMEMTRACE": place.options}, cwd=place.work, stderr=write,
        check=False, timeout=30,
    )
    os.close(write)
    os.close(read)
    assert done.returncode == 5, done
    place.wait_for_collectors()
    place.check_recordings([2])


# ---- What a target pays in memory ----------------------------------------------------------------


def memory_of_the_target_grows_by_little(rig, folder):
    script = (
        "import ctypes, sys; sys.stdout.flush()\n"
        "runtime = ctypes.CDLL('libcudart.so.13'); p = ctypes.c_void_p()\n"
        "assert ctypes.CDLL(None).cudaMalloc(ctypes.byref(p), ctypes.c_size_t(10007)) == 0\n"
        "rollup = open('/proc/self/smaps_rollup').read()\n"
        "print(next(l.split()[1] for l in rollup.splitlines() if l.startswith('Anonymous:')))\n"
    )
    anonymous = {}
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        environment = {**os.environ, "GPUMEMTRACE": place.options, **place.environment}
        if traced:
            environment["LD_PRELOAD"] = rig.library
        done = subprocess.run(
            [str(rig.build / "simcuda" / "with-simcuda"), sys.executable, "-c", script],
            env=environment, capture_output=True, text=True, check=False, cwd=place.work,
        )
        assert done.returncode == 0, done.stderr
        anonymous[name] = int(done.stdout) << 10
    place.wait_for_collectors()
    place.check_recordings([1])
    more = anonymous["traced"] - anonymous["alone"]
    assert more <= 4 << 20, anonymous
    return f"{more / 1024:.0f} KiB more"


# ---- The runner ----------------------------------------------------------------------------------


def cases():
    tables = (
        ("moment", MOMENTS, check_moment),
        ("way", WAYS, check_way),
        ("reason", REASONS, check_reason),
        ("way", WITHOUT_COLLECTOR, check_without_collector),
    )
    for prefix, names, check in tables:
        for name in names:
            yield f"{prefix}:{name}", lambda rig, folder, n=name, c=check: c(rig, folder, n)
    for case in (
        daemon_whose_parents_have_gone,
        process_limit_leaves_the_session,
        first_process_of_a_pid_namespace,
        setuid_program_is_left_alone,
        runtime_that_is_unloaded,
        child_that_a_subreaper_gets,
        shared_memory_of_one_mebibyte,
        shared_memory_that_is_missing,
        shared_memory_that_is_read_only,
        shared_memory_without_execution,
        session_directory_that_nobody_may_write_to,
        output_directory_that_is_read_only,
        output_directory_that_has_been_deleted,
        output_directory_that_is_full,
        collector_that_is_stopped_again_and_again,
        session_that_is_deleted,
        collector_of_a_real_time_program_is_not,
        collector_that_is_killed,
        collector_that_cannot_load_its_libraries,
        reader_of_stderr_that_has_gone,
        reader_of_stderr_that_is_stuck,
        memory_of_the_target_grows_by_little,
    ):
        yield case.__name__, case


def run_case(rig, name, case):
    """(outcome, what to print)."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="gmt-faults.") as folder:
        started, outcome, more = time.monotonic(), "ok", ""
        try:
            said = case(rig, pathlib.Path(folder))
            more = "" if said is None else f": {said}"
        except Skipped as skipped:
            outcome, more = "skip", f": {skipped}"
        except Exception:  # noqa: BLE001  one failing case must not hide the others
            outcome, more = "FAILED", f"\n{traceback.format_exc(limit=-2)}"
    return outcome, f"{outcome:6} {name} ({time.monotonic() - started:.1f} s){more}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    rig = Rig(args.build.resolve())
    chosen = [c for c in cases() if not args.names or c[0] in args.names] * args.repeat
    counts = {"ok": 0, "FAILED": 0, "skip": 0}
    # Most of a case is waiting for processes.
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        for outcome, text in pool.map(lambda c: run_case(rig, *c), chosen):
            counts[outcome] += 1
            print(text, flush=True)
    print("{ok} passed, {FAILED} failed, {skip} skipped".format(**counts))
    return 1 if counts["FAILED"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
