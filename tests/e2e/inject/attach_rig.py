"""What checks of `attach` work with: gpu_loop on the simulated device, and the program's verbs on it."""

import json
import os
import subprocess
import time

import cases


class Rig(cases.Rig):
    def __init__(self, build, folder):
        super().__init__(build, folder)
        (folder / "sessions").mkdir(mode=0o700)
        self.loop = str(build / "tests" / "inject" / "gpu_loop")
        self.simcuda = str(build / "simcuda")
        self.environment = {**os.environ, "GPUMEMTRACE_DIR": str(folder / "sessions")}

    def loops(self, *words, before=(), children=0, loop="", **environment):
        """gpu_loop, or another way of it; `pids` are those of the processes that use the GPU."""
        process = self.start(*before, self.loop + loop, *words, env={**self.environment, **environment})
        lines = [process.said] + [process.stdout.readline() for _ in range(1, children)]
        process.pids = [int(line.split()[1]) for line in lines]
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


def ends_well(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and out.rstrip().endswith("ok"), (process.returncode, out)


def wait(what, done, seconds=60):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.005)
