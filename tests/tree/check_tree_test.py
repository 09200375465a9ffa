#!/usr/bin/env python3
"""Puts one violation of each rule into a small tree and expects check_tree.py to report it."""

import os
import stat
import subprocess
import sys
import tempfile
import unittest

CHECKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_tree.py")


class CheckTreeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="gmt-tree-")
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text, executable=False):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if executable:
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def check(self):
        done = subprocess.run([sys.executable, CHECKER, self.folder.name],
                              capture_output=True, text=True)
        return done.returncode, done.stdout

    def expect_allowed(self, name, text):
        self.write(name, text)
        self.assertEqual(self.check(), (0, ""))

    def expect_refused(self, name, text, words):
        self.write(name, text)
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertIn(f"{name}:1: ", output)
        self.assertIn(words, output)

    def test_a_directory_may_include_those_before_it(self):
        self.expect_allowed("analysis/peak.cc", '#include "format/event.h"\n#include "absl/strings/str_cat.h"\n')

    def test_a_directory_must_not_include_one_after_it(self):
        self.expect_refused("format/event.cc", '#include "analysis/peak.h"\n', "must not include analysis/")

    def test_a_comment_of_prose_is_at_most_100_columns_wide(self):
        self.expect_refused("format/event.h", "// " + "word " * 20 + "\n", "wider than 100 columns")
        self.write("format/event.h", "//   name" + " " * 60 + "what the column of a table holds, or a drawing\n")
        self.assertEqual(self.check(), (0, ""))

    def test_a_folder_must_not_include_a_higher_layer_of_its_room(self):
        self.expect_refused("preload/record/note.cc", '#include "preload/lifecycle/start.h"\n', "is a lower layer than")
        self.expect_refused("preload/torch/state/roles.h", '#include "preload/torch/hooks.h"\n', "is a lower layer than")

    def test_a_folder_may_include_a_lower_layer_of_its_room(self):
        self.expect_allowed("preload/lifecycle/start.cc", '#include "preload/record/note.h"\n')

    def test_no_directory_includes_the_preloaded_library(self):
        self.expect_refused("cli/record/run.cc", '#include "preload/lifecycle/start.h"\n', "must not include preload/")

    def test_symbols_know_recordings_in_one_file_only(self):
        self.expect_allowed("symbols/symbolize_recording.cc", '#include "format/event.h"\n')
        self.expect_refused("symbols/elf_file.cc", '#include "format/event.h"\n', "must not include format/")

    def test_symbols_do_not_know_analysis(self):
        self.expect_refused("symbols/symbolize_recording.cc", '#include "analysis/trace/trace.h"\n',
                            "must not include analysis/")

    def test_the_preloaded_library_needs_libc_only(self):
        self.expect_refused("preload/hooks/hook.cc", '#include "absl/strings/str_cat.h"\n', "must not need")
        self.expect_refused("session/ring.cc", "#include <string>\n", "must not need <string>")

    def test_unit_tests_of_the_session_use_the_whole_standard_library(self):
        self.write("session/CMakeLists.txt", "gmt_test(session SRCS ring_test.cc)\n")
        self.expect_allowed("session/ring_test.cc", "#include <string>\n#include <gtest/gtest.h>\n")

    def test_product_code_does_not_include_tests(self):
        self.expect_refused("cli/record/run.cc", '#include "tests/simcuda/device.h"\n', "must not include tests/")

    def test_the_simulated_device_does_not_know_the_product(self):
        self.expect_refused("tests/simcuda/device.cc", '#include "session/ring.h"\n', "must not include session/")

    def test_includes_are_written_from_the_root(self):
        self.expect_refused("cli/record/run.cc", '#include "run.h"\n', "from the root")

    def test_unfinished_work_is_rejected(self):
        self.expect_refused("docs/format.md", "TO" "DO: describe\n", "unfinished")

    def test_paths_of_one_machine_are_rejected(self):
        self.expect_refused("docs/format.md", "see /wo" "rk/tree/build\n", "one machine")

    def test_tests_draw_no_seeds_of_their_own(self):
        self.write("session/CMakeLists.txt", "gmt_test(session SRCS ring_test.cc)\n")
        for name, line in (
            ("session/ring_test.cc", "std::mt19937 random(std::random" "_device{}());"),
            ("session/ring_test.cc", "std::mt19937_64 random(time" "(nullptr));"),
            ("session/testing/session_fixture.h", "return random" "_device()();"),
            ("tests/programs/mixed.cc", "srand" "(1);"),
            ("tests/e2e/kill/kill_check.py", "seed = random.rand" "range(1 << 32)"),
            ("tests/e2e/kill/kill_check.py", "chance = random.Ran" "dom()"),
            ("viewer/page/src/views/items_test.ts", "const seed = Math.ran" "dom();"),
            ("viewer/page/e2e/monkey_test.ts", "const random = new Random(Date.now" "());"),
        ):
            with self.subTest(line):
                self.expect_refused(name, line + "\n", "draws a seed")
                self.write(name, "\n")

    def test_seeds_may_be_listed_and_drawn_in_one_place(self):
        self.write("session/CMakeLists.txt", "gmt_test(session SRCS ring_test.cc)\n")
        self.expect_allowed("session/ring_test.cc", "std::mt19937 random(seed);\n")
        self.expect_allowed("tests/e2e/kill/kill_check.py", "chance = random.Random(seed)\nself.random.random()\n")
        self.expect_allowed("tests/seeds/seeds.h", "std::random" "_device draw;\n")
        self.expect_allowed("collector/thread_search.cc", "std::random" "_device draw;\n")

    def test_lock_files_contain_no_host(self):
        self.expect_refused("viewer/package-lock.json", '"resolved": "http://example.invalid/x.tgz"\n', "host")

    def test_scripts_are_executable(self):
        self.expect_refused("scripts/test", "#!/usr/bin/env bash\n", "not executable")

    def test_a_test_that_is_never_built_is_rejected(self):
        self.expect_refused("session/ring_test.cc", "\n", "never built")

    def test_a_parent_directory_may_build_a_test(self):
        self.write("preload/CMakeLists.txt", "gmt_test(walk SRCS unwind/walk_test.cc)\n")
        self.expect_allowed("preload/unwind/walk_test.cc", "\n")

    def test_variables_of_the_preloaded_library_say_what_they_are_in_a_fork_child(self):
        for variable in ("constinit std::atomic<uint32_t> owner{0};", "static char path[64];", "thread_local Stack* stack = nullptr;",
                         "std::atomic<int (*)(void*)> next;", "constinit Function<decltype(cuInit)> init(", "Places Table::places_{1};"):
            self.expect_refused("preload/record/table.cc", f"{variable}\n", "what it is in a fork child")
        self.expect_refused("preload/record/table.cc", "int rows;\n\n// Cache: columns.\nint columns;\n", "what it is in a fork child")

    def test_variables_of_a_group_have_one_comment(self):
        self.expect_allowed("preload/record/table.cc", "// State: `owner` names the process.\nint owner;\nint rows;\n")

    def test_what_is_no_variable_needs_no_such_comment(self):
        for line in ("constexpr int kRows = 3;", "const Row kRow = {1};", "extern constinit int rows;", "void Forget();",
                     "int Count() { return 3; }", "using Row = int;", "  int rows = 0;", "class Table;", "inline constexpr char kName[] = {};"):
            self.expect_allowed("preload/record/table.cc", f"{line}\n")
        self.expect_allowed("session/ring.cc", "int rows;\n")

    def test_a_header_that_only_tests_include_is_in_a_folder_of_its_own(self):
        self.write("format/CMakeLists.txt", "gmt_test(format SRCS ring_test.cc)\n")
        self.write("format/ring_test.cc", '#include "format/sample_rings.h"\n')
        self.expect_refused("format/sample_rings.h", "\n", "belongs in format/testing/")
        self.write("format/ring.cc", '#include "format/sample_rings.h"\n')
        self.assertEqual(self.check(), (0, ""))

    def test_support_of_tests_is_recognized_by_its_name(self):
        for name in ("session/ring_fixture.h", "session/fake_ring.cc", "session/ring_oracle.cc"):
            self.expect_refused(name, "\n", "belongs in session/testing/")
        self.expect_refused("collector/control/fake_client.h", "\n", "belongs in collector/testing/")

    def test_support_of_tests_may_be_in_its_folder(self):
        self.expect_allowed("collector/inject/testing/fake_image.h", "\n")

    def test_tests_do_not_sleep_until_something_has_happened(self):
        self.expect_refused("tests/e2e/run_check.py", "time.sleep(0.7)\n", "sleeps")
        self.expect_refused("viewer/page/e2e/run_test.ts", "await page.waitForTimeout(200);\n", "sleeps")
        self.expect_refused("viewer/page/e2e/run_test.ts", "new Promise((resolve) => setTimeout(resolve, 50));\n", "sleeps")
        self.expect_refused("cli/testing/run_fixture.h", "std::this_thread::sleep_for(milliseconds(5));\n", "sleeps")

    def test_a_poll_with_a_fixed_count_is_rejected(self):
        self.expect_refused("cli/testing/run_fixture.h", "for (int i = 0; i < 500 && !done; ++i) usleep(1000);\n", "sleeps")

    def test_an_unlimited_poll_is_allowed(self):
        self.expect_allowed("cli/testing/run_fixture.h", "while (!done) usleep(1000);\n")
        self.expect_allowed("cli/testing/other_fixture.h", "while (!done) {\n  Look();\n  usleep(1000);\n}\n")

    def test_sleeping_until_a_random_instant_is_allowed(self):
        self.expect_allowed("cli/testing/run_fixture.h", "usleep(random() % 1000);\n")

    def test_programs_that_are_recorded_may_sleep(self):
        self.expect_allowed("tests/programs/growing.py", "time.sleep(0.02)\n")

    def test_timeouts_against_hanging_are_long(self):
        for guard in ("process.wait(timeout=60)", "process.wait(timeout=HANG_S)", "selector.select(timeout=0)"):
            self.expect_allowed("tests/e2e/run_check.py", f"{guard}\n")
        self.expect_refused("tests/e2e/run_check.py", "process.wait(timeout=20)\n", "60 s")
        self.expect_refused("tests/e2e/run_check.py", "client.settimeout(2)\n", "60 s")
        self.expect_refused("tests/e2e/CMakeLists.txt", "set_tests_properties(a PROPERTIES TIMEOUT 30)\n", "60 s")
        self.expect_refused("viewer/page/e2e/run_test.ts", "await row.waitFor({ timeout: 5000 });\n", "60 s")

    def test_times_are_not_compared_with_limits(self):
        self.expect_allowed("tests/e2e/run_check.py", "assert time.monotonic() - began >= 1\n")
        self.expect_refused("tests/e2e/run_check.py", "assert time.monotonic() - began < 5\n", "compares a time")
        self.expect_refused("tests/e2e/run_test.py", "self.assertLess(time.monotonic() - began, 30)\n", "compares a time")
        self.expect_refused("viewer/page/e2e/run_test.ts", "expect(Date.now() - begin).toBeLessThan(100);\n", "compares a time")
        self.expect_refused("cli/testing/run_fixture.h", "EXPECT_LT(steady_clock::now() - begun, seconds(1));\n", "compares a time")

    def test_sources_are_not_executable(self):
        self.write("cli/record/run.cc", "int main() {}\n", executable=True)
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertIn("cli/record/run.cc:1: is executable", output)


if __name__ == "__main__":
    unittest.main()
