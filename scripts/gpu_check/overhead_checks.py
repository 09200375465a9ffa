"""The cost of recording: of a training step, compared in pairs, and of a cudaMalloc call.

Every variant is a separate process that has trained for a while and then takes turns with the others, a few steps at a
time, so that changes of the machine affect all of them.
"""

import json
import pathlib
import statistics

from .rig import Failed, stop
from .statistic import median_interval, ratio_in_words

TRAINER = pathlib.Path(__file__).with_name("trainer.py")
PLAIN = "not recorded"
OURS = "gpumemtrace"
# Name -> (options of `gpumemtrace run`, or None; arguments of trainer.py).
VARIANTS = {
    PLAIN: (None, []),
    OURS: ([], []),
    "gpumemtrace, --cupti off": (["--cupti", "off"], []),
    "gpumemtrace, --cupti full": (["--cupti", "full"], []),
    "gpumemtrace, --stacks none": (["--stacks", "none"], []),
    "PyTorch's history, stacks=all": (None, ["--history", "all"]),
    "PyTorch's history, stacks=python": (None, ["--history", "python"]),
}
QUICK = (PLAIN, OURS, "PyTorch's history, stacks=all")
CALLS = ((OURS, ""), ("stacks=none", "stacks=none"), ("cupti=off", "cupti=off"), ("cupti=full", "cupti=full"))


class Trainer:
    """A process that trains on request."""

    def __init__(self, rig, name, number, folder, size):
        options, words = VARIANTS[name]
        self.rig, self.name = rig, name
        command = rig.on_device([rig.python, TRAINER, *size, *words])
        if options is not None:
            path = folder / f"trainer-{number}.gmt"
            command = [rig.program, "run", "--quiet", *options, "-o", path, "--", *command]
        self.process = rig.start(command)

    def step(self):
        """Returns the seconds per step of one turn."""
        return self._ask("step")["seconds"]

    def ready(self):
        line = self.process.stdout.readline()
        if not line.startswith("{"):
            raise RuntimeError(f"{self.name}: {line}{self.process.stderr.read()[-500:]}")
        return json.loads(line)

    def _ask(self, what):
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self.ready()

    def end(self):
        if self.process.poll() is None:
            stop(self.process)


def _size(rig):
    return ["--quick"] if rig.quick or rig.simulated else []


def _rounds(rig, table, names, rounds, number):
    """Returns {name: seconds of each round}. A variant that does not start is reported and skipped."""
    trainers = []
    try:
        for place, name in enumerate(names):
            trainers.append(Trainer(rig, name, f"{number}-{place}", rig.folder, _size(rig)))
        ready = []
        for trainer in trainers:
            try:
                trainer.ready()
                ready.append(trainer)
            except RuntimeError as error:
                table.fail(f"training: {trainer.name}", str(error), "it trains")
        times = {trainer.name: [] for trainer in ready}
        for turn in range(rounds):
            if rig.left() < 5:
                break
            # Rotate, so that each variant begins a round equally often.
            order = ready[turn % len(ready):] + ready[: turn % len(ready)]
            for trainer in order:
                times[trainer.name].append(trainer.step())
        return {name: seconds for name, seconds in times.items() if seconds}
    finally:
        for trainer in trainers:
            trainer.end()


def training(rig, table, pairs):
    names = [n for n in VARIANTS if not rig.quick or n in QUICK]
    sets, times = (1, {}) if rig.quick else (2, {})
    for number in range(sets):  # use several processes, so that properties of one process do not bias the result
        for name, seconds in _rounds(rig, table, names, -(-pairs // sets), number).items():
            times.setdefault(name, []).extend(seconds)
    if PLAIN not in times:
        return
    plain = times[PLAIN]
    table.keep("seconds", times)
    table.note("training step, not recorded", f"{statistics.median(plain) * 1e3:.2f} ms, median of {len(plain)} turns")
    for name in names:
        if name == PLAIN or name not in times:
            continue
        ratios = [ours / theirs for ours, theirs in zip(times[name], plain)]
        table.note(f"training step, {name} / not recorded", ratio_in_words(ratios))
    if OURS in times:
        table.expect("pairs measured", len(times[OURS]), f"at least {pairs}", ok=len(times[OURS]) >= pairs)
        theirs = times.get("PyTorch's history, stacks=all")
        if theirs:
            ratios = [a / b for a, b in zip(times[OURS], theirs)]
            table.note("training step, gpumemtrace / PyTorch's history, stacks=all", ratio_in_words(ratios))


def _call_cost(rig, program, options, calls=()):
    environment = {}
    command = rig.on_device([program, "100" if rig.quick else "600", "20", "1", *calls])
    if options is not None:
        environment = {"LD_PRELOAD": rig.library, "GPUMEMTRACE": f"output={rig.folder}/%p.gmt,{options}".rstrip(",")}
    done = rig.run(command, seconds=60, **environment)
    for path in rig.folder.glob("*.gmt"):
        path.unlink()
    return json.loads(done.stdout)


def _calls(rig, table, program, first, second, what, *words):
    added = {name: [] for name, _ in CALLS}
    direct = []
    for _ in range(1 if rig.quick else 3):
        plain = _call_cost(rig, program, None, words)
        direct.append(plain[first]["p50"] + plain[second]["p50"])
        for name, options in CALLS:
            try:
                cost = _call_cost(rig, program, options, words)
            except Failed as failed:
                table.fail(f"{what}, {name}", str(failed))
                continue
            added[name].append(cost[first]["p50"] + cost[second]["p50"] - direct[-1])
    table.keep(what, {"not recorded": direct, **added})
    table.note(f"{what}, not recorded", f"{statistics.median(direct):.0f} ns")
    for name, values in added.items():
        if values:
            low, median, high = median_interval(values)
            table.note(f"{what}, added by {name}", f"{median:+.0f} ns ({low:+.0f} to {high:+.0f}, {len(values)} pairs)")


def calls(rig, table):
    program = rig.built("call_cost")
    if program is None:
        table.absent("cost of a call", "call_cost is not built")
        return
    _calls(rig, table, program, "allocate", "free", "a pair of cudaMalloc and cudaFree of 4 KiB")
    waits = "a pair of cudaEventRecord and cudaStreamSynchronize"
    _calls(rig, table, program, "record", "synchronize", waits, "streams")
