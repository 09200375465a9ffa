#!/usr/bin/env python3
"""Tests how `scripts/bench --instructions --check` compares figures with the accepted ones.

Usage: bench_instructions_test.py [unittest's arguments]
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench_instructions  # noqa: E402


class Check(unittest.TestCase):
    def higher(self, now, tools=None):
        """Returns how many of the figures `now` are higher than accepted."""
        counts = bench_instructions.InstructionsBench(bench=None)
        counts.added = {"a hook": 1000.0, "the walk": 100.0, "a walk by libgcc": 5000.0, **now}
        with tempfile.TemporaryDirectory() as folder:
            kept, bench_instructions.KEPT = bench_instructions.KEPT, pathlib.Path(folder) / "kept.json"
            self.addCleanup(setattr, bench_instructions, "KEPT", kept)
            bench_instructions.KEPT.write_text(json.dumps(
                {"tools": tools or bench_instructions.tools(),
                 "instructions": {"a hook": 1000, "the walk": 100, "a walk by libgcc": 5000}}))
            with contextlib.redirect_stdout(io.StringIO()):
                return counts.check()

    def test_equal_and_lower_figures_pass(self):
        self.assertEqual(self.higher({}), 0)
        self.assertEqual(self.higher({"a hook": 700.0}), 0)

    def test_three_percent_more_pass_and_four_do_not(self):
        self.assertEqual(self.higher({"a hook": 1030.0}), 0)
        self.assertEqual(self.higher({"a hook": 1040.0}), 1)
        self.assertEqual(self.higher({"a hook": 1040.0, "the walk": 105.0}), 2)

    def test_other_projects_unwinders_are_not_judged(self):
        self.assertEqual(self.higher({"a walk by libgcc": 9000.0}), 0)

    def test_figures_of_another_compiler_are_not_compared(self):
        self.assertEqual(self.higher({"a hook": 2000.0}, tools="g++ 5.4.0"), 0)


if __name__ == "__main__":
    unittest.main()
