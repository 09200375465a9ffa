#!/usr/bin/env python3
"""Records programs with several streams and checks what is reported about freed memory: it is held
from its free until the call that proves its stream done, by the program's own timestamps.

Usage: streams_check.py --build DIR [NAME...]
"""

import argparse
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from rig import PROGRAMS, Rig, run_cases  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

LATENCY = "sync=3ms,free=2ms"  # distinguishes the calls that block


def run(rig, folder):
    program = [sys.executable, PROGRAMS / "stream_life.py"]
    recording = rig.run(folder, program, SIMCUDA_LATENCY=LATENCY)
    pieces = recording.result()["pieces"]
    recording.check_whole()
    return recording.report(), pieces


def case_freed_memory_is_held_until_a_call_proves_its_stream_done(rig, folder):
    report, pieces = run(rig, folder)
    rows = {row["bytes"]: row for row in report["streams"]["held_rows"]}
    proved = [piece for piece in pieces if piece["proved"]]
    assert len(rows) == len(proved) == len(pieces) - 1, (rows, pieces)
    for piece in proved:
        row = rows[piece["size"]]
        assert row["frees"] == 1 and row["heap"] == "driver", row
        shortest = piece["proved"][0] - piece["freed"][1]
        longest = piece["proved"][1] - piece["freed"][0]
        assert shortest <= row["longest_ns"] <= longest, (piece, row, shortest, longest)


def case_free_that_nothing_proves_is_not_guessed(rig, folder):
    report, pieces = run(rig, folder)
    (held,) = [heap for heap in report["streams"]["held"] if heap["heap"] == "driver"]
    assert held["frees"] == len(pieces) - 1, held
    assert held["unknown_frees"] == 1 and held["unknown_bytes"] == pieces[-1]["size"], held
    assert held["bytes"] == sum(piece["size"] for piece in pieces[:-1]), held


def case_streams_have_their_priority_and_their_kind(rig, folder):
    report, _ = run(rig, folder)
    made = [s for s in report["streams"]["streams"] if s["created_t_ns"] is not None]
    assert [s["priority"] for s in made] == [0, 0, -1], made
    assert [s["blocking"] for s in made] == [True, False, False], made
    assert [s["destroyed_t_ns"] is not None for s in made] == [False, False, True], made


def case_host_time_is_that_of_the_calls(rig, folder):
    report, _ = run(rig, folder)
    costs = {(cost["what"], cost["api"]): cost for cost in report["streams"]["host"]}
    calls = {}
    for cost in report["streams"]["host"]:
        calls[cost["api"]] = calls.get(cost["api"], 0) + cost["calls"]
    assert calls["cudaStreamSynchronize"] == 2 and calls["cudaDeviceSynchronize"] == 2, calls
    assert calls["cudaEventSynchronize"] == 4, calls
    assert costs["sync", "cudaDeviceSynchronize"]["longest_ns"] >= 3_000_000, costs
    assert costs["free", "cudaFree"]["total_ns"] >= 2_000_000, costs


def case_cupti_saw_the_same_memory(rig, folder):
    program = [sys.executable, PROGRAMS / "stream_life.py"]
    recording = rig.run(folder, program, options=("--cupti", "full"))
    pieces = recording.result()["pieces"]
    check = recording.report()["cross_check"]
    assert check["allocations"] == check["frees"] == len(pieces) + 1, check
    assert check["only_cupti"] == check["only_recording"] == check["sizes_differ"] == 0, check
    assert recording.info()["cross_check"] == check


# ---- Random programs against the device's own clock ----------------------------------------------

SEEDS = range(1, 5)
DEVICE_TIME = {"SIMCUDA_BANDWIDTH": "20M", "SIMCUDA_LOG_STREAMS": "1"}  # a piece takes 0.2 to 40 ms


def random_program(seed):
    """Makes one call per line, so that each piece has a stack of its own."""
    rng = random.Random(seed)
    lines = []
    for _ in range(250):
        stream, event = f"streams[{rng.randrange(5)}]", f"events[{rng.randrange(6)}]"
        lines += rng.choices(
            [
                f"free_on({stream}, '')",
                f"call('cudaEventRecord', {event}, {stream})",
                f"call('cudaStreamWaitEvent', {stream}, {event}, 0)",
                f"query('cudaEventQuery', {event})",
                f"call('cudaEventSynchronize', {event})",
                f"call('cudaStreamSynchronize', {stream})",
                "call('cudaDeviceSynchronize')",
                "time.sleep(0.001)",
            ],
            [60, 50, 50, 20, 8, 4, 1, 10],
        )
    return "\n".join(lines) + "\n"


def device_done(folder):
    """Returns when the device was done with each free, in the order of the frees."""
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    return [line["done_ns"] for line in lines if line["call"].startswith("cuMemFreeAsync")]


def case_nothing_is_reported_done_before_the_device_is_done(rig, folder):
    late = runs = 0
    for seed in seeds(*SEEDS):
        runs += 1
        place = folder / str(seed)
        (place / "sessions").mkdir(parents=True, mode=0o700)
        (place / "program.py").write_text(random_program(seed))
        command = [sys.executable, PROGRAMS / "stream_life.py", place / "program.py"]
        recording = rig.run(place, command, **DEVICE_TIME)
        pieces = recording.result()["pieces"]
        recording.check_whole()
        lines = recording.events()
        start_ns = lines[0]["start_monotonic_ns"]
        freed = [
            start_ns + line["t_ns"]
            for line in lines
            if line["kind"] == "free" and line.get("memory") == "pool"
        ]
        done = device_done(place)
        assert len(freed) == len(done) == len(pieces), (len(freed), len(done), len(pieces))
        rows = {row["bytes"]: row for row in recording.report()["streams"]["held_rows"]}
        known = 0
        for i, piece in enumerate(pieces):
            row = rows.get(piece["size"])
            if row is None:
                continue
            assert row["frees"] == 1, row
            known += 1
            said_ns = freed[i] + row["longest_ns"]
            assert said_ns >= done[i], f"seed {seed}: piece {i} {done[i] - said_ns} ns too early"
            late += done[i] > freed[i] + 1_000_000
        assert known > len(pieces) * 0.5, f"seed {seed}: {known} of {len(pieces)} are known"
    print(f"       {late} frees had work pending for a millisecond")
    assert late > 5 * runs, f"only {late} frees of {runs} runs had work pending for a millisecond"


CASES = [(name[5:], case) for name, case in list(globals().items()) if name.startswith("case_")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    chosen = [(name, case) for name, case in CASES if not args.names or name in args.names]
    return run_cases(Rig(args.build.resolve(), None), chosen)


if __name__ == "__main__":
    sys.exit(main())
