"""Called by scripts/gpu-check, which documents the usage."""

import argparse
import os
import pathlib
import sys

# Import as a package from any working directory, because other packages have modules of the same
# names.
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
from gpu_check import machine_checks  # noqa: E402
from gpu_check.checks import all_checks  # noqa: E402
from gpu_check.rig import ROOT, Rig  # noqa: E402
from gpu_check.runner import Runner, clear  # noqa: E402
from gpu_check.table import Table  # noqa: E402

BUDGET, PAIRS, QUICK_PAIRS = 470, 36, 3


def parse():
    parser = argparse.ArgumentParser(prog="gpu-check", description="See the top of scripts/gpu-check.")
    parser.add_argument("--python", default=os.environ.get("GMT_TORCH_PYTHON") or "python3")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--seconds", type=float, default=BUDGET)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="CHECK")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--simulated", type=pathlib.Path, metavar="BUILD_DIR")
    return parser.parse_args()


def place_of(output, simulated):
    """Returns the path of the page, or None if none should be written."""
    if output is None:
        return None if simulated else ROOT / "docs" / "gpu.md"
    return output / "gpu.md" if output.is_dir() or output.suffix == "" else output


def chosen_checks(arguments, facts):
    pairs = arguments.pairs or (QUICK_PAIRS if arguments.quick else PAIRS)
    checks = all_checks(facts, pairs)
    if arguments.only:
        unknown = set(arguments.only) - {check.name for check in checks}
        if unknown:
            sys.exit(f"gpu-check: no such check: {', '.join(sorted(unknown))}; see --list")
        return [check for check in checks if check.name in arguments.only]
    return [check for check in checks if check.quick or not arguments.quick]


def main():
    arguments = parse()
    facts = {}
    checks = chosen_checks(arguments, facts)
    if arguments.list:
        print(*(f"{check.name:<20} {check.title}, at most {check.seconds} s" for check in checks), sep="\n")
        return 0
    rig = Rig(arguments.python, arguments.simulated and arguments.simulated.resolve(), arguments.quick)
    rig.find_cuda()
    rig.machine = machine_checks.ask_torch(rig)
    if arguments.simulated:
        print("ON THE SIMULATED DEVICE: this tests the checks and the events, not a GPU.\n")
    table = Table(echo=lambda line: print(line, flush=True))
    output = place_of(arguments.output and arguments.output.resolve(), arguments.simulated)
    if output:
        clear(output)
    runner = Runner(rig, table, arguments.seconds, output)
    runner.facts = facts
    runner.run(checks)
    if output:
        print(f"\nWritten to {output} and {output.with_suffix('.json')}")
    print(f"\n{table.summary()}")
    return 1 if table.failed() else 0


if __name__ == "__main__":
    sys.exit(main())
