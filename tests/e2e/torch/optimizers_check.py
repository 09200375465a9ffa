#!/usr/bin/env python3
"""Records programs that create an optimizer and run out of memory in their first step: `oom` must name
the optimizer and what it will allocate.

Usage: optimizers_check.py --build DIR [--python PYTHON] [NAME...]
"""

import functools
import json
import sys

import oracle_check
from rig import main_of_cases

# Optimizer -> (its class, tensors of state per parameter at least and at most, whether that is known, and what is said)
EXPECTED = {
    "SGD": ("SGD", 0, 1, True, "; SGD (optimizers.py:{line}) keeps {state} of state with momentum, else none"),
    "AdamW": ("AdamW", 2, 2, True, ", and {state} of state of AdamW (optimizers.py:{line})"),
    "RMSprop": ("RMSprop", 1, 2, True, "of state of RMSprop (optimizers.py:{line}), {state} with momentum"),
    "Adagrad": ("Adagrad", 0, 0, True, "still to come: gradients"),  # its constructor has allocated it
    "own": ("Signs", 2, 2, False, ", and {state} of state if Signs (optimizers.py:{line}) keeps as much as Adam"),
    "none": (None, 2, 2, False, ", and {state} of state with Adam"),
}


def line_of_creation():
    source = (oracle_check.PROGRAMS / "optimizers.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(source, 1) if "the line that is recorded" in line)


def check(name, rig, folder):
    recording = rig.run(folder, [rig.python, "-B", oracle_check.PROGRAMS / "optimizers.py", name], SIMCUDA_MEMORY="1G")
    assert "out of memory" in recording.done.stderr, recording.done
    created = [event for event in recording.events()
               if event["kind"] == "range_begin" and event["name"] == "Optimizer.__init__"]
    assert len(created) == (name != "none"), created

    coming = json.loads(recording.verb("oom", "--json", recording.path))["still_to_come"]
    expected, least, most, known, words = EXPECTED[name]
    line = line_of_creation()
    optimizer = expected and {"class": expected, "place": f"optimizers.py:{line}", "known": known}
    assert coming["optimizer"] == optimizer, coming
    parameters = coming["gradient_bytes"]
    assert parameters > 0, coming
    assert coming["optimizer_bytes"] == least * parameters, coming
    assert coming["most_optimizer_bytes"] == most * parameters, coming

    state = f"{most * parameters / (1 << 20):.2f} MiB"
    text = recording.verb("oom", recording.path, "--width", "200")
    assert words.format(line=line, state=state) in text, text


CASES = [(name, functools.partial(check, name)) for name in EXPECTED]


if __name__ == "__main__":
    sys.exit(main_of_cases(CASES, __doc__.splitlines()[0]))
