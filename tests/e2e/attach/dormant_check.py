"""Attaches to and detaches from a dormant process repeatedly under load. Each recording must contain exactly the memory
allocated since the attach, and nothing may remain in the process.

The attaching client is simulated, so that only the process and the collector are tested.
"""

import argparse
import math
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as rigs  # noqa: E402
from waiting import let_pass, wait_for  # noqa: E402

import gate as attach_gate  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402


def attach(rig, load, gate, output, options=""):
    number = gate.request_attach(options)
    load.command("poke", "poked")
    gate.wait_begun(number)
    return attach_gate.Collector(rig.build, gate.path, output).wait_until_at_work(gate)


def held_since(load, begin_ns):
    """Returns the memory held by the stopped threads; None if nothing of it was allocated since then (the threads resume)."""
    held = load.pause()
    if any(before > begin_ns for _, _, before, _ in held):
        return held
    load.command("go", "going")
    return None


def recorded_live(rig, path):
    """Returns the driver's heap at the detach: {address: size}; and how long after begin_ns the first call was recorded."""
    recording = rigs.Recording(rig, path.parent, None)
    live = {}
    first_ns = math.inf
    for event in recording.events(path):
        if event.get("heap") != "driver":
            continue
        first_ns = min(first_ns, event["t_ns"])
        if event["kind"] == "alloc":
            live[event["address"]] = event["size"]
        elif event["kind"] == "free":
            live.pop(event["address"], None)
    return live, first_ns


def check_live(rig, path, held, begin_ns):
    live, first_ns = recorded_live(rig, path)
    held_at = {address: size for address, size, _, _ in held}
    # The process starts to record a moment after begin_ns, at the latest with its first recorded
    # call.
    must = {a: s for a, s, before, _ in held if before > begin_ns + first_ns}
    may_not = {a for a, _, _, after in held if after < begin_ns}
    for address, size in must.items():
        assert live.get(address) == size, f"{address:#x}: {size} bytes held, {live.get(address)}"
    for address, size in live.items():
        assert held_at.get(address) == size, f"{address:#x}: {size} bytes recorded, not held"
        assert address not in may_not, f"{address:#x} was allocated before the attach"
    return len(must)


def check_complete(rig, path, whole=True):
    info = rigs.Recording(rig, path.parent, None).info(path)
    assert info["complete"], info
    losses = info["losses"]
    lost = losses["overrun"] + losses["holes"] + losses["abandoned"] + losses["backlog"]
    assert losses["written"] == losses["delivered"] + lost, losses
    assert not whole or lost == 0, losses
    names = [snapshot["name"] for snapshot in info["snapshots"]]
    assert "detach" in names, names
    return info


# ---- Cases --------------------------------------------------------------------------------------


def leaves_next_to_nothing(rig, folder, seed):
    """Before an attach there is only a file with a few pages: no output, no message, no collector."""
    load = attach_gate.Load(rig, folder, "--seed", seed, LD_PRELOAD=rig.library(), GPUMEMTRACE="dormant")
    gate = attach_gate.find_gate(folder / "sessions", load.pid)
    assert attach_gate.state_of(rig, folder, gate.path) == "dormant"
    assert gate.blocks() * 512 <= 256 << 10, gate.blocks()
    assert gate.word(attach_gate.GATE) == 1
    children = pathlib.Path(f"/proc/{load.pid}/task/{load.pid}/children").read_text()
    assert children.strip() == "", children
    path = gate.path
    gate.close()
    code, errors = load.end()
    assert code == 0 and errors == "", (code, errors)
    assert not path.exists(), "the session of an ended process still exists"
    assert not list(folder.glob("*.gmt"))


def cpu_only_leaves_nothing(rig, folder, _):
    own = folder / "own"
    done = rig.preload(folder, ["true"], simulated=False, GPUMEMTRACE="dormant", GPUMEMTRACE_DIR=str(own))
    assert done.done.returncode == 0 and done.done.stderr == ""
    assert not own.exists()


def children_have_their_own(rig, folder, seed):
    load = attach_gate.Load(rig, folder, "--seed", seed, LD_PRELOAD=rig.library(), GPUMEMTRACE="dormant")
    own = attach_gate.find_gate(folder / "sessions", load.pid)
    load.pause()
    # A child of a process that has used CUDA: its calls fail, but they are calls.
    assert load.command("fork", "child").split()[1] == "1"
    sessions = sorted(p.name for p in (folder / "sessions").glob("*.session"))
    assert len(sessions) == 2, sessions
    assert own.path.name in sessions
    number = own.request_attach()
    load.command("poke", "poked")
    own.wait_begun(number)
    assert load.command("fork", "child").split()[1] == "1", "a child of a recorded process"
    collector = attach_gate.Collector(rig.build, own.path, folder / "parent.gmt")
    collector.wait_until_at_work(own)
    own.withdraw()
    load.command("poke", "poked")
    assert collector.wait() == 0, collector.errors
    check_complete(rig, folder / "parent.gmt")
    assert load.end()[0] == 0


def options_hold_for_an_attach(rig, folder, seed):
    load = attach_gate.Load(
        rig, folder, "--seed", seed, LD_PRELOAD=rig.library(), GPUMEMTRACE="dormant,stacks=none"
    )
    gate = attach_gate.find_gate(folder / "sessions", load.pid)
    for name, options, with_stacks in (
        ("first", "stacks=native", True),
        ("second", "", False),
    ):
        collector = attach(rig, load, gate, folder / f"{name}.gmt", options)
        load.command("poke", "poked")
        gate.withdraw()
        load.command("poke", "poked")
        assert collector.wait() == 0, collector.errors
        events = rigs.Recording(rig, folder, None).events(folder / f"{name}.gmt")
        stacks = [e for e in events if e["kind"] == "alloc" and e.get("stack", 0) != 0]
        assert bool(stacks) == with_stacks, (name, len(stacks))
    assert load.end()[0] == 0


def idle_process_is_detached(rig, folder, seed):
    """Detaches while the process makes no call: the recording ends anyway, the memory is released at the next call."""
    load = attach_gate.Load(rig, folder, "--seed", seed, LD_PRELOAD=rig.library(), GPUMEMTRACE="dormant")
    gate = attach_gate.find_gate(folder / "sessions", load.pid)
    collector = attach(rig, load, gate, folder / "run.gmt")
    held = load.pause()
    begin_ns = gate.quad(attach_gate.BEGIN_NS)
    gate.withdraw()
    assert collector.wait() == 0, collector.errors
    check_complete(rig, folder / "run.gmt")
    check_live(rig, folder / "run.gmt", held, begin_ns)
    load.command("poke", "poked")
    gate.wait_ended()
    wait_for("the release of the memory", lambda: gate.blocks() * 512 <= 256 << 10)
    assert load.end()[0] == 0


def injected_later(rig, folder, seed):
    """Without the library from the start: calls are intercepted at an attach and restored at a detach."""
    load = attach_gate.Load(rig, folder, "--seed", seed)
    load.command("slow 300", "slow")
    assert load.command("slot", "slot").split()[1].startswith("libcudart")
    library = rig.library()
    before = None
    for n in range(10):
        answer = load.command(f"attach {library}", "attached").split(maxsplit=3)
        assert answer[1] == ("1" if n == 0 else "0"), answer
        assert "the GPU was already in use" in answer[3], answer
        assert load.command("slot", "slot").split()[1] == "libgpumemtrace.so"
        gate = attach_gate.find_gate(folder / "sessions", load.pid)
        assert answer[2] == str(gate.path) and gate.word(attach_gate.GATE) == 2
        collector = attach(rig, load, gate, folder / f"{n}.gmt")
        begin_ns = gate.quad(attach_gate.BEGIN_NS)
        held = wait_for("an allocation since the attach", lambda: held_since(load, begin_ns))
        gate.withdraw()
        load.command("poke", "poked")
        assert collector.wait() == 0, collector.errors
        load.command("go", "going")
        gate.wait_ended()
        info = check_complete(rig, folder / f"{n}.gmt")
        assert info["sources"]["calls"].startswith("on: injected by attach"), info["sources"]
        check_live(rig, folder / f"{n}.gmt", held, begin_ns)
        assert load.command("slot", "slot").split()[1].startswith("libcudart"), "a slot was not restored"
        gate.close()
        if n == 2:
            before = attach_gate.resources(load.pid)
    after = attach_gate.resources(load.pid)
    assert after[0] <= before[0] and after[1] <= before[1] + 2, (before, after)
    assert load.end() == (0, "")


def no_memory_is_reported(rig, folder, seed):
    """A session whose memory cannot be allocated: the process continues, and the attaching client gets an error."""
    load = attach_gate.Load(
        rig, folder, "--seed", seed, LD_PRELOAD=rig.library(),
        GPUMEMTRACE="dormant,ring=4GiB",
    )  # fmt: skip
    sessions = list((folder / "sessions").glob("*.session"))
    if sessions:  # a file system that has room for that
        gate = attach_gate.find_gate(folder / "sessions", load.pid)
        collector = attach_gate.Collector(rig.build, gate.path, folder / "run.gmt")
        assert collector.wait() == 1
        assert "no client is attached" in collector.errors, collector.errors
    code, errors = load.end()
    assert code == 0, (code, errors)
    assert sessions or "cannot be attached to: " in errors, errors


def rounds_leave_no_growth(rig, folder, seed):
    rounds = int(os.environ.get("GMT_ATTACH_ROUNDS", "100"))
    chance = random.Random(seed)
    load = attach_gate.Load(rig, folder, "--seed", seed, LD_PRELOAD=rig.library(), GPUMEMTRACE="dormant")
    load.command("slow 300", "slow")
    gate = attach_gate.find_gate(folder / "sessions", load.pid)
    empty_blocks = gate.blocks()
    before = None
    exact = killed = compared = 0
    for n in range(rounds):
        output = folder / f"{n}.gmt"
        collector = attach(rig, load, gate, output)
        begin_ns = gate.quad(attach_gate.BEGIN_NS)
        let_pass(chance.uniform(0, 0.05))
        kind = chance.choice(["paused", "running", "running", "killed"])
        if kind == "killed":
            collector.kill()
            killed += 1
            gate.withdraw()
            load.command("poke", "poked")
            gate.wait_ended()
        elif kind == "running":
            gate.withdraw()
            load.command("poke", "poked")
            assert collector.wait() == 0, collector.errors
            check_complete(rig, output)
        else:
            held = load.pause()
            gate.withdraw()
            load.command("poke", "poked")
            assert collector.wait() == 0, collector.errors
            load.command("go", "going")
            check_complete(rig, output)
            compared += check_live(rig, output, held, begin_ns)
            exact += 1
        output.unlink(missing_ok=True)
        gate.wait_ended()
        if kind != "killed":
            wait_for("the release of the memory", lambda: gate.blocks() <= empty_blocks)
        if n == min(10, rounds // 2):
            before = attach_gate.resources(load.pid)
    # End with a round without a kill, so that remains of the last killed collector are released
    # too.
    collector = attach(rig, load, gate, folder / "last.gmt")
    gate.withdraw()
    load.command("poke", "poked")
    assert collector.wait() == 0, collector.errors
    after = attach_gate.resources(load.pid)
    wait_for("the release of the memory", lambda: gate.blocks() <= empty_blocks)
    print(f"{rounds} rounds: {exact} compared ({compared} blocks), {killed} with a killed collector;"
          f" before {before}, after {after}, {empty_blocks * 512} bytes of session")  # fmt: skip
    assert after[0] <= before[0], ("descriptors", before, after)
    assert after[1] <= before[1] + 2, ("mappings", before, after)  # malloc may add a heap
    assert after[2] <= before[2] + 2048, ("resident memory", before, after)
    assert after[3] == before[3], ("threads", before, after)
    code, errors = load.end()
    assert code == 0 and errors == "", (code, errors)


CASES = [
    leaves_next_to_nothing,
    cpu_only_leaves_nothing,
    children_have_their_own,
    options_hold_for_an_attach,
    idle_process_is_detached,
    injected_later,
    no_memory_is_reported,
    rounds_leave_no_growth,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    rig = rigs.Rig(given.build.resolve(), None)
    for seed in seeds(1):
        cases = [(case.__name__, lambda rig, folder, case=case: case(rig, folder, seed)) for case in CASES]
        chosen = [case for case in cases if not given.names or case[0] in given.names]
        if rigs.run_cases(rig, chosen) != 0:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
