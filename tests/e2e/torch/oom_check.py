#!/usr/bin/env python3
"""Records programs that run out of memory on the simulated device: the recording must have the
out-of-memory event and its snapshot whatever becomes of the process.

Usage: oom_check.py --build DIR [--python PYTHON] [NAME...]
"""

import json
import re
import signal
import subprocess
import sys

import agreement
import oracle_check
from driver_memory import Difference
from replay import Replay
from rig import Recording, main_of_cases
from waiting import wait_for

MEMORY = 4 << 30
IN_FULL = 3  # out-of-memory snapshots in one recording
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def run(rig, folder, *options, via=None, **environment):
    command = [rig.python, "-B", oracle_check.PROGRAMS / "oom_ends.py", *options]
    return (via or rig.run)(folder, command, SIMCUDA_MEMORY=str(MEMORY), **environment)


def free_in_words(message):
    """Returns the free bytes that the error message gives, and the rounding error of that text."""
    number, unit = re.search(r"of which ([\d.]+) (\w+) is free", message).groups()
    return float(number) * UNITS[unit], UNITS[unit] / 100


def check_snapshot(lines, oom, name):
    """Checks the live set behind the event: it must equal the replay's state at that point."""
    (live_set,) = [line for line in lines if line["kind"] == "live_set" and line["name"] == name]
    if not live_set["exact"]:
        raise Difference(f"{name} is not exact")
    blocks = [line for line in live_set["live"] if line.get("heap") == "pytorch"]
    agreement.same_lists(
        f"blocks of {name}",
        sorted((b.address, b.size, b.stream) for b in oom.live.values()),
        sorted((b["address"], b["size"], b["stream"]) for b in blocks),
    )
    driver = {(r["address"], r["size"]) for r in live_set["live"] if r.get("heap") == "driver"}
    segments = [(address, size) for _, address, size in oom.segments]
    agreement.same_lists(
        f"segments of {name}", segments, [s for s in segments if _is_there(driver, *s)]
    )


def _is_there(driver, address, size):
    """Returns whether the range is live as a whole, or mapped piece by piece."""
    mapped = sum(n for a, n in driver if address <= a and a + n <= address + size)
    return (address, size) in driver or mapped == size


def check_event(lines, index, line, message=None):
    stacks = {line["id"]: line for line in lines if line["kind"] == "stack"}
    python = [f for f in stacks[line["stack"]]["frames"] if f.get("language") == "python"]
    assert python and python[0]["function"].endswith("tensor"), python
    assert line["result"] == 2 and "stream" in line, line
    before = [
        s for s in lines[:index] if s["kind"] == "sample" and s["thread"] == line["thread"]
    ]
    assert before, "the allocator's own query of the device is not recorded"
    sample = before[-1]
    assert sample["device"] == line["device"] and sample["total_bytes"] == MEMORY, sample
    free = sample["total_bytes"] - sample["used_bytes"]
    if message:
        reported, tolerance = free_in_words(message)
        assert abs(free - reported) <= tolerance, (free, message)
    assert free == MEMORY - line["total_reserved"], (sample, line)


def check_request(recording, line):
    """The last failure has the tensor for which the memory was requested, and `oom` names it and does not guess."""
    assert line["requested"] == line["size"], line
    tensor = ("uint8", f"[1024, {line['requested'] // 1024}]")
    oom = json.loads(recording.verb("oom", "--json", recording.path))
    assert (line["dtype"], line["shape"]) == (oom["dtype"], oom["shape"]) == tensor, (line, oom)
    assert oom["square"] is None, "the bytes are those of a square tensor, the shape is not"
    text = recording.verb("oom", recording.path)
    assert "a {} tensor of {}\n".format(*tensor) in text and not re.search(r"perhaps [\d,]+ x", text), text


def check_recording(recording, ooms, messages):
    lines = recording.events()
    replay = Replay(lines)  # compares the totals in each event, including the failing one
    assert len(replay.ooms) == ooms, len(replay.ooms)
    names = [s["name"] for s in recording.info()["snapshots"] if s["name"].startswith("oom-")]
    assert names == [f"oom-{n + 1}" for n in range(min(ooms, IN_FULL))], names
    for number, oom in enumerate(replay.ooms):
        message = messages[number] if number < len(messages) else None
        check_event(lines, oom.index, lines[oom.index], message)
        if number < IN_FULL:
            check_snapshot(lines, oom, names[number])
    check_request(recording, lines[replay.ooms[-1].index])
    at_oom = recording.report("--at", "oom")
    (blocks,) = [h for d in at_oom["devices"] for h in d["heaps"] if h["heap"] == "pytorch"]
    first = lines[replay.ooms[0].index]
    assert blocks["live_bytes"] == first["total_allocated"], (blocks, first)
    assert blocks["reserved_bytes"] == first["total_reserved"], (blocks, first)
    return replay


def messages_of(output):
    return [line for line in output.splitlines() if "out of memory" in line]


# ---- Cases --------------------------------------------------------------------------------------


def the_error_ends_the_process(rig, folder):
    recording = run(rig, folder)
    assert recording.done.returncode == 1, recording.done
    recording.check_whole()
    check_recording(recording, 1, messages_of(recording.done.stdout))


def with_expandable_segments(rig, folder):
    recording = run(rig, folder, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    check_recording(recording, 1, messages_of(recording.done.stdout))


def in_the_backward_pass(rig, folder):
    recording = run(rig, folder, "--in-backward")
    replay = check_recording(recording, 1, messages_of(recording.done.stdout))
    line = replay.lines[replay.ooms[0].index]
    stack = replay.stacks()[line["forward_stack"]]
    python = [f["function"] for f in stack["frames"] if f.get("language") == "python"]
    assert any(f.endswith("ask_for_too_much") for f in python), python


def killed_right_after(rig, folder):
    recording = run(rig, folder, "--then", "kill")
    assert recording.done.returncode == 128 + signal.SIGKILL, recording.done
    recording.check_whole()
    check_recording(recording, 1, messages_of(recording.done.stdout))


def hanging_afterwards(rig, folder):
    """The snapshot is in the file while the process hangs, and the file can be read."""
    command = [rig.python, "-B", oracle_check.PROGRAMS / "oom_ends.py", "--then", "hang"]
    environment = rig.environment(
        folder,
        {
            "LD_PRELOAD": rig.library(),
            "GPUMEMTRACE": f"output={folder}/run.gmt",
            "SIMCUDA_MEMORY": str(MEMORY),
        },
    )
    process = subprocess.Popen(
        rig.simulated(command), env=environment, cwd=folder, stdout=subprocess.PIPE, text=True
    )
    try:
        recording = Recording(rig, folder, process)
        message = process.stdout.readline()
        assert "out of memory" in message, message
        # On a busy machine the collector may not have written its first byte yet.
        wait_for("the snapshot", lambda: (folder / "run.gmt").stat().st_size and "oom-1" in [
            s["name"] for s in recording.info()["snapshots"]])
        assert process.poll() is None
        check_recording(recording, 1, [message])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    wait_for("the end of the collector", lambda: not list((folder / "sessions").glob("*.session")))
    check_recording(recording, 1, [message])


def looking_for_the_largest_batch(rig, folder):
    """The first three have full snapshots, the rest are only events."""
    recording = run(rig, folder, "--then", "halve")
    outcome = recording.result()
    ooms = outcome["devices"][0]["num_ooms"]
    assert ooms > IN_FULL, outcome
    replay = check_recording(recording, ooms, messages_of(recording.done.stdout))
    retries = replay.counters[0].total["num_alloc_retries"]
    assert retries == outcome["devices"][0]["num_alloc_retries"], (retries, outcome)


CASES = (
    the_error_ends_the_process,
    with_expandable_segments,
    in_the_backward_pass,
    killed_right_after,
    hanging_afterwards,
    looking_for_the_largest_batch,
)


if __name__ == "__main__":
    named = [(c.__name__, c) for c in CASES]
    sys.exit(main_of_cases(named, __doc__.splitlines()[0]))
