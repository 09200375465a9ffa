"""Shared by the checks of faults: a place in which a program runs, alone or preloaded, and the files that it leaves.
"""

import collections
import copy
import json
import os
import pathlib
import re
import subprocess
import sys

import attached

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import HANG_S, wait_for  # noqa: E402


class Skipped(Exception):
    pass


class Place:
    """The directory of one case: its working directory, sessions and recordings."""

    def __init__(self, rig, root, name):
        self.rig, self.root = rig, root / name
        self.is_injected = rig.injects  # the attaching client injects the library; the program starts without it
        self.work, self.out, self.sessions, self.wants = (
            self.root / d for d in ("work", "out", "sessions", "wants")
        )
        for folder in (self.work, self.out, self.sessions, self.wants):
            folder.mkdir(parents=True, mode=0o700)
        self.wants.chmod(0o777)
        self.options = "dormant" if rig.attaches else f"output={self.out}/%p.gmt"
        self.environment = {"GPUMEMTRACE_DIR": str(self.sessions)}
        self.more_environment = {}  # for both runs
        self.preload = "{ours}"  # LD_PRELOAD; {ours} is empty in a run alone
        self.attacher = None
        self.attach_wrap, self.attach_environment = (), {}  # for the attaching client
        self.stays = attached.STAYS  # duration of each recording in mode reattached
        self.attach_codes = (0,)  # allowed exit codes of an attach that had started

    def command(self, program, *arguments):
        path = self.rig.build / "tests" / "faults" / program
        return [str(self.rig.build / "simcuda" / "with-simcuda"), str(path), *arguments]

    def preloaded(self):
        """Returns the environment that loads our library into a traced program."""
        return {} if self.is_injected else {"LD_PRELOAD": self.rig.library}

    def traced_environment(self, options=""):
        """Returns the environment of a traced process without LD_PRELOAD. From now on, attaches to processes on request."""
        options = ",".join(filter(None, (options, self.options)))
        environment = {"GPUMEMTRACE": options, **self.environment}
        if self.rig.attaches:
            environment["GMT_FAULT_ATTACH"] = str(self.wants)
            if self.attacher is None:
                self.attacher = attached.Attacher(self, self.rig.mode == "reattached")
                self.rig.attachers.append(self.attacher)
        return environment

    def environment_of_verbs(self):
        return {**os.environ, **self.environment, **self.attach_environment}

    def run(self, program, *arguments, traced=True, wrap=()):
        command = self.command(program, *arguments)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        environment |= self.more_environment
        if traced:
            environment |= self.traced_environment()
        preload = self.preload.format(ours=self.preloaded().get("LD_PRELOAD", "") if traced else "").strip(":")
        if preload:
            command = ["env", f"LD_PRELOAD={preload}", *command]
        return subprocess.run(
            [*wrap, *command], env=environment, cwd=self.work, capture_output=True, text=True,
            timeout=HANG_S, check=False,
        )

    def session_files(self):
        return sorted(self.sessions.glob("*.session"))

    def wait_for_collectors(self):
        if self.attacher is not None:
            self.attacher.wait()
        if self.rig.mode == "reattached":
            self.sweep()
        wait_for(lambda: f"the end of every collector: {self.states()}", lambda: not self.session_files())
        # The file of a session is removed before its socket.
        wait_for("an empty directory of sessions", lambda: not list(self.sessions.iterdir()))

    def states(self):
        """Returns {session: state}."""
        done = subprocess.run(
            [self.rig.program, "list", "--json"], env=self.environment_of_verbs(),
            capture_output=True, text=True, check=True,
        )
        listed = {s["path"]: s["state"] for s in json.loads(done.stdout)["sessions"]}
        return {path: listed[str(path)] for path in self.session_files() if str(path) in listed}

    def sweep(self):
        """Cleans up sessions left by programs that exec: an empty one is removed by the next collector, one that was
        detached at that very moment is passed to `collect`."""
        wait_for("the end of collectors", lambda: "recording" not in self.states().values())
        for number, (path, state) in enumerate(self.states().items()):
            if state == "orphaned":
                self.collect(path, f"collected.{number}.gmt")
        if not self.session_files():
            return
        environment = {**os.environ, **self.environment, "LD_PRELOAD": self.rig.library}
        environment["GPUMEMTRACE"] = f"output={self.root}/last.gmt,quiet"
        subprocess.run(self.command("processes", "use"), env=environment, cwd=self.work, check=False)

    def recordings(self):
        """Returns the recordings without their older parts, which are read together with them."""
        return [p for p in sorted(self.out.glob("*.gmt")) if ".part-" not in p.name]

    def info(self, path):
        done = subprocess.run(
            [self.rig.program, "info", "--json", str(path)], capture_output=True, text=True,
            check=False,
        )
        assert done.returncode == 0, f"{path}: {done.stderr}"
        return json.loads(done.stdout)

    def check_recordings(self, allocations, left=None):
        """Checks that there is one complete recording for each number, with that many allocations, `left` of them live."""
        found = []
        for path in self.recordings():
            info = self.info(path)
            self.rig.count(info)
            assert info["complete"], (path, info)
            losses = info["losses"]
            lost = sum(losses[k] for k in ("overrun", "holes", "abandoned", "backlog"))
            assert losses["written"] == losses["delivered"] and lost == 0, losses
            events = info["events"]
            found.append((events["alloc"], events["free"]))
            if self.rig.mode == "reattached":
                continue  # earlier allocations are freed in a recording that does not contain them
            live = [s["allocations"] for s in info["snapshots"] if s["name"] in ("exit", "detach")]
            assert live == [events["alloc"] - events["free"]], (live, events)
            assert left is None or live == [left], live
        counts = sorted(a for a, _ in found)
        wanted = sorted(a + attached.CHURN if self.attacher and a else a for a in allocations)
        if self.rig.mode == "reattached":
            wanted, counts = sum(wanted), sum(counts)
            assert counts <= wanted, f"{counts} allocations recorded of {wanted}"
            return found
        assert counts == wanted, f"allocations {counts}, should be {wanted}"
        return found

    def check_that_it_was_refused(self, words):
        """Checks that every attach was refused for that reason, and left nothing."""
        self.attacher.wait()
        refusals = self.attacher.refusals
        assert refusals and all(re.search(words, output) for output in refusals), refusals
        assert not self.attacher.begun
        self.wait_for_collectors()
        self.check_recordings([])

    def collect(self, session=None, name="collected.gmt"):
        """Runs `gpumemtrace collect` on a session, or on the only one, and returns the recording."""
        if session is None:
            (session,) = self.session_files()
        done = subprocess.run(
            [self.rig.program, "collect", str(session), "-o", str(self.out / name)],
            capture_output=True, text=True, check=False,
        )
        assert done.returncode == 0, done.stderr


class Rig:
    """`mode`: "preloaded", or a mode of attached.py."""

    def __init__(self, build, mode="preloaded"):
        self.build, self.mode, self.attaches = build, mode, mode != "preloaded"
        self.attachers = []  # for all places
        self.injects = False
        self.seed = 1
        self.tally = collections.Counter()
        self.program = str(build / "bin" / "gpumemtrace")
        self.library = subprocess.run(
            [self.program, "preload-path"], capture_output=True, text=True, check=True
        ).stdout.strip()

    def of_case(self, injects, seed):
        """Returns a copy of this rig for one case. `injects`: the attaching client injects the library."""
        own = copy.copy(self)
        own.injects, own.seed = injects, seed
        return own

    def attachers_of(self, folder):
        """Returns the attachers of the case in that directory, after closing them."""
        own = [a for a in self.attachers if str(a.place.root).startswith(folder + "/")]
        for attacher in own:
            attacher.close()
            self.attachers.remove(attacher)
            way = "with injection" if attacher.place.is_injected else "of dormant programs"
            self.tally[f"attaches {way}"] += attacher.begun
            self.tally["clients"] += attacher.clients.connected
            self.tally["bytes read by clients"] += attacher.clients.read
        return own

    def count(self, info):
        self.tally["recordings"] += 1
        self.tally["events"] += info["losses"]["written"]
        history = info.get("history") or {}
        self.tally["parts"] += history.get("files", 1)


def own_lines(done):
    return [line for line in done.stderr.splitlines() if line.startswith("gpumemtrace: ")]


def check_undisturbed(alone, traced):
    assert traced.returncode == alone.returncode, (traced.returncode, alone.returncode)
    assert traced.stdout == alone.stdout, (traced.stdout, alone.stdout)
    other = [line for line in traced.stderr.splitlines() if line not in own_lines(traced)]
    assert other == alone.stderr.splitlines(), (traced.stderr, alone.stderr)


def both(rig, folder, program, *arguments, wrap=(), prepare=None):
    """Runs a program alone and traced. Returns the traced run and its place."""
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        if prepare is not None:
            prepare(place)
        outcomes.append(place.run(program, *arguments, traced=traced, wrap=wrap))
    check_undisturbed(*outcomes)
    return outcomes[1], place


def in_own_mounts(*mounts):
    """Returns a command prefix that runs a command after `mounts`, shell commands, in a separate mount namespace."""
    script = " && ".join(["mount --make-rprivate /", *mounts, 'exec "$@"'])
    wrap = ("unshare", "--mount", "sh", "-c", script, "sh")
    if subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("mounting is not permitted here")
    return wrap


def whole(place, path):
    return path.stat().st_size > 0 and place.info(path)["complete"]


def link_of(fd):
    """Returns the target of a descriptor in /proc, or "" if it has been closed."""
    try:
        return os.readlink(fd)
    except FileNotFoundError:
        return ""


def collectors_of(place):
    """Returns the processes that have a session of this place open."""
    found = []
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if "gpumemtrace-col" not in (proc / "comm").read_text():
                continue
            if any(link_of(fd).startswith(str(place.root)) for fd in (proc / "fd").iterdir()):
                found.append(int(proc.name))
        except OSError:
            continue
    return found
