#!/usr/bin/env python3
"""What docs/security.md promises and only a complete run can show: who can read the remaining
files, whose folders are used, and what a recording reveals about the machine it was made on.

Usage: security_check.py --build build/dev [NAME...]
"""

import argparse
import os
import pathlib
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as recording_rig  # noqa: E402
from waiting import wait_for  # noqa: E402

NOBODY = 65534
SECRET = "hunter2-of-ann"


def mode_of(path):
    return stat.S_IMODE(os.stat(path, follow_symlinks=False).st_mode)


def everything_in(recording, path=None):
    """Returns all content of a recording, as text and as bytes."""
    path = path or recording.path
    plain = pathlib.Path(path).read_bytes()
    return recording.verb("cat", "--json", path).encode() + recording.verb("info", "--json", path).encode() + plain


def session_is_its_users_own(rig, folder):
    """No other user can access the session and its folder, whatever the umask."""
    shutil.rmtree(folder / "sessions")
    # Without a collector the session is not deleted.
    more = {
        "LD_PRELOAD": rig.library(),
        "GPUMEMTRACE": f"output={folder}/run.gmt",
        "GPUMEMTRACE_COLLECTOR": "/nonexistent",
    }
    subprocess.run(
        rig.simulated(rig.driver_alloc()),
        env=rig.environment(folder, more),
        umask=0,
        check=True,
        capture_output=True,
        timeout=60,
    )
    sessions = list((folder / "sessions").iterdir())
    assert sessions and mode_of(folder / "sessions") == 0o700, sessions
    assert {mode_of(session) for session in sessions} == {0o600}, sessions


def recording_has_the_mode_that_the_umask_says(rig, folder):
    for umask, mode in ((0o077, 0o600), (0o027, 0o640)):
        name = folder / f"{umask:o}.gmt"
        done = subprocess.run(
            [rig.program, "run", "--quiet", "-o", str(name), "--", *rig.simulated(rig.driver_alloc())],
            env=rig.environment(folder, {}),
            umask=umask,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert mode_of(name) == mode, oct(mode_of(name))


def folder_of_another_user_is_not_used(rig, folder):
    """A session folder that another user has created for this user is not used."""
    theirs = folder / "theirs"
    theirs.mkdir(mode=0o777)
    os.chown(theirs, NOBODY, NOBODY)
    recorded = rig.preload(folder, rig.driver_alloc(), GPUMEMTRACE_DIR=str(theirs))
    assert list(theirs.iterdir()) == [], list(theirs.iterdir())
    assert recorded.done.returncode == 0


def linked_folder_is_not_used(rig, folder):
    theirs = folder / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, NOBODY, NOBODY)
    (folder / "link").symlink_to(theirs)
    recorded = rig.preload(folder, rig.driver_alloc(), GPUMEMTRACE_DIR=str(folder / "link"))
    assert recorded.done.returncode == 0 and list(theirs.iterdir()) == []


def recording_does_not_follow_a_link(rig, folder):
    """If a link is at the path of the recording, nothing is written through it."""
    victim = folder / "victim"
    victim.write_text("precious")
    (folder / "run.gmt").symlink_to(victim)
    recorded = rig.preload(folder, rig.driver_alloc())
    assert recorded.done.returncode == 0
    assert victim.read_text() == "precious"


def environment_is_not_in_the_recording(rig, folder):
    recorded = rig.run(folder, rig.driver_alloc(), WANDB_API_KEY=SECRET, PATH_OF_ANN="/home/" + SECRET)
    assert SECRET.encode() not in everything_in(recorded)


def stripped_recording_names_no_folder_of_the_user(rig, folder):
    home = folder / "home-of-ann"
    home.mkdir()
    program = home / "driver_alloc"
    shutil.copy(rig.driver_alloc()[0], program)
    plain = rig.run(folder, [program])
    assert b"home-of-ann" in everything_in(plain), "the check cannot see what it looks for"
    (folder / "second").mkdir()
    stripped = rig.run(folder / "second", [program], options=["--strip-paths", "--strip-args"])
    text = everything_in(stripped)
    assert b"home-of-ann" not in text
    assert b"driver_alloc" in text, "modules keep their names"
    allocations = [r.info()["events"]["alloc"] for r in (stripped, plain)]
    assert allocations[0] == allocations[1] > 0, allocations


def parts_of_a_stripped_recording_name_no_folder_either(rig, folder):
    """Checks each part, both while it is written and in a copy that is exported afterwards."""
    runtime = next((rig.build / "simcuda").glob("libcudart.so.1*"))
    home = folder / "home-of-ann"
    home.mkdir()
    program = home / "growing.py"
    shutil.copy(recording_rig.PROGRAMS / "growing.py", program)
    limits = ["--max-size", "64MiB", "--max-time", "120s", "--rotate", "600"]  # parts of 0.2 s
    secret = b"home-of-ann"
    for name, options in (("plain", ()), ("stripped", ("--strip-paths", "--strip-args"))):
        (folder / name).mkdir()
        command = [sys.executable, program, runtime, "input"]
        with rig.running(folder / name, command, options=[*limits, *options]) as recorded:
            wait_for("three parts", lambda: len(list((folder / name).glob("*.gmt"))) >= 3)
        files = sorted((folder / name).glob("*.gmt"))
        for file in files:
            content = everything_in(recorded, file)
            assert (secret in content) == (name == "plain"), file
    plain = recording_rig.Recording(rig, folder / "plain", None)
    given = folder / "given.gmt"
    plain.verb("export", "--format", "gmt", "--strip-paths", "--strip-args", plain.path, "-o", given)
    assert secret not in everything_in(plain, given)
    assert plain.info(given)["events"] == plain.info()["events"], "not all parts are in the copy"


def exported_files_can_be_stripped_too(rig, folder):
    home = folder / "home-of-ann"
    home.mkdir()
    program = home / "driver_alloc"
    shutil.copy(rig.driver_alloc()[0], program)
    (folder / "work").mkdir()
    recorded = rig.run(folder / "work", [program])
    for kind, name in (("gmt", "given.gmt"), ("torch", "given.pickle"), ("html", "given.html")):
        out = folder / name
        recorded.verb("export", "--format", kind, "--strip-paths", "--strip-args", recorded.path, "-o", out)
        assert b"home-of-ann" not in out.read_bytes(), kind
    assert b"home-of-ann" not in everything_in(recorded, folder / "given.gmt")
    assert recorded.info(folder / "given.gmt")["complete"]
    assert recorded.info(folder / "given.gmt")["events"] == recorded.info()["events"]


def set_user_id_program_is_left_alone(rig, folder):
    """Injected into a process with more rights than the user who started it, the library does
    nothing."""
    program = folder / "driver_alloc"
    shutil.copy(rig.driver_alloc()[0], program)
    os.chmod(folder, 0o755)
    os.chown(program, NOBODY, NOBODY)
    os.chmod(program, 0o4755)
    recorded = rig.preload(folder, [program], CUDA_INJECTION64_PATH=rig.library())
    assert not recorded.path.exists()
    assert list((folder / "sessions").iterdir()) == []


CASES = [
    session_is_its_users_own,
    recording_has_the_mode_that_the_umask_says,
    folder_of_another_user_is_not_used,
    linked_folder_is_not_used,
    recording_does_not_follow_a_link,
    environment_is_not_in_the_recording,
    stripped_recording_names_no_folder_of_the_user,
    parts_of_a_stripped_recording_name_no_folder_either,
    exported_files_can_be_stripped_too,
    set_user_id_program_is_left_alone,
]
NEED_ROOT = {folder_of_another_user_is_not_used, linked_folder_is_not_used, set_user_id_program_is_left_alone}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    cases = [case for case in CASES if not args.names or case.__name__ in args.names]
    if os.geteuid() != 0:
        for case in NEED_ROOT.intersection(cases):
            print(f"skipped {case.__name__}: only root can change the owner of a folder")
        cases = [case for case in cases if case not in NEED_ROOT]
    rig = recording_rig.Rig(args.build.resolve(), None)
    return recording_rig.run_cases(rig, [(case.__name__, case) for case in cases])


if __name__ == "__main__":
    sys.exit(main())
