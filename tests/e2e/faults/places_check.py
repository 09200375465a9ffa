"""Directories that are full, missing or read-only.
"""

from place import Place, Skipped, check_undisturbed, collectors_of, in_own_mounts, whole
from waiting import kill_and_wait, wait_for


def shared_memory(rig, folder, mount, has_room=False):
    """With /dev/shm as mounted and no session directory configured. If it has no room, the session is in unnamed memory,
    which does not permit attaching."""
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        place.environment = {}
        outcomes.append(place.run("processes", "use", traced=traced, wrap=in_own_mounts(mount)))
    check_undisturbed(*outcomes)
    if rig.attaches and not has_room:
        assert "no shared memory for its session" in outcomes[1].stderr, outcomes[1].stderr
        if place.is_injected:
            place.check_that_it_was_refused("it has no session: there is no shared memory for it")
        place.check_recordings([])
        return
    wait_for("a whole recording", lambda: [p for p in place.recordings() if whole(place, p)])
    place.check_recordings([2])


def shared_memory_of_one_mebibyte(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o size=1m tmpfs /dev/shm")


def shared_memory_that_is_missing(rig, folder):
    shared_memory(rig, folder, "umount -l /dev/shm && rmdir /dev/shm 2>/dev/null || "
                  "mount -t tmpfs -o size=4k,nr_inodes=1 tmpfs /dev/shm")


def shared_memory_that_is_read_only(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o ro tmpfs /dev/shm")


def shared_memory_without_execution(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o noexec,nosuid,nodev tmpfs /dev/shm", has_room=True)


def session_directory_that_is_read_only(rig, folder):
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        mount = f"mount -t tmpfs -o ro,mode=0700 tmpfs {place.sessions}"
        outcomes.append(place.run("processes", "use", traced=traced, wrap=in_own_mounts(mount)))
    check_undisturbed(*outcomes)
    wait_for("a whole recording", lambda: [p for p in place.recordings() if whole(place, p)])
    place.check_recordings([2])


def check_that_attach_refuses(place, words):
    """Checks that the program and its session are not affected by the refused attach."""
    done = place.run("processes", "use")
    assert done.returncode == 5 and not done.stderr, done
    assert [output for output in place.attacher.refusals if words in output], place.attacher.refusals
    place.wait_for_collectors()


def output_directory_that_is_read_only(rig, folder):
    place = Place(rig, folder, "traced")
    place.environment["XDG_STATE_HOME"] = str(folder)
    mount = f"mount -t tmpfs -o ro tmpfs {place.out}"
    if rig.attaches:
        place.attach_wrap = in_own_mounts(mount)
        check_that_attach_refuses(place, "cannot be written to. Write elsewhere with: -o FILE")
        return
    done = place.run("processes", "use", wrap=in_own_mounts(mount))
    assert done.returncode == 5, done
    assert "(Read-only file system at the requested place)" in done.stderr, done.stderr
    place.wait_for_collectors()
    place.out = folder / "gpumemtrace"
    place.check_recordings([2])


def output_directory_that_has_been_deleted(rig, folder):
    place = Place(rig, folder, "traced")
    place.environment["XDG_STATE_HOME"] = str(folder)
    place.out.rmdir()
    if rig.attaches:
        check_that_attach_refuses(place, "does not exist. Write elsewhere with: -o FILE")
        return
    done = place.run("processes", "use")
    assert done.returncode == 5, done
    assert "requested place" not in done.stderr, done.stderr
    place.wait_for_collectors()
    place.check_recordings([2])


def output_directory_that_is_full(rig, folder):
    """The program continues; the session keeps the data that did not fit into the file."""
    if rig.mode == "reattached":
        raise Skipped("detaching empties the session if its collector is gone")
    place = Place(rig, folder, "traced")
    mount = f"mount -t tmpfs -o size=64k tmpfs {place.out}"
    fill = f"(cat /dev/zero >{place.out}/fill 2>/dev/null || true)"
    wrap = in_own_mounts(mount, fill)
    if rig.attaches:
        place.attach_wrap, place.attach_codes, wrap = wrap, (1,), ()
    done = place.run("processes", "use", wrap=wrap)
    assert done.returncode == 5, done
    wait_for("its session", lambda: place.session_files())
    for collector in collectors_of(place):
        kill_and_wait(collector)
    place.collect()
    place.check_recordings([2])


CASES = (
    shared_memory_of_one_mebibyte,
    shared_memory_that_is_missing,
    shared_memory_that_is_read_only,
    shared_memory_without_execution,
    session_directory_that_is_read_only,
    output_directory_that_is_read_only,
    output_directory_that_has_been_deleted,
    output_directory_that_is_full,
)
