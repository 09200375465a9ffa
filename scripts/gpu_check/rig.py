"""The product, the test programs, and how to run commands on the device."""

import dataclasses
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from .recording import Recording

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
TAIL = 3000  # number of characters of an output to keep
# Environment variables of the caller that must not influence the checks.
OURS = ("GPUMEMTRACE", "LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "SIMCUDA_", "PYTORCH_")


class Failed(Exception):
    """A command that failed or timed out."""

    def __init__(self, done):
        self.done = done
        how = "was stopped after" if done.timed_out else f"ended with {done.code} after"
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        super().__init__(f"{how} {done.seconds:.1f} s: {last}")


@dataclasses.dataclass
class Done:
    """A finished command."""

    command: list
    code: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool

    def reported(self):
        """Returns it as JSON data."""
        return {
            "command": [str(word)[:300] for word in self.command],
            "code": self.code,
            "seconds": round(self.seconds, 2),
            "timed_out": self.timed_out,
            "stderr_tail": self.stderr[-TAIL:],
        }


class Rig:
    """`simulated`: build directory of the simulated device, or None to use the machine's own GPU."""

    def __init__(self, python, simulated=None, quick=False):
        self.python, self.simulated, self.quick = python, simulated, quick
        places = [ROOT, simulated] if simulated else [ROOT, ROOT / "build/release", ROOT / "build/dev"]
        self.product = next((f for f in places if (f / "bin/gpumemtrace").exists()), None)
        if self.product is None:
            sys.exit("gpu-check: no bin/gpumemtrace next to this script. Create a bundle with: scripts/bundle DIR")
        self.program = str(self.product / "bin" / "gpumemtrace")
        self.library = str(self.product / "lib" / "libgpumemtrace.so")
        self.built_folders = [ROOT / "tests/programs/built", (simulated or ROOT / "build/dev") / "tests/programs"]
        self.folder = None  # directory of the running check
        self.runs = []  # commands of the running check
        self.deadline = float("inf")
        self.library_folders = []  # CUDA libraries, for programs that find them by name only
        self.compiled = None  # directory of programs built by the machine's own compiler
        self.machine = {}  # PyTorch's description of it

    # ---- Programs -------------------------------------------------------------------------------

    def built(self, name, compiled=False):
        """Returns the path of a compiled program or plugin, or None."""
        folders = [self.compiled] if compiled else self.built_folders
        return next((f / name for f in folders if f and (f / name).exists()), None)

    def on_device(self, command):
        if self.simulated:
            return [str(self.simulated / "simcuda" / "with-simcuda"), *map(str, command)]
        return [str(word) for word in command]

    # ---- Running --------------------------------------------------------------------------------

    def left(self):
        return self.deadline - time.monotonic()

    def environment(self, more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        if self.library_folders:
            known = kept.get("LD_LIBRARY_PATH", "")
            kept["LD_LIBRARY_PATH"] = ":".join([*map(str, self.library_folders), *filter(None, [known])])
        if self.folder:
            kept["GPUMEMTRACE_DIR"] = str(self.sessions())
        return {**kept, **more}

    def sessions(self):
        folder = self.folder / "sessions"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def start(self, command, **more):
        """Starts a process with pipes in its own process group; stop() ends it and its children."""
        return subprocess.Popen(
            [str(word) for word in command], env=self.environment(more), cwd=self.folder, text=True,
            errors="replace", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip

    def run(self, command, seconds=120, fails=False, **more):
        """Runs a command until it ends or times out, and returns a Done. Raises Failed if it fails, unless `fails`
        is set."""
        began = time.monotonic()
        process = self.start(command, **more)
        timed_out = False
        try:
            stdout, stderr = process.communicate(timeout=max(0.1, min(seconds, self.left())))
        except subprocess.TimeoutExpired:
            timed_out = True
            stdout, stderr = stop(process)
        done = Done(command, process.returncode, stdout, stderr, time.monotonic() - began, timed_out)
        self.runs.append(done.reported())
        if not fails and (timed_out or done.code != 0):
            raise Failed(done)
        return done

    def plain(self, command, **more):
        """Runs on the device without recording."""
        return self.run(self.on_device(command), **more)

    def record(self, name, command, *options, fails=False, seconds=120, **more):
        """Runs on the device under `gpumemtrace run`. Returns a Recording."""
        path = self.new_path(name)
        ours = [self.program, "run", "--quiet", "--exit-wait", "30s", "-o", path, *options, "--"]
        done = self.run([*ours, *self.on_device(command)], fails=fails, seconds=seconds, **more)
        return Recording(self, path, done)

    def new_path(self, name):
        """Returns a new path for a recording, because the product does not overwrite files but chooses another name."""
        number = next(n for n in itertools.count() if not (self.folder / f"{name}-{n}.gmt").exists())
        return self.folder / f"{name}-{number}.gmt"

    def wait_for(self, path, seconds=30):
        """Waits until the collector of an injected process has completed this recording."""
        until = time.monotonic() + min(seconds, self.left())
        while time.monotonic() < until:
            if path.exists() and not list(self.sessions().glob("*.session")):
                return True
            time.sleep(0.02)
        return path.exists()

    # ---- CUDA of this machine -------------------------------------------------------------------

    def find_cuda(self):
        """Sets library_folders to the directory of the runtime libraries that programs link by name."""
        if self.simulated:  # for child processes without the preloaded libraries
            self.library_folders = [self.simulated / "simcuda"]
            return
        places = [pathlib.Path(p) for p in ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib")]
        asked = self.run([self.python, "-c", "import sys; print('\\n'.join(sys.path))"], fails=True)
        for folder in filter(None, asked.stdout.splitlines()):
            places = [pathlib.Path(folder) / "nvidia/cu13/lib",
                      pathlib.Path(folder) / "nvidia/cuda_runtime/lib", *places]
        self.library_folders = [p for p in places if (p / "libcudart.so.13").exists()][:1]

    def nvcc(self):
        found = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        return found if pathlib.Path(found).exists() else None


def stop(process):
    """Kills a process and its group. Returns its output."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        return process.communicate(timeout=10)
    except subprocess.TimeoutExpired:  # a process outside the group holds the pipe
        return "", ""
