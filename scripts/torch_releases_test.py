#!/usr/bin/env python3
"""Tests the table of PyTorch releases: reading files, conclusions, and that the page is current.

Usage: torch_releases_test.py [unittest's arguments]
"""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import elf_calls  # noqa: E402
import torch_compatibility  # noqa: E402

C_SOURCE = """
int outside(void); int outside_too(void); extern int inside(void);
int (*slot)(void) = outside_too;
int inside(void) { return outside() + slot(); }
int calls_inside(void) { return inside(); }
__attribute__((visibility("hidden"))) int hidden(void) { return 1; }
int middle_inside(void) { return hidden(); }
"""


def build(folder, *options):
    path = pathlib.Path(folder) / "library.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-xc", "-", "-o", str(path), *options], input=C_SOURCE,
                   text=True, check=True)
    return path


def symbols_by_readelf(path):
    """Returns {name: (defined, kinds of relocation)} of the dynamic symbols except sections and files."""
    symbols, kinds = {}, {}
    for line in subprocess.run(["readelf", "-W", "--dyn-syms", str(path)], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].endswith(":") and fields[3] in ("NOTYPE", "OBJECT", "FUNC"):
            name = fields[7].split("@")[0]
            symbols[name] = symbols.get(name, False) or fields[6] != "UND"
    for line in subprocess.run(["readelf", "-W", "-r", str(path)], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        if found := re.search(r"R_X86_64_(64|GLOB_DAT|JUMP_SLO?T?)\s+[0-9a-f]+\s+([^\s@]+)", line):
            kind = "JUMP_SLOT" if found.group(1).startswith("JUMP") else found.group(1)
            kinds.setdefault(found.group(2), set()).add(kind)
    return {name: (defined, sorted(kinds.get(name, ()))) for name, defined in symbols.items()}


class ElfCalls(unittest.TestCase):
    def find(self, path, *prefixes):
        with elf_calls.Library(path) as library:
            return library.find(prefixes)

    def test_calls_data_and_definitions_are_distinguished(self):
        for style in ("gnu", "sysv"):
            with tempfile.TemporaryDirectory() as folder, self.subTest(style=style):
                found = self.find(build(folder, f"-Wl,--hash-style={style}"), "outside", "inside", "hidden", "absent")
            self.assertEqual(found, {"outside": {"defined": False, "called": ["JUMP_SLOT"]},
                                     "outside_too": {"defined": False, "called": ["64"]},
                                     "inside": {"defined": True, "called": ["JUMP_SLOT"]}})

    def test_library_that_binds_to_its_own_functions_is_recognised(self):
        with tempfile.TemporaryDirectory() as folder:
            path = build(folder, "-Wl,-Bsymbolic", "-Wl,-soname,libits.so.3", "-Wl,--no-as-needed")
            with elf_calls.Library(path) as library:
                self.assertTrue(library.symbolic)
                self.assertEqual(library.soname, "libits.so.3")
                self.assertIn("libc.so.6", library.needed)
            self.assertEqual(self.find(path, "inside")["inside"]["called"], [])

    def test_system_libraries_are_read_like_readelf_does(self):
        checked = 0
        for name in ("stdc++", "z", "m"):
            listed = subprocess.run(["cc", f"-print-file-name=lib{name}.so"], capture_output=True, text=True).stdout
            path = pathlib.Path(listed.strip()).resolve()
            if path.suffix == ".a" or not path.exists() or path.read_bytes()[:4] != b"\x7fELF":
                continue
            expected = symbols_by_readelf(path)
            names = [n for n in expected if re.fullmatch(r"\w+", n)][:400]
            found = self.find(path, *names)
            for symbol in names:
                self.assertEqual((found[symbol]["defined"], found[symbol]["called"]), expected[symbol], (path, symbol))
                checked += 1
        self.assertGreater(checked, 100)

    def test_truncated_files_and_other_files_are_rejected(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = build(folder).read_bytes()
            for size in (0, 10, 40, 100, 4200):
                path = pathlib.Path(folder) / "cut.so"
                path.write_bytes(whole[:size])
                with self.assertRaises(elf_calls.NotElf, msg=size):
                    elf_calls.Library(path).find(["inside"])


class Conclusions(unittest.TestCase):
    def setUp(self):
        self.facts = json.loads((ROOT / "docs" / "compatibility.json").read_text(encoding="utf-8"))
        self.release = copy.deepcopy(self.facts[-1])

    def test_page_is_current(self):
        page = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
        self.assertEqual(page, torch_compatibility.page(self.facts), "update it with: scripts/torch-releases --offline")

    def test_releases_are_in_order_without_a_missing_minor_release(self):
        minors = [int(release["version"].split(".")[1]) for release in self.facts]
        self.assertEqual(minors, list(range(1, len(minors) + 1)))

    def test_new_signature_turns_its_layer_off(self):
        functions = self.release["functions"]["reportMemoryUsageToProfiler"]
        functions["_ZN3c1027reportMemoryUsageToProfilerEPvmmmNS_6DeviceE"] = functions.popitem()[1]
        self.assertEqual(torch_compatibility.layer(self.release, "blocks"),
                         "no: reportMemoryUsageToProfiler has another signature")
        self.assertEqual(torch_compatibility.layer(self.release, "streams"), "yes")

    def test_missing_function_turns_its_layer_off(self):
        del self.release["functions"]["Engine::evaluate_function"]
        self.assertEqual(torch_compatibility.layer(self.release, "forward lines"), "no: no Engine::evaluate_function")

    def test_call_bound_by_the_linker_turns_its_layer_off(self):
        uses = next(iter(self.release["functions"]["Engine::evaluate_function"].values()))
        del uses["called"]["libtorch_cpu.so"]
        self.assertEqual(torch_compatibility.layer(self.release, "forward lines"),
                         "no: libtorch_cpu.so does not call Engine::evaluate_function by name")

    def test_word_of_data_is_not_a_call(self):
        uses = next(iter(self.release["functions"]["Engine::execute"].values()))
        uses["called"]["libtorch_python.so"] = ["64"]
        self.assertEqual(torch_compatibility.layer(self.release, "phases"),
                         "no: libtorch_python.so does not call Engine::execute by name")

    def test_symbolic_library_turns_off_layers_with_calls_of_its_own_functions(self):
        self.release["symbolic"] = ["libtorch_cpu.so"]
        self.assertIn("libtorch_cpu.so binds to its own", torch_compatibility.layer(self.release, "forward lines"))
        self.assertEqual(torch_compatibility.layer(self.release, "blocks"), "yes")

    def test_runs_exist_for_listed_releases_only(self):
        self.assertLessEqual(set(torch_compatibility.RUN), {release["version"] for release in self.facts})

    def test_newest_release_and_one_of_each_runtime_are_run(self):
        run = [release for release in self.facts if release["version"] in torch_compatibility.RUN]
        self.assertIn(self.facts[-1], run)
        self.assertEqual({release["cudart"] for release in run}, {release["cudart"] for release in self.facts})


if __name__ == "__main__":
    unittest.main()
