#!/usr/bin/env python3
"""Runs the commands of docs/fleet.md with the launchers that this machine has: Slurm's sbatch and srun, and mpirun. Each rank has
a recording and a digest, and `ranks` compares them. The manifests for Kubernetes are validated by its schemas, and the command of
their container is run without a cluster.

Usage: launchers_check.py --build DIR [NAME...]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / name) for name in ("recording", "control")]
import slurm  # noqa: E402
from control_check import free_port  # noqa: E402
from rig import ROOT, main_of_cases  # noqa: E402
from waiting import HANG_S  # noqa: E402

RANKS = 4
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "gpumemtrace"
KUBERNETES = CACHE / "kubernetes/bin/python"  # with its schemas
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


def secret_volume(folder):
    """Makes a folder as Kubernetes mounts a secret: the file is a link into a folder that is a link itself."""
    (folder / "..2026_11_27").mkdir(parents=True)
    token = folder / "..2026_11_27" / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n", encoding="utf-8")
    token.chmod(0o400)
    (folder / "..data").symlink_to("..2026_11_27")
    (folder / "token").symlink_to("..data/token")


def kubernetes_manifests_are_valid_and_their_command_records(rig, folder):
    if not KUBERNETES.exists():
        print("       skipped: the schemas of Kubernetes are not installed: run scripts/setup --all")
        return
    text = re.search(r"### Kubernetes\n.*?```yaml\n(.*?)```", PAGE, re.DOTALL).group(1)
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    (version,) = re.findall(r"schemas of Kubernetes (\S+)", PAGE)
    for manifest, is_valid in ((text, True), (text.replace("completionMode", "completionmode"), False),
                               (text.replace("containerPort: 9400", "containerPort: http"), False)):
        (folder / "checked.yaml").write_text(manifest, encoding="utf-8")
        done = subprocess.run([KUBERNETES, "-m", "kubernetes_validate", "--strict", "-k", version, folder / "checked.yaml"],
                              capture_output=True, text=True, timeout=HANG_S, check=False)
        assert (done.returncode == 0) == is_valid, (manifest, done)
    read = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"
    manifests = json.loads(subprocess.run([KUBERNETES, "-c", read], input=text, capture_output=True, text=True, check=True).stdout)
    (job,) = (manifest for manifest in manifests if manifest["kind"] == "Job")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]} == {"recordings", "token"}, pod
    (token,) = (volume["secret"] for volume in pod["volumes"] if "secret" in volume)
    assert token["defaultMode"] == 0o400, token
    secret_volume(folder / "token")
    port = free_port()
    options = container["command"][:container["command"].index("--") + 1]
    assert f":{container['ports'][0]['containerPort']}+" in " ".join(options), options
    for old, new in ((mounts["recordings"], str(folder / "recordings")), (mounts["token"], str(folder / "token")),
                     (":9400+", f":{port}+")):
        options = [option.replace(old, new) for option in options]
    more = {"JOB_NAME": job["metadata"]["name"], "JOB_COMPLETION_INDEX": "1"}
    done = subprocess.run([*options, *rig.simulated(rig.driver_alloc("--count", "2"))], env=environment_of(rig, folder, more),
                          cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done
    names = sorted(path.name for path in (folder / "recordings" / "train").iterdir())
    assert names == ["r1.gmt", "r1.gmt.digest"], names
    info = subprocess.run([rig.program, "info", "--json", folder / "recordings/train/r1.gmt"], capture_output=True, text=True, check=True)
    assert json.loads(info.stdout)["sources"]["metrics"] == f"on at http://0.0.0.0:{port}", info.stdout


CASES = [sbatch_and_srun, mpirun, kubernetes_manifests_are_valid_and_their_command_records]

if __name__ == "__main__":
    sys.exit(main_of_cases([(case.__name__, case) for case in CASES], __doc__, torch=False))
