#!/usr/bin/env python3
"""Leaks and requests that are too large, planted by callbacks and hooks into the loops of training libraries: which line is
named, and whether other lines are suspected.

Usage: planted_check.py --build DIR [NAME...]
Needs the libraries: those that scripts/setup installs, or GMT_LIBRARIES_PYTHON. Otherwise exits with 77.
"""

import json
import os
import re
import subprocess
import sys

from callbacks_check import HERE, main_of_cases, python_with_libraries

PROGRAM = HERE / "planted.py"
LIBRARIES = ("transformers", "lightning", "accelerate")
LEAKS = ("copies_kept", "outputs_kept", "gradients_kept", "losses_kept", "graphs_kept", "every_ten_steps")
TOO_LARGE = ("statistics_too_large", "scores_too_large")
CLEAN = ("nothing", "recent_outputs")
LEAST = 0.95  # of the named lines are the planted ones


def planted_lines():
    """Returns for each habit the numbers of the lines that it plants."""
    lines = {}
    for number, line in enumerate(PROGRAM.read_text(encoding="utf-8").splitlines(), 1):
        for habit in (re.search(r"# plants: (.*)", line) or ["", ""])[1].split():
            lines.setdefault(habit, set()).add(number)
    return lines


PLANTED = planted_lines()


def run(rig, folder, library, habit, memory="2G"):
    """Returns the answers of `leaks` and of `oom`."""
    folder = folder / f"{library}.{habit}"
    (folder / "sessions").mkdir(parents=True, mode=0o700)
    command = [python_with_libraries(), "-B", PROGRAM, library, habit]
    recording = rig.run(folder, command, ("--quiet", "--exit-wait", "100s"), SIMCUDA_MEMORY=memory)
    return [json.loads(recording.verb(verb, "--json", recording.path)) for verb in ("leaks", "oom")]


def suspects(leaks):
    """Returns the place of each suspect that is worth acting on."""
    frames = [suspect["common_frame"] or {} for suspect in leaks["suspects"] if suspect["tier"] != "possible"]
    return [(os.path.basename(frame.get("file") or ""), frame.get("line")) for frame in frames]


def is_planted(place, habit):
    return place[0] == PROGRAM.name and place[1] in PLANTED[habit]


def requested_by(oom):
    """Returns the program's line that `oom` names."""
    place = re.search(r"\(([^():]+):(\d+)\)", oom["label"])
    return (place[1], int(place[2])) if place else ("", None)


def judged(cases):
    """Prints what was named, and how often that was right. `cases`: (case, whether the line is right, the lines)."""
    for name, right, places in cases:
        print(f"       {name}: {'right' if right else 'WRONG'}, {places}")
    right = sum(is_right for _, is_right, _ in cases)
    print(f"       right: {right} of {len(cases)}")
    assert right >= LEAST * len(cases), [case for case in cases if not case[1]]


def planted_leaks_are_named(rig, folder):
    cases = []
    for library in LIBRARIES:
        for habit in LEAKS:
            leaks, oom = run(rig, folder, library, habit)
            found = suspects(leaks)
            right = bool(found) and all(is_planted(place, habit) for place in found)
            cases.append((f"{library} {habit}", right and oom["verdict"] == "none", found))
    judged(cases)


def planted_requests_are_named(rig, folder):
    cases = []
    for library in LIBRARIES:
        for habit in TOO_LARGE:
            leaks, oom = run(rig, folder, library, habit)
            place = requested_by(oom)
            right = oom["verdict"] == "single_request" and is_planted(place, habit) and not suspects(leaks)
            cases.append((f"{library} {habit}", right, [oom["verdict"], place]))
        leaks, oom = run(rig, folder, library, "until_full", "512M")
        found = suspects(leaks)
        right = oom["verdict"] == "leak" and bool(found) and all(is_planted(place, "until_full") for place in found)
        cases.append((f"{library} until_full", right, [oom["verdict"], *found]))
    judged(cases)


def nothing_is_suspected_in_clean_loops(rig, folder):
    cases = []
    for library in LIBRARIES:
        for habit in CLEAN:
            leaks, oom = run(rig, folder, library, habit)
            assert leaks["enough"], leaks["cycles"]
            found = suspects(leaks)
            cases.append((f"{library} {habit}", not found and oom["verdict"] == "none", found))
    judged(cases)


if __name__ == "__main__":
    asked = [python_with_libraries(), "-c", "import transformers, lightning, accelerate"]
    if not os.path.exists(asked[0]) or subprocess.run(asked, capture_output=True, check=False).returncode != 0:
        print(f"skipped: {asked[0]} lacks the training libraries; scripts/setup installs them")
        sys.exit(77)
    cases = [planted_leaks_are_named, planted_requests_are_named, nothing_is_suspected_in_clean_loops]
    sys.exit(main_of_cases([(case.__name__, case) for case in cases], __doc__, torch=False))
