"""The implementation of scripts/gpu-check, which checks what only a machine with a GPU can show.

    checks.py     the list of checks, their order and time limits
    runner.py     runs them: no failure ends the run, results are written after each check
    table.py      rows: check, seen, expected, ok
    page.py       writes the table as docs/gpu.md and as JSON
    rig.py        the product, and how to run commands on the device, recorded or not
    recording.py  queries on the recording of a run
    statistic.py  medians with their intervals
    *_checks.py   the checks

A check is a function of (rig, table). It adds rows and returns; it may raise any exception.
"""
