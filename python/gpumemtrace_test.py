#!/usr/bin/env python3
"""Tests the package gpumemtrace with a library that logs its calls, and without any.

Usage: gpumemtrace_test.py REPORTED_CALLS_LIBRARY [UNITTEST ARGUMENTS]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FIRST = (1 << 40) + 1  # the first range of the substitute library
NO_INDEX = 2**64 - 1
library = ""


def run(program, preload=None, **more):
    """Runs a program in its own process. Returns its output and the lines that the library logged."""
    with tempfile.TemporaryDirectory() as folder:
        reported = pathlib.Path(folder) / "reported"
        ours = ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "GPUMEMTRACE", "GPUMEMTRACE_LIBRARY")
        environment = {k: v for k, v in os.environ.items() if k not in ours}
        environment.update(PYTHONPATH=str(HERE), REPORTED_CALLS=str(reported), PYTHONDONTWRITEBYTECODE="1", **more)
        if preload:
            environment["LD_PRELOAD"] = preload
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=environment, text=True,
                              capture_output=True, timeout=120)
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode}\n{done.stderr}")
        return done.stdout, reported.read_text().splitlines() if reported.exists() else []


class Recorded(unittest.TestCase):
    """The calls that reach the library."""

    def reported(self, program, *wanted):
        self.assertEqual(run("import gpumemtrace\n" + textwrap.dedent(program), library)[1], list(wanted))

    def test_steps_are_counted_and_an_index_sets_the_counter(self):
        self.reported("[gpumemtrace.step(index) for index in (None, None, 100, None, 0, None)]",
                  *(f"mark step {n}" for n in (0, 1, 100, 101, 0, 1)))

    def test_mark_has_an_index_of_64_bits_or_none(self):
        self.reported(f"gpumemtrace.mark('a'); gpumemtrace.mark('b', 0); gpumemtrace.mark('c', {2**64 - 2})",
                  f"mark a {NO_INDEX}", "mark b 0", f"mark c {2**64 - 2}")

    def test_any_name_is_passed_as_utf8(self):
        self.reported(r"gpumemtrace.mark('größe 重', 1); gpumemtrace.mark('\ud800', 2)",
                  "mark größe 重 1", r"mark \ud800 2")

    def test_number_types_of_other_libraries_are_accepted(self):
        self.reported("""
            class Number:
                def __index__(self): return 7
            gpumemtrace.mark('a', Number()); gpumemtrace.step(True)""", "mark a 7", "mark step 1")

    def test_nested_regions_end_in_reverse_order(self):
        self.reported("""
            with gpumemtrace.region('outer'):
                with gpumemtrace.region('inner'): pass
            """, f"begin outer {FIRST}", f"begin inner {FIRST + 1}", f"end {FIRST + 1}", f"end {FIRST}")

    def test_region_object_may_be_entered_recursively(self):
        self.reported("""
            again = gpumemtrace.region('again')
            with again, again: pass
            """, f"begin again {FIRST}", f"begin again {FIRST + 1}", f"end {FIRST + 1}", f"end {FIRST}")

    def test_exception_ends_its_regions_and_propagates(self):
        self.reported("""
            try:
                with gpumemtrace.region('a'), gpumemtrace.region('b'): raise KeyError('lost')
            except KeyError as error: gpumemtrace.mark(str(error), 5)
            """, f"begin a {FIRST}", f"begin b {FIRST + 1}", f"end {FIRST + 1}", f"end {FIRST}", "mark 'lost' 5")

    def test_decorated_recursive_function_keeps_name_result_and_order(self):
        self.reported("""
            @gpumemtrace.region('f')
            def factorial(n, *, unused=None):
                "Doc."
                return n * factorial(n - 1, unused=1) if n else 1
            assert factorial(2) == 2 and factorial.__name__ == 'factorial' and factorial.__doc__ == 'Doc.'
            """, *(f"begin f {FIRST + n}" for n in range(3)), *(f"end {FIRST + n}" for n in (2, 1, 0)))

    def test_decorated_function_that_raises_ends_its_region(self):
        self.reported("""
            @gpumemtrace.region('f')
            def fail(): raise OSError
            try: fail()
            except OSError: gpumemtrace.mark('caught', 0)
            """, f"begin f {FIRST}", f"end {FIRST}", "mark caught 0")

    def test_threads_end_their_own_regions(self):
        _, reported = run("""
            import gpumemtrace, threading
            barrier = threading.Barrier(4)
            @gpumemtrace.region('shared')
            def work(n):
                with gpumemtrace.region(f'own {n}'):
                    barrier.wait()
            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            """, library)
        begun = [line.split()[-1] for line in reported if line.startswith("begin")]
        ended = [line.split()[-1] for line in reported if line.startswith("end")]
        self.assertEqual(len(begun), 8)
        self.assertEqual(sorted(begun), sorted(ended))
        self.assertEqual(sorted(begun), sorted(set(begun)))

    def test_forked_child_does_not_end_its_parents_regions(self):
        _, reported = run("""
            import gpumemtrace, os
            with gpumemtrace.region('before'):
                child = os.fork()
                if child == 0:
                    with gpumemtrace.region('in the child'): gpumemtrace.mark('child', 1)
                else:
                    assert os.waitpid(child, 0)[1] == 0
                    gpumemtrace.mark('parent', 2)
            """, library)
        # The range counter was copied to the child.
        self.assertEqual(reported, [f"begin before {FIRST}", f"begin in the child {FIRST + 1}", "mark child 1",
                                f"end {FIRST + 1}", "mark parent 2", f"end {FIRST}"])

    def test_snapshot_and_recording_return_the_librarys_answer(self):
        printed, reported = run("""
            import gpumemtrace
            print(gpumemtrace.snapshot('full'), gpumemtrace.snapshot(), gpumemtrace.recording())
            """, library)
        self.assertEqual((printed, reported), ("True True True\n", ["snapshot full", "snapshot request"]))


class Started(unittest.TestCase):
    """start() finds and opens a library, and returns its answer."""

    PROGRAM = """
        import gpumemtrace
        gpumemtrace.mark('before', 1)
        try: print(gpumemtrace.start())
        except (OSError, RuntimeError) as error: print(f'{type(error).__name__}: {error}')
        gpumemtrace.mark('after', 2)
        """

    def test_library_in_the_variable_is_opened_and_used(self):
        printed, reported = run(self.PROGRAM, GPUMEMTRACE_LIBRARY=library)
        self.assertEqual((printed, reported), ("begun\n", ["start 4096", "mark after 2"]))

    def test_library_beside_the_program_in_path_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            for name in ("bin", "lib", "elsewhere"):
                (place / name).mkdir()
            shutil.copy(library, place / "lib" / "libgpumemtrace.so")
            (place / "bin" / "gpumemtrace").write_text("#!/bin/sh\n")
            (place / "bin" / "gpumemtrace").chmod(0o755)
            (place / "elsewhere" / "gpumemtrace").symlink_to(place / "bin" / "gpumemtrace")
            path = f"{place / 'elsewhere'}:{os.environ['PATH']}"
            self.assertEqual(run(self.PROGRAM, PATH=path)[0], "begun\n")

    def test_path_argument_has_priority(self):
        program = self.PROGRAM.replace("start()", f"start({library!r})")
        self.assertEqual(run(program, GPUMEMTRACE_LIBRARY="/nowhere")[0], "begun\n")

    def test_preloaded_library_is_used(self):
        printed, reported = run(self.PROGRAM, library, GPUMEMTRACE_LIBRARY="/nowhere", REPORTED_START="0 preloaded")
        self.assertEqual((printed, reported), ("preloaded\n", ["mark before 1", "start 4096", "mark after 2"]))

    def test_copy_started_earlier_is_used(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(library, pathlib.Path(folder) / "copy.so")
            printed, reported = run(self.PROGRAM, GPUMEMTRACE_LIBRARY=library, REPORTED_START=f"-1 {copy}")
        self.assertEqual((printed, reported), (f"already done by {copy}\n", ["start 4096", "mark after 2"]))

    def test_library_injected_by_the_driver_is_used_immediately(self):
        with tempfile.TemporaryDirectory() as folder:
            ours = shutil.copy(library, pathlib.Path(folder) / "libgpumemtrace.so")
            program = "import gpumemtrace; gpumemtrace.mark('a', 1)"
            self.assertEqual(run(program, CUDA_INJECTION64_PATH=ours)[1], ["mark a 1"])
            self.assertEqual(run(program, CUDA_INJECTION64_PATH=library)[1], [])  # another tool's library

    def test_library_that_cannot_start_reports_the_reason(self):
        printed, reported = run(self.PROGRAM, GPUMEMTRACE_LIBRARY=library, REPORTED_START="-1 no luck")
        self.assertEqual((printed, reported), ("RuntimeError: gpumemtrace cannot start: no luck\n", ["start 4096"]))

    def test_missing_library_is_an_error_with_its_path(self):
        printed, _ = run(self.PROGRAM, GPUMEMTRACE_LIBRARY="/nowhere/lib.so")
        self.assertEqual(printed, "FileNotFoundError: libgpumemtrace.so was not found; looked for /nowhere/lib.so. "
                                  "Name it with: GPUMEMTRACE_LIBRARY=/path/to/libgpumemtrace.so\n")

    def test_other_library_is_an_error(self):
        other = sysconfig.get_config_var("LIBDIR") or "/usr/lib"
        candidates = [*pathlib.Path("/usr/lib").glob("*/libm.so.6"), *pathlib.Path(other).glob("libm.so.6")]
        if not candidates:
            self.skipTest("there is no libm")
        printed, _ = run(self.PROGRAM, GPUMEMTRACE_LIBRARY=str(candidates[0]))
        self.assertRegex(printed, "^RuntimeError: .* is not a gpumemtrace library\n$")


class NotRecorded(unittest.TestCase):
    """Without gpumemtrace, nothing happens."""

    def test_every_function_does_nothing(self):
        printed, reported = run("""
            import gpumemtrace
            gpumemtrace.step(); gpumemtrace.step(3); gpumemtrace.mark('a'); gpumemtrace.mark('b', 2)
            with gpumemtrace.region('r') as entered: assert isinstance(entered, gpumemtrace.region)
            @gpumemtrace.region('f')
            def f(x): return x + 1
            print(f(1), gpumemtrace.snapshot('s'), gpumemtrace.recording())
            """)
        self.assertEqual((printed, reported), ("2 False False\n", []))

    def test_library_that_lacks_a_function_is_ignored(self):
        # Any library that is not gpumemtrace of this version will do.
        self.assertEqual(run("import gpumemtrace; print(gpumemtrace.recording())", preload="libm.so.6")[0], "False\n")

    def test_python_without_ctypes_works(self):
        printed, _ = run("""
            import sys
            sys.modules['ctypes'] = None
            import gpumemtrace
            gpumemtrace.step(); print(gpumemtrace.recording())
            """, library)
        self.assertEqual(printed, "False\n")

    def test_exception_in_a_region_propagates(self):
        run("""
            import gpumemtrace
            try:
                with gpumemtrace.region('r'): raise KeyError
            except KeyError: pass
            else: raise SystemExit('swallowed')
            """)


class Wrong(unittest.TestCase):
    """Invalid arguments raise whether the process is recorded or not."""

    CASES = [
        ("gpumemtrace.mark(5)", "TypeError: name must be a str, not int"),
        ("gpumemtrace.mark(b'bytes')", "TypeError: name must be a str, not bytes"),
        ("gpumemtrace.mark('')", "ValueError: name must not be empty"),
        (r"gpumemtrace.snapshot('a\0b')", r"ValueError: name must not have a null character: 'a\x00b'"),
        ("gpumemtrace.mark('a', 1.5)", "TypeError: index must be an int, not float"),
        ("gpumemtrace.mark('a', -1)", f"ValueError: index must be from 0 to {2**64 - 2}: -1"),
        ("gpumemtrace.step('3')", "TypeError: index must be an int, not str"),
        ("gpumemtrace.step(2 ** 64 - 1)", f"ValueError: index must be from 0 to {2**64 - 2}: {2**64 - 1}"),
        ("gpumemtrace.region(None)", "TypeError: name must be a str, not NoneType"),
        ("gpumemtrace.region('a')(3)", "TypeError: region decorates functions, not int"),
        ("@gpumemtrace.region('a')\nasync def f(): pass",
         "TypeError: region cannot decorate a coroutine or a generator; use `with` inside of it"),
        ("@gpumemtrace.region('a')\ndef f(): yield",
         "TypeError: region cannot decorate a coroutine or a generator; use `with` inside of it"),
    ]

    def test_message_states_the_error(self):
        program = textwrap.dedent("""
            import gpumemtrace
            for code in %r:
                try: exec(code)
                except (TypeError, ValueError) as error: print(f'{type(error).__name__}: {error}')
                else: print('no error')
            """) % [code for code, _ in self.CASES]
        for preload in (None, library):
            printed, reported = run(program, preload)
            self.assertEqual(printed.splitlines(), [message for _, message in self.CASES])
            self.assertEqual(reported, [])


class Training(unittest.TestCase):
    """What callbacks for training libraries share."""

    def test_phases_within_a_phase_are_part_of_it(self):
        _, reported = run("""
            from gpumemtrace.training import Training
            training = Training()
            training.begin("evaluation")
            training.begin("test")
            training.end()
            training.end()
            """, library)
        self.assertEqual(reported, [f"begin evaluation {FIRST}", f"end {FIRST}"])

    def test_collector_that_does_not_answer_is_reported_once(self):
        printed, _ = run("""
            import gpumemtrace.training
            asked = []
            gpumemtrace.training._run = lambda *words: asked.append(words[0])
            training = gpumemtrace.training.Training()
            print(training.figures(), training.figures(), asked)
            print([training.report(["report"])], asked)
            """, library)
        self.assertEqual(printed, "{} {} ['status']\n[''] ['status', 'snapshot']\n")

    def test_nothing_is_asked_about_a_process_that_is_not_recorded(self):
        printed, _ = run("""
            import gpumemtrace.training
            gpumemtrace.training._run = None
            training = gpumemtrace.training.Training()
            print(training.figures(), [training.report(["report"])])
            """)
        self.assertEqual(printed, "{} ['']\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    library = sys.argv.pop(1)
    unittest.main(verbosity=1)
