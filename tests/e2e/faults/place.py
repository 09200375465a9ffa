"""What the checks of faults share: a place where a program runs, alone or preloaded, and what it
left there.
"""

import json
import os
import pathlib
import select
import signal
import subprocess
import time


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
        self.more_environment = {}  # of both runs
        self.preload = "{ours}"  # LD_PRELOAD; {ours} is empty in a run alone

    def run(self, program, *arguments, traced=True, wrap=()):
        command = [str(self.rig.build / "simcuda" / "with-simcuda")]
        command += [str(self.rig.build / "tests" / "faults" / program), *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        environment |= self.more_environment
        if traced:
            environment |= {"GPUMEMTRACE": self.options, **self.environment}
        preload = self.preload.format(ours=self.rig.library if traced else "").strip(":")
        if preload:
            command = ["env", f"LD_PRELOAD={preload}", *command]
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


def in_own_mounts(*mounts):
    """The words that run a command where `mounts`, shell commands, have been carried out."""
    script = " && ".join(["mount --make-rprivate /", *mounts, 'exec "$@"'])
    wrap = ("unshare", "--mount", "sh", "-c", script, "sh")
    if subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("mounting is not permitted here")
    return wrap


def whole(place, path):
    return path.stat().st_size > 0 and place.info(path)["complete"]


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
