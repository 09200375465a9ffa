#!/usr/bin/env python3
"""Causes all kinds of faults in traced processes, and checks that they have no effect.

Usage: fault_check.py --build DIR [--mode MODE] [--injected SHARE] [--repeat N] [NAME...]

Each case runs a program of this directory on the simulated device, alone and preloaded. Output and exit code must be the
same, and stderr except for our lines. Each recording must be complete, contain what the program did, and account for every
event; or one line must give the reason why there is none. Cases that need rights which this machine does not grant are
skipped with the reason. --repeat N runs all of them with the seeds 1 to N. The last line of the output is "N passed,
N failed, N skipped".

--mode attached: the program starts dormant, or (in a share of --injected cases, half by default, chosen by the seed)
without our library, which is then injected. It is attached to when it requests that, its recording has parts, and two
clients listen. --mode reattached: attaches repeatedly until it ends (attached.py).
"""

import argparse
import concurrent.futures
import pathlib
import random
import sys
import tempfile
import time
import traceback

import beside_check
import collector_check
import places_check
import processes_check
from place import Rig, Skipped, both, own_lines

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

MOMENTS = (
    "constructor", "destructor", "atexit", "handler", "small-stack", "thread-local", "cancel",
    "timer", "forks",
)

# Name -> allocations per recording.
WAYS = {
    "use": [2],
    "fork-before": [2],
    "fork-after": [0, 4],  # a child cannot use the GPU of its parent; its failure is recorded
    "raw-clone": [2, 4],
    "vfork-exec": [2, 4],
    "spawn": [2, 4],
    "exec": [1, 2, 3],
    "close-all": [3],
    "close-all-and-stderr": [3],
    "many": [5] * 64,
    "subreaper": [1],
    "drop-rights-late": [2],
    "deleted-directory": [1],
    "limit-memory": [3],
    "limit-file-size-20m": [3],
    "deny-madvise": [3],
    "deny-pidfd": [3],
}

# Name -> the message that is printed instead.
REASONS = {
    "drop-rights": "cannot be written: Permission denied",
    "chroot": "cannot be written: No such file or directory",
    "limit-nofile": "cannot be written: Too many open files",
    "limit-no-memory": "not recording: no shared memory for the session: Cannot allocate memory",
    "limit-file-size": "not recording: no shared memory for the session: File too large",
    "limit-file-size-0": "not recording: no shared memory for the session: File too large",
}

# Name -> the message if the process cannot be attached to; "" if it does not request an attach.
REASONS_ATTACHED = {
    "drop-rights": "",
    "chroot": "no shared memory for its session: No such file or directory",
    "limit-nofile": "no shared memory for its session: Too many open files",
    "limit-no-memory": "no shared memory for its session: Cannot allocate memory",
    "limit-file-size": "no shared memory for its session: File too large",
    "limit-file-size-0": "no shared memory for its session: File too large",
}

# The same if the library has to be injected; nothing is printed if that is impossible.
REASONS_INJECTED = REASONS_ATTACHED | {
    "chroot": "",
    "limit-nofile": "",
    "limit-no-memory": "not recording: not enough memory to start",
}

# Name -> error of the attaching client, if the process can still request an attach.
REFUSED = {
    "limit-nofile": "could not load .*: Too many open files",
    "limit-no-memory": "it has no session",
    "limit-file-size": "it has no session: there is no shared memory for it",
    "limit-file-size-0": "it has no session: there is no shared memory for it",
}

# Moment -> why the library cannot be injected then: a lock is held that loading it takes.
WITHOUT_A_SAFE_MOMENT = {
    "destructor": "no safe moment in 5 s .* called by the loader",
    "atexit": "no safe moment in 5 s .* inside of exit",
}

# Cases that need an option which an attaching client does not have: a ring so small that it is
# overwritten.
NEVER_INJECTED = ("collector_that_is_stopped_again_and_again",)

# Name -> why there is no collector; the session holds three allocations.
WITHOUT_COLLECTOR = {
    "deny-clone": "no collector (Operation not permitted)",
    "deny-exec": "no collector (Operation not permitted)",
    "kill-exec": "no collector (Operation not permitted)",
}


def check_moment(rig, folder, moment):
    _, place = both(rig, folder, "moments", moment)
    if place.is_injected and moment in WITHOUT_A_SAFE_MOMENT:
        place.check_that_it_was_refused(WITHOUT_A_SAFE_MOMENT[moment])
        return
    place.wait_for_collectors()
    place.check_recordings([1])


def check_way(rig, folder, way):
    done, place = both(rig, folder, "processes", way)
    place.wait_for_collectors()
    place.check_recordings(WAYS[way])
    if rig.attaches:
        assert not [line for line in own_lines(done) if ": recording " in line], done.stderr
    elif way != "close-all-and-stderr":
        assert any(": recording " in line for line in own_lines(done)), done.stderr


def check_reason(rig, folder, way):
    done, place = both(rig, folder, "processes", way)
    lines = own_lines(done)
    table = REASONS_INJECTED if place.is_injected else REASONS_ATTACHED if rig.attaches else REASONS
    reason = table[way]
    assert len(lines) == bool(reason) and reason in "".join(lines), done.stderr
    if reason == REASONS_ATTACHED[way] != "" and rig.attaches:
        assert " cannot be attached to: " in lines[0], lines
    if place.is_injected and way in REFUSED:
        place.check_that_it_was_refused(REFUSED[way])
    place.check_recordings([])
    assert not place.session_files()


def check_without_collector(rig, folder, way):
    done, place = both(rig, folder, "processes", way)
    lines = own_lines(done)
    if rig.attaches:  # the attaching client starts the collector outside the sandbox of the process
        assert lines == [], lines
        place.wait_for_collectors()
        place.check_recordings([3])
        return
    assert len(lines) == 1 and WITHOUT_COLLECTOR[way] in lines[0], done.stderr
    assert "gpumemtrace collect " in lines[0], done.stderr
    place.collect()
    place.check_recordings([3])


def cases():
    tables = (
        ("moment", MOMENTS, check_moment),
        ("way", WAYS, check_way),
        ("reason", REASONS, check_reason),
        ("way", WITHOUT_COLLECTOR, check_without_collector),
    )
    for prefix, names, check in tables:
        for name in names:
            yield f"{prefix}:{name}", lambda rig, folder, n=name, c=check: c(rig, folder, n)
    for file in (processes_check, places_check, collector_check, beside_check):
        for case in file.CASES:
            yield case.__name__, case


def run_case(rig, name, case):
    """Returns (outcome, text to print)."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="gmt-faults.") as folder:
        started, outcome, more = time.monotonic(), "ok", ""
        try:
            output = case(rig, pathlib.Path(folder))
            more = "" if output is None else f": {output}"
        except Skipped as skipped:
            outcome, more = "skip", f": {skipped}"
        except Exception:  # noqa: BLE001  one failing case must not hide the others
            outcome, more = "FAILED", f"\n{traceback.format_exc(limit=-2)}"
        finally:
            more += "".join(f"\n  refused: {r}" for a in rig.attachers_of(folder) for r in a.refusals)
    name += ", injected" if rig.injects else ""
    return outcome, f"{outcome:6} {name} ({time.monotonic() - started:.1f} s){more}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--mode", choices=("preloaded", "attached", "reattached"), default="preloaded")
    parser.add_argument("--injected", type=float, default=0.5)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    rig = Rig(args.build.resolve(), args.mode)
    counts = {"ok": 0, "FAILED": 0, "skip": 0}
    for seed in seeds(*range(1, args.repeat + 1)):
        chosen = []
        for name, case in cases():
            if args.names and name not in args.names:
                continue
            chance = random.Random(f"{seed}/{name}").random()
            is_injected = rig.attaches and name not in NEVER_INJECTED and chance < args.injected
            chosen.append((rig.of_case(is_injected, seed), name, case))
        # Most of the time of a case is waiting for processes.
        with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
            for outcome, text in pool.map(lambda c: run_case(*c), chosen):
                counts[outcome] += 1
                print(text, flush=True)
        if counts["FAILED"]:
            break
    if rig.attaches:
        print(", ".join(f"{count} {name}" for name, count in rig.tally.items()))
    print("{ok} passed, {FAILED} failed, {skip} skipped".format(**counts))
    return 1 if counts["FAILED"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
