"""Places that are full, missing or not for writing.
"""

from place import Place, check_undisturbed, collectors_of, in_own_mounts, kill_and_wait, whole


def shared_memory(rig, folder, mount):
    """With /dev/shm as mounted; no directory for sessions is named."""
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        place.environment = {}
        outcomes.append(place.run("processes", "use", traced=traced, wrap=in_own_mounts(mount)))
    check_undisturbed(*outcomes)
    place.wait("a whole recording", lambda: [p for p in place.out.glob("*.gmt") if whole(place, p)])
    place.check_recordings([2])


def shared_memory_of_one_mebibyte(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o size=1m tmpfs /dev/shm")


def shared_memory_that_is_missing(rig, folder):
    shared_memory(rig, folder, "umount -l /dev/shm && rmdir /dev/shm 2>/dev/null || "
                  "mount -t tmpfs -o size=4k,nr_inodes=1 tmpfs /dev/shm")


def shared_memory_that_is_read_only(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o ro tmpfs /dev/shm")


def shared_memory_without_execution(rig, folder):
    shared_memory(rig, folder, "mount -t tmpfs -o noexec,nosuid,nodev tmpfs /dev/shm")


def session_directory_that_nobody_may_write_to(rig, folder):
    outcomes = []
    for name, traced in (("alone", False), ("traced", True)):
        place = Place(rig, folder, name)
        mount = f"mount -t tmpfs -o ro,mode=0700 tmpfs {place.sessions}"
        outcomes.append(place.run("processes", "use", traced=traced, wrap=in_own_mounts(mount)))
    check_undisturbed(*outcomes)
    place.wait("a whole recording", lambda: [p for p in place.out.glob("*.gmt") if whole(place, p)])
    place.check_recordings([2])


def output_directory_that_is_read_only(rig, folder):
    place = Place(rig, folder, "traced")
    place.environment["XDG_STATE_HOME"] = str(folder)
    mount = f"mount -t tmpfs -o ro tmpfs {place.out}"
    done = place.run("processes", "use", wrap=in_own_mounts(mount))
    assert done.returncode == 5, done
    assert "(Read-only file system where it was asked for)" in done.stderr, done.stderr
    place.wait_for_collectors()
    place.out = folder / "gpumemtrace"
    place.check_recordings([2])


def output_directory_that_has_been_deleted(rig, folder):
    place = Place(rig, folder, "traced")
    place.environment["XDG_STATE_HOME"] = str(folder)
    place.out.rmdir()
    done = place.run("processes", "use")
    assert done.returncode == 5, done
    assert "(No such file or directory where it was asked for)" in done.stderr, done.stderr
    place.wait_for_collectors()
    place.out = folder / "gpumemtrace"
    place.check_recordings([2])


def output_directory_that_is_full(rig, folder):
    """The program goes on; the session keeps what the file had no room for."""
    place = Place(rig, folder, "traced")
    mount = f"mount -t tmpfs -o size=64k tmpfs {place.out}"
    fill = f"(cat /dev/zero >{place.out}/fill 2>/dev/null || true)"
    done = place.run("processes", "use", wrap=in_own_mounts(mount, fill))
    assert done.returncode == 5, done
    place.wait("its session", lambda: place.session_files(), seconds=1)
    for collector in collectors_of(place):
        kill_and_wait(collector)
    place.collect()
    place.check_recordings([2])


CASES = (
    shared_memory_of_one_mebibyte,
    shared_memory_that_is_missing,
    shared_memory_that_is_read_only,
    shared_memory_without_execution,
    session_directory_that_nobody_may_write_to,
    output_directory_that_is_read_only,
    output_directory_that_has_been_deleted,
    output_directory_that_is_full,
)
