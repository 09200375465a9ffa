"""Other tools in the same process or around it: each works as without recording, and so does the recording.
"""

import pathlib
import shutil
import subprocess

from place import Skipped, both

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


def beside(rig, folder, library, order, program="processes", more=()):
    """Preloads both libraries. `order` is the value of LD_PRELOAD; {ours} is left out of the run without recording."""

    def prepare(place):
        place.preload = order.format(ours="{ours}", other=library)
        place.more_environment |= more

    _, place = both(rig, folder, program, "use", prepare=prepare)
    place.wait_for_collectors()
    place.check_recordings([2])


def another_allocator(rig, folder, name):
    library = LIBRARIES / name
    if not library.exists():
        raise Skipped(f"there is no {library}")
    for word, order in (("before", "{ours}:{other}"), ("after", "{other}:{ours}")):
        beside(rig, folder / word, library, order, more={})


def beside_jemalloc(rig, folder):
    another_allocator(rig, folder, "libjemalloc.so.2")


def beside_tcmalloc(rig, folder):
    another_allocator(rig, folder, "libtcmalloc_minimal.so.4")


def beside_address_sanitizer(rig, folder):
    """It looks up libc functions during its start and must come first."""
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not found.startswith("/"):
        raise Skipped("there is no libasan")
    more = {"ASAN_OPTIONS": "detect_leaks=0"}
    program = "processes_sanitized"
    if not (rig.build / "tests" / "faults" / program).exists():
        raise Skipped("the compiler has no AddressSanitizer")
    beside(rig, folder, found, "{other}:{ours}", program, more)


def around(rig, folder, refusal, *tool):
    """`refusal`: the message of an attaching client that would have to inject the library."""
    if shutil.which(tool[0]) is None:
        raise Skipped(f"there is no {tool[0]}")
    _, place = both(rig, folder, "processes", "use", wrap=tool)
    if place.is_injected:
        place.check_that_it_was_refused(refusal)
        return
    place.wait_for_collectors()
    place.check_recordings([2])


def beside_strace(rig, folder):
    around(rig, folder, "traced by strace", "strace", "-f", "-o", "/dev/null")


def beside_valgrind(rig, folder):
    around(rig, folder, "it runs inside of none-", "valgrind", "--tool=none", "-q", "--log-file=/dev/null",
           "--trace-children=yes")  # fmt: skip


CASES = (beside_jemalloc, beside_tcmalloc, beside_address_sanitizer, beside_strace, beside_valgrind)
