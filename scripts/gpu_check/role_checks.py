"""Compares what tensors are used for, and whether a leak is found, with what the programs themselves report."""

import concurrent.futures
import json
import os
import sys

from .rig import ROOT, Failed, stop
from .route_checks import PACKAGES

sys.path.append(str(ROOT / "tests" / "e2e" / "torch"))
import roles_check  # noqa: E402

PACKAGE = next(f for f in PACKAGES if (f / "gpumemtrace").is_dir())
QUICK = ("gpt",)
LEAKING = ROOT / "tests" / "e2e" / "attach" / "leaking_training.py"
BEFORE_STEPS, STEPS = 75, 260  # enough for a verdict


def _compare(rig, name):
    """Returns (number of moments, bytes that agree, bytes that only the recording or only the program names)."""
    recording = rig.record(name, [rig.python, roles_check.PROGRAM, name], seconds=60, PYTHONPATH=str(PACKAGE))
    reported = json.loads(recording.done.stdout.strip().splitlines()[-1])
    sums = roles_check.compare_moments(reported, roles_check.moments_of(recording.events()))
    return len(reported), sum(both for both, _, _ in sums.values()), sum(more + less for _, more, less in sums.values())


def roles(rig, table):
    """Parameters, gradients and tensors saved for the backward pass, by address, at every moment that a program marks."""
    names = [n for n in roles_check.names_of_programs() if not rig.quick or n in QUICK]
    workers = 1 if rig.simulated else max(1, min(6, (os.cpu_count() or 1) // 2))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = [(name, pool.submit(_compare, rig, name)) for name in names]
        for name, future in futures:
            try:
                moments, agree, wrong = future.result()
            except (Failed, ValueError) as error:
                table.fail(f"roles of {name}", str(error))
                continue
            table.expect(f"roles of {name}", f"{wrong} B differ at {moments} moments, {agree} B agree", "0 B differ",
                         ok=wrong == 0 and agree > 0)


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
