"""A Slurm cluster of this machine alone, for checks: munged, slurmctld and slurmd of the system's packages, whose files are in a
directory of the check."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import wait_for  # noqa: E402

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")


def why_none():
    """Returns why there can be no cluster here; "" if there can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]
    if missing:
        return f"no {', '.join(missing)}: run scripts/setup"
    return "" if os.geteuid() == 0 else "the daemons of Slurm need the rights of root"


def search_path():
    return os.environ["PATH"] + ":/usr/sbin:/sbin"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def cluster(folder, tasks):
    """Runs one node on which `tasks` tasks fit. Yields the environment of its commands."""
    folder.mkdir(mode=0o755)
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    node = socket.gethostname().split(".")[0]
    settings = {
        "ClusterName": "check", "SlurmctldHost": f"{node}(127.0.0.1)", "SlurmUser": "root", "SlurmdUser": "root",
        "AuthType": "auth/munge", "AuthInfo": f"socket={folder}/munge.sock", "CredType": "cred/munge",
        "SlurmctldPort": free_port(), "SlurmdPort": free_port(), "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool", "SlurmctldPidFile": folder / "slurmctld.pid", "SlurmdPidFile": folder / "slurmd.pid",
        "SlurmctldLogFile": folder / "slurmctld.log", "SlurmdLogFile": folder / "slurmd.log", "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none", "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core", "MpiDefault": "none",
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    # More processors than there are are accepted with this parameter.
    lines += ["SlurmdParameters=config_overrides", f"NodeName={node} NodeAddr=127.0.0.1 CPUs={tasks} State=UNKNOWN",
              f"PartitionName=all Nodes={node} Default=YES State=UP"]
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    environment = {**os.environ, "PATH": search_path(), "SLURM_CONF": str(folder / "slurm.conf")}
    daemons = [
        ["munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.sock",
         f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munged.log"],
        ["slurmctld", "-D"], ["slurmd", "-D"]]
    with contextlib.ExitStack() as ends:
        for words in daemons:
            log = ends.enter_context(open(folder / f"{words[0]}.out", "w", encoding="utf-8"))
            daemon = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
            ends.callback(daemon.wait)
            ends.callback(daemon.terminate)
            if words[0] == "munged":
                wait_for("munged", (folder / "munge.sock").exists)
        wait_for("an idle node", lambda: "idle" in subprocess.run(
            ["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True, check=False).stdout)
        yield environment
