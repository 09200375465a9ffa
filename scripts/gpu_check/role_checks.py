"""Compares what tensors are used for, and whether a leak is found, with what the programs themselves report."""

import concurrent.futures
import json
import os
import re
import sys

from .rig import PROGRAMS, ROOT, Failed, stop

sys.path.append(str(ROOT / "tests" / "e2e" / "torch"))
import roles_check  # noqa: E402

PACKAGE = next((f for f in (ROOT / "python", ROOT / "share" / "gpumemtrace" / "python") if f.is_dir()), ROOT / "python")
QUICK = ("gpt",)
LEAKING = ROOT / "tests" / "e2e" / "attach" / "leaking_training.py"
BEFORE_STEPS, STEPS = 75, 260  # enough for a verdict


def _names():
    listed = re.search(r"for f in \((.*?)\)", roles_check.PROGRAM.read_text(), re.S)[1]
    return re.findall(r"\w+", listed)


def _compare(rig, name):
    """Returns (number of moments, bytes by role that agree, bytes that only the recording or only the program names)."""
    recording = rig.record(name, [rig.python, PROGRAMS / "torch" / "roles.py", name], seconds=60, PYTHONPATH=str(PACKAGE))
    reported = json.loads(recording.done.stdout.strip().splitlines()[-1])
    seen = roles_check.moments_of(recording.events())
    if len(reported) != len(seen):
        raise ValueError(f"{len(reported)} moments, {len(seen)} recorded")
    agree, wrong = dict.fromkeys(roles_check.ROLES.values(), 0), 0
    for one, other in zip(reported, seen):
        for role, (both, more, less) in roles_check.compare(one, other).items():
            agree[role] += both
            wrong += more + less
    return len(seen), agree, wrong


def roles(rig, table):
    """Parameters, gradients and tensors saved for the backward pass, by address, at every moment that a program marks."""
    names = [n for n in _names() if not rig.quick or n in QUICK]
    workers = 1 if rig.simulated else max(1, min(6, (os.cpu_count() or 1) // 2))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = [(name, pool.submit(_compare, rig, name)) for name in names]
        for name, future in futures:
            try:
                moments, agree, wrong = future.result()
            except (Failed, ValueError) as error:
                table.fail(f"roles of {name}", str(error))
                continue
            table.keep(name, agree)
            table.expect(f"roles of {name}", f"{wrong} B differ at {moments} moments, {sum(agree.values())} B agree",
                         "0 B differ", ok=wrong == 0 and sum(agree.values()) > 0)


def attach(rig, table):
    """Attaches to a training program that has run for a while without any library of ours, and finds its leak."""
    process = rig.start(rig.on_device([rig.python, LEAKING, "Adam"]))
    path = rig.new_path("attached")

    def train(steps):
        process.stdin.write(f"{steps}\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line.startswith("{"):
            raise ValueError(f"the program ended: {line}{process.stderr.read()[-500:]}")
        return json.loads(line)

    try:
        process.stdout.readline()
        train(BEFORE_STEPS)
        command = rig.start([rig.program, "attach", process.pid, "-o", path])
        held = train(3)
        while command.poll() is None and rig.left() > 5:
            held = train(1)
        output, errors = command.communicate() if command.poll() is not None else stop(command)
        if not table.expect("attach to a process without the library", f"exit code {command.returncode}", "exit code 0"):
            table.keep("attach", output + errors)
            return
        train(STEPS)
        rig.run([rig.program, "detach", process.pid])
    finally:
        stop(process)
    leaks = rig.run([rig.program, "leaks", path], fails=True).stdout.strip().splitlines()
    table.expect("leaks, after attach", leaks[0] if leaks else "nothing", "a leak at leaking_training.py",
                 ok=leaks and "leaking_training.py:" in leaks[0])
    report = json.loads(rig.run([rig.program, "report", "--json", "--at", "end", "--by", "category", path]).stdout)
    rows = {row["id"].removeprefix("category/"): row["bytes"] for row in report["rows"]}
    table.expect_bytes("parameters from before the attach", rows.get("parameters"), sum(held["parameters"].values()))
