"""Other systems, each in a directory of its own: new ones, and commands that run in them. Needs root and mmdebstrap.
"""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
HANG_S = 1800
UBUNTU = "http://archive.ubuntu.com/ubuntu"
# Those of Ubuntu, with the oldest first. All others are of Debian.
UBUNTU_RELEASES = ("focal", "jammy", "noble")


def run(*command, code=0, **more):
    """Runs a command and returns its output, errors too."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S, **more)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def ubuntu_keys(folder):
    """Returns the keys of Ubuntu's archive, from a package that Debian signed."""
    run("bash", "-c", """set -euo pipefail
        source scripts/common.sh
        APT_CONFIG=$(release_apt trixie)
        export APT_CONFIG
        apt-get -qq update
        cd "$1"
        apt-get -qq download ubuntu-keyring
        dpkg-deb -x ubuntu-keyring_*.deb keys""", "keys", folder, cwd=ROOT)
    return folder / "keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"


def make_archive(release, packages, archive, folder):
    """Packs a new system of a release, with these packages, into an archive. `folder`: an existing one for temporary files."""
    options = ["--mode=root", "--variant=minbase", f"--include={','.join(packages)}"]
    mirror = []
    if release in UBUNTU_RELEASES:
        options += ["--components=main,universe", f"--keyring={ubuntu_keys(folder)}"]
        mirror = [UBUNTU]
    run("mmdebstrap", *options, release, archive, *mirror)


class System:
    """A system in a directory, unpacked from an archive."""

    def __init__(self, root, archive):
        self.root = root
        root.mkdir()
        run("tar", "-C", root, "-xf", archive, "--exclude=./dev/*")
        for name in ("proc", "dev", "opt", "opt/work"):
            (root / name).mkdir(exist_ok=True)

    def run(self, *command, code=0, **environment):
        inside = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                  *(f"{name}={value}" for name, value in environment.items()), *command]
        return run("unshare", "--mount", "sh", "-c", 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"',
                   self.root, *inside, code=code)

    def shell(self, line, **environment):
        return self.run("bash", "-c", f"set -euo pipefail; cd /opt/work; {line}", **environment)

    def files(self):
        """All files but those that programs write while they run."""
        ignored = re.compile(r"(proc|dev|tmp|run|opt|root|var/(log|cache|lib/(dpkg|apt|systemd)))(/|$)")
        found = (os.path.relpath(os.path.join(folder, name), self.root) for folder, folders, names in os.walk(self.root)
                 for name in folders + names)
        return {path for path in found if not ignored.match(path)}
