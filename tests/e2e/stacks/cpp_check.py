#!/usr/bin/env python3
"""Records a C++ program with many known sites and compares every stack, inlined functions included.

Usage: cpp_check.py --build DIR
"""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
import rig as rigs  # noqa: E402
from comparison import NativeComparison  # noqa: E402
from expectations import PROGRAMS, Expectations, size_of  # noqa: E402
from recorded import WITH_ALL_NAMES, stacks_by_size  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    rig = rigs.Rig(parser.parse_args().build.resolve(), sys.executable)
    expectations = Expectations(sorted(PROGRAMS.glob("cpp_*.cc")))
    comparison = NativeComparison(expectations, "cpp::Take")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gmt-stacks.") as folder:
        folder = pathlib.Path(folder)
        (folder / "sessions").mkdir(mode=0o700)
        program = rig.build / "tests" / "stack_sites" / "cpp_sites"
        recording = rig.run(folder, [program], WITH_ALL_NAMES)
        assert recording.done.returncode == 0, recording.done.stderr
        recorded = stacks_by_size(recording)
    passed = failed = 0
    for site in expectations.sites.values():
        stacks = recorded.pop(size_of(site.name), [])
        differences = [text for stack in stacks for text in comparison.differences(site, stack)]
        if len(stacks) != 1:
            differences.append(f"{len(stacks)} allocations were recorded instead of one")
        passed += not differences
        failed += bool(differences)
        for text in differences:
            print(f"  {site.name} ({site.where}): {text}")
    assert not recorded, f"allocations of no site: {sorted(recorded)}"
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0 or passed < 25)


if __name__ == "__main__":
    main()
