#!/usr/bin/env python3
"""Runs the commands of docs/fleet.md with the launchers that this machine has: Slurm's sbatch and srun, and mpirun. Each rank has
a recording and a digest, and `ranks` compares them.

Usage: launchers_check.py --build DIR [NAME...]
"""

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import slurm  # noqa: E402
from rig import ROOT, main_of_cases  # noqa: E402
from waiting import HANG_S  # noqa: E402

RANKS = 4
PAGE = (ROOT / "docs/fleet.md").read_text(encoding="utf-8")


def command_of_the_page(rig, heading):
    """Returns the commands of the first block below a heading, about a program of the simulated device."""
    block = re.search(rf"### {heading}\n.*?```sh\n(.*?)```", PAGE, re.DOTALL).group(1)
    program = " ".join(rig.simulated(rig.driver_alloc("--count", "2")))
    assert "python train.py" in block, block
    return block.replace("python train.py", program)


def check(rig, folder, out):
    names = sorted(path.name for path in out.iterdir())
    assert names == [f"r{rank}.gmt{suffix}" for rank in range(RANKS) for suffix in ("", ".digest")], names
    ranks = subprocess.run([rig.program, "ranks", out], capture_output=True, text=True, check=True, cwd=folder).stdout
    assert ranks.startswith(f"{RANKS} ranks agree"), ranks
    return ranks


def environment_of(rig, folder, more):
    (folder / "sessions").mkdir(mode=0o700, exist_ok=True)
    found = rig.environment(folder, more)
    return {**found, "PATH": f"{pathlib.Path(rig.program).parent}:{found['PATH']}"}


def sbatch_and_srun(rig, folder):
    why = slurm.why_none()
    if why:
        print(f"       skipped: {why}")
        return
    script = folder / "job.sh"
    script.write_text(command_of_the_page(rig, "Slurm"), encoding="utf-8")
    with slurm.cluster(folder / "slurm", RANKS) as environment:
        done = subprocess.run(["sbatch", "--wait", "--parsable", "--nodes=1", f"--ntasks={RANKS}", f"--ntasks-per-node={RANKS}",
                               "--gpus-per-node=0", "--output=job.log", script],
                              env=environment_of(rig, folder, environment), cwd=folder, capture_output=True, text=True, timeout=HANG_S,
                              check=False)
        printed = (folder / "job.log").read_text(encoding="utf-8")
        assert done.returncode == 0, (done, printed)
    job = done.stdout.strip()
    # The last command of the script compares the ranks.
    assert printed.endswith(check(rig, folder, folder / "out" / job).replace(str(folder) + "/", "")), printed


def mpirun(rig, folder):
    if shutil.which("mpirun") is None:
        print("       skipped: no mpirun: run scripts/setup")
        return
    command = command_of_the_page(rig, "MPI").replace("mpirun -n 16", f"mpirun --oversubscribe -n {RANKS}")
    more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(["bash", "-c", command], env=environment_of(rig, folder, more), cwd=folder, capture_output=True, text=True,
                          timeout=HANG_S, check=False)
    assert done.returncode == 0, done
    check(rig, folder, folder / "out")


CASES = [sbatch_and_srun, mpirun]

if __name__ == "__main__":
    sys.exit(main_of_cases([(case.__name__, case) for case in CASES], __doc__, torch=False))
