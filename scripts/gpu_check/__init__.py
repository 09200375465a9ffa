"""The body of scripts/gpu-check: what only a machine with a GPU can show.

    checks.py     which checks there are, in which order, with how much time each
    runner.py     runs them: no failure ends the run, results are written after each
    table.py      rows: check, seen, expected, ok
    page.py       the table as docs/gpu.md and as JSON
    rig.py        the product, and how commands run on the device, recorded or not
    recording.py  what a recorded run left
    statistic.py  medians with their intervals
    *_checks.py   the checks

A check is a function of (rig, table). It adds rows and returns; it may raise whatever it likes.
"""
