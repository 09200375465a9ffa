"""Cases of processes that need special preparation.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import attached
from place import Place, Skipped, both, check_undisturbed, whole
from waiting import wait_for


def daemon_whose_parents_have_gone(rig, folder):
    for way, allocations in (("daemon", [2]), ("daemon-late", [1, 2])):
        done, place = both(rig, folder / way, "processes", way)
        wait_for("the daemon's work", lambda p=place: (p.work / "done").exists())
        place.wait_for_collectors()
        place.check_recordings(allocations)


def for_another_user(place):
    """Lets an unprivileged user record here."""
    if os.geteuid() != 0:
        raise Skipped("needs root to change the user")
    for made in (place.root.parent, place.root, place.out, place.work):
        os.chmod(made, 0o777)
    os.chown(place.sessions, 65534, 65534)


def process_limit_leaves_the_session(rig, folder):
    done, place = both(rig, folder, "processes", "limit-nproc", prepare=for_another_user)
    if rig.attaches:  # the attaching client starts the collector
        place.wait_for_collectors()
        place.check_recordings([3])
        return
    assert "no collector (Resource temporarily unavailable)" in done.stderr, done.stderr
    place.collect()
    place.check_recordings([3])


def rights_are_dropped_where_that_user_can_write(rig, folder):
    _, place = both(rig, folder, "processes", "drop-rights", prepare=for_another_user)
    place.wait_for_collectors()
    place.check_recordings([1])


def first_process_of_a_pid_namespace(rig, folder):
    wrap = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("a PID namespace is not permitted here")
    _, place = both(rig, folder, "processes", "use", wrap=wrap)
    # Everything in the namespace ended with its first process, possibly including the collector
    # between finishing the recording and removing the session; the next collector then removes it.
    # A collector started by an attaching client is outside the namespace and ends a moment later.
    if rig.attaches:
        wait_for("a whole recording", lambda: [p for p in place.recordings() if whole(place, p)])
    place.check_recordings([2])


def clocks_of_a_time_namespace(rig, folder):
    """Its clocks differ from those of the machine, and so does the start time of a process."""
    wrap = ("unshare", "--time", "--fork", "--monotonic", "100000", "--boottime", "200000")
    if subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("a time namespace is not permitted here")
    _, place = both(rig, folder, "processes", "use", wrap=wrap)
    place.wait_for_collectors()
    place.check_recordings([2])


def run_returns_when_all_of_its_recordings_are_complete(rig, folder):
    if rig.attaches:
        raise Skipped("`run` attaches to nothing")
    place = Place(rig, folder, "traced")
    wrap = [rig.program, "run", "--quiet", "-o", f"{place.out}/%p.gmt", "--"]
    environment = {**os.environ, **place.environment}
    command = [*wrap, str(rig.build / "simcuda" / "with-simcuda")]
    command += [str(rig.build / "tests" / "faults" / "processes"), "many"]
    done = subprocess.run(
        command, env=environment, cwd=place.work, capture_output=True, text=True, check=False
    )
    assert done.returncode == 5 and done.stdout == "64 ended\n", done
    place.check_recordings([5] * 64)


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
            environment |= {**place.preloaded(), **place.traced_environment()}
        outcomes.append(subprocess.run(
            [str(faults / "unload"), str(faults / "libplugin.so"), "5"], env=environment,
            cwd=place.work, capture_output=True, text=True, check=False,
        ))
    check_undisturbed(*outcomes)
    assert outcomes[0].returncode == 5, outcomes
    place.wait_for_collectors()
    # Each loaded module requests an attach, with an additional allocation, and churns.
    again = 4 * (attached.CHURN + 1) if rig.attaches else 0
    place.check_recordings([10 + again], left=None if rig.mode == "reattached" else 5)


def child_that_a_subreaper_gets(rig, folder):
    """The only visible difference: a process that adopts orphans adopts the collector. The collector of an attach is not
    an orphan."""
    done = [
        Place(rig, folder, name).run("processes", "subreaper-waits", traced=traced).stdout
        for name, traced in (("alone", False), ("traced", True))
    ]
    assert done == ["no child\n", "no child\n" if rig.attaches else "a child\n"], done


def memory_of_the_target_grows_by_little(rig, folder):
    if rig.attaches:
        raise Skipped("tests/e2e/attach/dormant_check.py measures that")
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


CASES = (
    daemon_whose_parents_have_gone,
    process_limit_leaves_the_session,
    rights_are_dropped_where_that_user_can_write,
    first_process_of_a_pid_namespace,
    clocks_of_a_time_namespace,
    run_returns_when_all_of_its_recordings_are_complete,
    setuid_program_is_left_alone,
    runtime_that_is_unloaded,
    child_that_a_subreaper_gets,
    memory_of_the_target_grows_by_little,
)
