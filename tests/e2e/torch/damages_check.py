#!/usr/bin/env python3
"""Tests the oracle: recordings that agree with PyTorch are damaged in every way that the profiler
could get them wrong, and each damage must be found.

Usage: damages_check.py --build DIR [--python PYTHON] [--times N]
"""

import argparse
import collections
import copy
import pathlib
import random
import sys
import tempfile

import agreement
import frames
import oracle_check
from driver_memory import Difference
from replay import FROM_ALLOCATOR, OUT_OF_MEMORY, Replay
from rig import Rig, find_python
from scenarios import SCENARIOS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

RECORDED = ("streams", "oom_recover", "empty_cache_expandable")


def judge(reported, lines):
    """Raises Difference as the oracle would."""
    replay = Replay(lines)
    agreement.compare_moments(reported, replay)
    agreement.compare_order(reported, replay)
    frames.compare_stacks(reported, replay).require(1)
    return replay


# ---- Kinds of damage. Each takes the lines of a recording and an index. --------------------------


def dropped(lines, place):
    del lines[place]


def doubled(lines, place):
    lines.insert(place, copy.copy(lines[place]))


def late(lines, place):
    """Moves the line behind the next event of the same device's blocks."""
    line = lines.pop(place)
    for later in range(place, len(lines)):
        device = lines[later].get("device")
        is_block = lines[later].get("heap") == "pytorch" and lines[later]["kind"] != "role"
        if is_block and line.get("device", device) == device:
            lines.insert(later + 1, line)
            return
    lines.append(line)


def changed(key, amount):
    def change(lines, place):
        lines[place] = {**lines[place], key: lines[place].get(key, 0) + amount}

    change.__name__ = f"{key} is wrong by {amount}"
    return change


def without(key):
    def drop(lines, place):
        lines[place] = {k: v for k, v in lines[place].items() if k != key}

    drop.__name__ = f"{key} is missing"
    return drop


def another_stack(lines, place):
    other = [line["id"] for line in lines if line["kind"] == "stack" and _python(line)]
    now = next(s for s in lines if s["kind"] == "stack" and s["id"] == lines[place]["stack"])
    different = [
        s["id"]
        for s in lines
        if s["kind"] == "stack" and s["id"] in other and _python(s) != _python(now)
    ]
    lines[place] = {**lines[place], "stack": different[0]}


def _python(stack):
    return [f for f in stack["frames"] if f.get("language") == "python"]


BLOCK_SIZE = 512
WRONGS = {
    ("alloc", "pytorch"): (
        dropped,
        doubled,
        late,
        another_stack,
        changed("address", BLOCK_SIZE),
        changed("size", BLOCK_SIZE),
        changed("size", -BLOCK_SIZE),
        changed("stream", 16),
        changed("device", 1),
        changed("total_allocated", BLOCK_SIZE),
        changed("total_reserved", -BLOCK_SIZE),
        without("total_allocated"),
        without("stack"),
    ),
    ("free", "pytorch"): (
        dropped,
        doubled,
        late,
        changed("address", BLOCK_SIZE),
        changed("size", BLOCK_SIZE),
        changed("device", 1),
        changed("total_allocated", BLOCK_SIZE),
        without("total_reserved"),
    ),
    ("alloc_failed", "pytorch"): (dropped, doubled, changed("size", 512), changed("device", 1)),
    ("alloc_failed", "driver"): (dropped,),
    ("alloc", "driver"): (dropped, late, changed("size", 2 << 20), changed("address", 2 << 20)),
    ("free", "driver"): (dropped,),
    ("map", "driver"): (dropped, changed("size", 2 << 20)),
    ("unmap", "driver"): (dropped,),
    ("event_record", None): (dropped, changed("object", 16)),
    ("sync", None): (dropped, changed("object", 16)),
    ("mark", None): (dropped, late, changed("index", 1000)),
}


def concerns_blocks(line, replay):
    """Returns whether the line has an effect on the allocator: other libraries call the driver
    too."""
    kind, heap = line["kind"], line.get("heap")
    if heap == "driver" and kind in ("alloc", "free", "map", "unmap"):
        address = line["address"]
        return any(p.address <= address < p.address + p.size for p in replay.driver.all_segments())
    if heap == "driver" and kind == "alloc_failed":
        return line["result"] == OUT_OF_MEMORY
    if kind in ("event_record", "sync"):
        return bool(line.get("flags", 0) & FROM_ALLOCATOR) and line["object"] in replay.waited_for
    if kind == "mark":
        return line.get("name") == "moment"
    return True


def is_one_of_several(lines, place):
    """Returns whether the block waits for other events as well: with one fewer it waits as long."""
    beside = (lines[place - 1]["kind"], lines[place + 1]["kind"])
    return lines[place]["kind"] == "event_record" and "event_record" in beside


def check_scene(reported, lines, chance, times):
    """Returns (tried, not noticed)."""
    replay = judge(reported, lines)
    last = max(moment.index for moment in replay.moments.values())
    places = collections.defaultdict(list)
    for place, line in enumerate(lines[: last + 1]):
        key = line["kind"], line.get("heap")
        if key in WRONGS and concerns_blocks(line, replay) and not is_one_of_several(lines, place):
            places[key].append(place)
    tried, unnoticed = collections.Counter(), []
    for key, wrongs in WRONGS.items():
        for wrong in wrongs:
            for place in chance.sample(places[key], min(times, len(places[key]))):
                damaged = list(lines)
                wrong(damaged, place)
                tried[key] += 1
                try:
                    judge(reported, damaged)
                    unnoticed.append(f"line {place}, {wrong.__name__}: {lines[place]}")
                except Difference:
                    pass
    return tried, unnoticed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("--times", type=int, default=3, help="places for each kind of damage")
    args = parser.parse_args()
    python = find_python(args.python)
    if python is None:
        sys.exit("no Python with PyTorch: run scripts/setup --test, or set GMT_TORCH_PYTHON")
    rig = Rig(args.build.resolve(), python)
    scenes = {}
    for scenario in (s for s in SCENARIOS if s.name in RECORDED):
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-damages.") as folder:
            scene = oracle_check.Scene(rig, pathlib.Path(folder), scenario)
            (reported,) = scene.reported.values()
            scenes[scenario.name] = reported, scene.recording.events()
    all_tried, all_unnoticed = collections.Counter(), []
    for seed in seeds(1):
        for name, (reported, lines) in scenes.items():
            tried, unnoticed = check_scene(reported, lines, random.Random(seed), args.times)
            all_tried += tried
            all_unnoticed += [f"{name}: {text}" for text in unnoticed]
        if all_unnoticed:
            break
    for (kind, heap), number in sorted(all_tried.items(), key=str):
        print(f"{kind} {heap or ''}: damaged {number} times")
    print(*all_unnoticed, sep="\n", end="\n" if all_unnoticed else "")
    print(f"{sum(all_tried.values())} damages, {len(all_unnoticed)} not noticed")
    never = [key for key in WRONGS if not all_tried[key]]
    if never:
        print(f"never tried: {never}")
    sys.exit(1 if all_unnoticed or never else 0)


if __name__ == "__main__":
    main()
