#!/usr/bin/env python3
"""Tests the parts of scripts/gpu-check that need no device: rows, statistics, time limits, files."""

import json
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_check import page, recording, statistic, total_checks  # noqa: E402
from gpu_check.checks import Check, all_checks  # noqa: E402
from gpu_check.rig import Failed, Rig  # noqa: E402
from gpu_check.runner import Runner  # noqa: E402
from gpu_check.table import Table  # noqa: E402


class BareRig(Rig):
    """Runs commands without a product."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.simulated, self.folder, self.runs = None, None, []
        self.deadline, self.library_folders = float("inf"), []


def quiet():
    return Table(echo=lambda line: None)


def is_running(pid):
    """Returns whether the process runs. It may remain as a zombie if no process reaps orphans."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def states(table):
    return [row.ok for row in table.rows]


class RowsTest(unittest.TestCase):
    def test_unexpected_results_are_not_ok(self):
        table = quiet()
        table.expect("same", 1, 1)
        table.expect("other", 1, 2)
        table.expect_bytes("near", 100, 101, within=1)
        table.expect_bytes("far", 100, 102, within=1)
        table.expect_bytes("unknown", None, 102)
        self.assertEqual(states(table), ["yes", "NO", "yes", "NO", "NO"])
        self.assertTrue(table.failed())

    def test_information_cannot_fail(self):
        table = quiet()
        table.note("a figure", 7)
        table.absent("CuPy", "not installed")
        self.assertFalse(table.failed())


class RunnerTest(unittest.TestCase):
    def run_checks(self, *functions, budget=100, seconds=20):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "gpu.md"
            table = quiet()
            runner = Runner(BareRig(), table, budget, output)
            runner.run([Check(f.__name__, "Group", seconds, f) for f in functions])
            return table, output.read_text(), json.loads(output.with_suffix(".json").read_text())

    def test_after_an_exception_the_next_check_runs(self):
        def breaks(rig, table):
            raise KeyError("size")

        def works(rig, table):
            table.expect("works", 1, 1)

        table, page, details = self.run_checks(breaks, works)
        self.assertEqual(states(table), ["NO", "yes"])
        self.assertIn("| breaks | KeyError: 'size' | no failure | NO |", page)
        self.assertIn("raise KeyError", details["details"]["breaks"]["traceback"])
        self.assertTrue(details["finished"])

    def test_a_check_without_rows_is_not_ok(self):
        def silent(rig, table):
            pass

        self.assertEqual(states(self.run_checks(silent)[0]), ["NO"])

    def test_a_failed_command_is_reported_with_the_end_of_its_stderr(self):
        def fails(rig, table):
            rig.run([sys.executable, "-c", "import sys; sys.exit('no such device')"])

        table, _, details = self.run_checks(fails)
        self.assertEqual(states(table), ["NO"])
        self.assertIn("no such device", table.rows[0].seen)
        self.assertEqual(details["details"]["fails"]["failed"]["code"], 1)

    def test_a_command_that_hangs_is_stopped_with_its_children(self):
        started = []

        def hangs(rig, table):
            try:
                rig.run(["sh", "-c", "sleep 3600 & echo $! > started; exec sleep 3600"])
            finally:
                started.append(int((rig.folder / "started").read_text()))

        table, _, _ = self.run_checks(hangs, seconds=5)
        self.assertEqual(states(table), ["NO"])
        self.assertIn("was stopped", table.rows[0].seen)
        while is_running(started[0]):
            time.sleep(0.01)

    def test_checks_beyond_the_budget_are_reported(self):
        def late(rig, table):
            table.expect("late", 1, 1)

        table, page, _ = self.run_checks(late, budget=0)
        self.assertEqual(states(table), ["no time"])
        self.assertIn("1 without time", page)

    def test_a_check_stopped_by_the_end_of_the_budget_is_not_a_failure(self):
        def slow(rig, table):
            rig.run(["sleep", "3600"])

        table, _, _ = self.run_checks(slow, budget=8)
        self.assertEqual(states(table), ["no time"])
        self.assertIn("was stopped", table.rows[0].seen)

    def test_a_killed_run_keeps_its_results(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "gpu.md"
            runner = Runner(BareRig(), quiet(), 100, output)

            def first(rig, table):
                table.expect("first", 1, 1)

            def killed(rig, table):
                raise KeyboardInterrupt

            with self.assertRaises(KeyboardInterrupt):
                runner.run([Check("first", "Group", 20, first), Check("killed", "Group", 20, killed)])
            self.assertIn("| first | 1 | 1 | yes |", output.read_text())
            self.assertIn("NOT FINISHED", output.read_text())
            self.assertFalse(json.loads(output.with_suffix(".json").read_text())["finished"])

    def test_files_of_a_failed_check_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "gpu.md"

            def fails(rig, table):
                (rig.folder / "run.gmt").write_bytes(b"recorded")
                table.expect("fails", 1, 2)

            Runner(BareRig(), quiet(), 100, output).run([Check("fails", "Group", 20, fails)])
            self.assertTrue(output.with_name("gpu-evidence.zip").exists())

    def test_what_was_written_by_hand_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "gpu.md"
            output.write_text(f"# On a real GPU\n\nold\n{page.KEPT}\nby hand\n")
            Runner(BareRig(), quiet(), 100, output).run([])
            self.assertNotIn("old", output.read_text())
            self.assertTrue(output.read_text().endswith(f"{page.KEPT}\nby hand\n"))

    def test_names_of_checks_are_unique(self):
        names = [check.name for check in all_checks({}, 3)]
        self.assertEqual(len(names), len(set(names)))


class CommandTest(unittest.TestCase):
    def test_settings_of_the_callers_profiler_do_not_reach_a_command(self):
        rig = BareRig()
        try:
            import os

            os.environ["GPUMEMTRACE"] = "quiet"
            environment = rig.environment({"MORE": "1"})
        finally:
            del os.environ["GPUMEMTRACE"]
        self.assertNotIn("GPUMEMTRACE", environment)
        self.assertEqual(environment["MORE"], "1")

    def test_a_failure_that_is_allowed_is_returned(self):
        done = BareRig().run(["sh", "-c", "exit 3"], fails=True)
        self.assertEqual(done.code, 3)
        with self.assertRaises(Failed):
            BareRig().run(["sh", "-c", "exit 3"])


class StatisticTest(unittest.TestCase):
    def test_interval_of_the_sign_test(self):
        # From tables of the sign test: the 6th and 15th of 20 values, the minimum and maximum of 6.
        self.assertEqual(statistic.median_interval(range(1, 21)), (6, 10.5, 15))
        self.assertEqual(statistic.median_interval([6, 5, 4, 3, 2, 1]), (1, 3.5, 6))
        self.assertEqual(statistic.median_interval(range(1, 37)), (12, 18.5, 25))

    def test_interval_of_few_values_is_their_range(self):
        self.assertEqual(statistic.median_interval([2.0]), (2.0, 2.0, 2.0))
        self.assertEqual(statistic.median_interval([3, 1]), (1, 2, 3))


class ComparisonTest(unittest.TestCase):
    def test_first_difference(self):
        self.assertIsNone(recording.first_difference(["a", "b"], ["a", "b"]))
        self.assertIn("call 1", recording.first_difference(["a", "b"], ["a", "c"]))
        self.assertIn("missing {'b': 1}", recording.first_difference(["a", "b"], ["a"]))

    def test_memory_is_live_after_a_failed_free(self):
        alloc = {"kind": "alloc", "memory": "device", "address": 16, "size": 8}
        free = {"kind": "free", "memory": "device", "address": 16, "thread": 1}
        refused = {**free, "kind": "free_done", "result": 700}
        self.assertEqual(recording.live_at_the_end([alloc, free, {**refused, "result": 0}]), {})
        self.assertEqual(recording.live_at_the_end([alloc, free, refused]), {("device", 16): 8})

    def test_rounding_to_pages(self):
        page = 2 << 20
        self.assertEqual([total_checks.rounded(n) for n in (0, 1, page, page + 1)], [0, page, page, 2 * page])
        self.assertEqual(total_checks.rounded(-page - 1), -2 * page)


if __name__ == "__main__":
    unittest.main()
