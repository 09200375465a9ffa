"""Shared by the checks of `attach`: gpu_loop on the simulated device, and commands of the program on it."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import cases

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import HANG_S, wait_for  # noqa: E402


class Rig(cases.Rig):
    def __init__(self, build, folder):
        super().__init__(build, folder)
        (folder / "sessions").mkdir(mode=0o700)
        self.loop = str(build / "tests" / "inject" / "gpu_loop")
        self.simcuda = str(build / "simcuda")
        self.environment = {**os.environ, "GPUMEMTRACE_DIR": str(folder / "sessions")}

    def loops(self, *words, before=(), children=0, loop="", **environment):
        """Starts gpu_loop or a variant of it, until ends_well(). `pids` are the processes that use the GPU."""
        process = self.start(*before, self.loop + loop, *words, env={**self.environment, **environment},
                             stdin=subprocess.PIPE)
        lines = [process.output] + [process.stdout.readline() for _ in range(1, children)]
        process.pids = [int(line.split()[1]) for line in lines]
        return process

    def verb(self, *words, code=0, **more):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True,
                              timeout=HANG_S, cwd=self.folder, env=self.environment, check=False, **more)
        assert done.returncode == code, (words, done)
        return done

    def attach(self, pid, *options, code=0):
        return self.verb("attach", pid, *options, code=code)

    def info(self, path):
        return json.loads(self.verb("info", "--json", path).stdout)

    def wait_recorded(self, path, minimum=20):
        """Waits until that many allocations are in the file."""

        def is_there():
            done = subprocess.run([self.program, "info", "--json", path], capture_output=True, text=True,
                                  cwd=self.folder, check=False)
            return done.returncode == 0 and json.loads(done.stdout)["events"].get("alloc", 0) >= minimum

        wait_for(f"{minimum} allocations", is_there, pause_s=0.1)

    def watch(self, pid, *options, until):
        """Runs `attach --watch` and interrupts it when `until` accepts the lines printed to stdout so far."""
        process = subprocess.Popen([self.program, "attach", str(pid), *options, "--watch", "1h"], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if until(lines):
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=HANG_S)
        assert process.returncode == 0, (lines, out, err)
        return lines + out.splitlines(), err

    def check_recording(self, path, minimum=5):
        """Checks that the recording is complete, has events and no losses, and that the kept blocks are live."""
        info = self.info(path)
        assert info["complete"], info
        assert info["events"].get("alloc", 0) >= minimum, info["events"]
        losses = info["losses"]
        assert losses["written"] == losses["delivered"], losses
        held = info["events"].get("alloc", 0) - info["events"].get("free", 0)
        kept = info["events"].get("alloc", 0) / 11
        assert abs(held - kept) < 3, info["events"]
        return info


def ends_well(process):
    """Closes the input of the process and checks that it ends successfully."""
    out, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 0 and out.rstrip().endswith("ok"), (process.returncode, out)

