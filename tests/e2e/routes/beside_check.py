#!/usr/bin/env python3
"""Other libraries in the process and unusual kinds of processes, for each way of loading the
library.

Usage: beside_check.py --build DIR [--part copies|loader|neighbours|foreign] [NAME...]

  copies      the library is loaded twice: one copy records, the other steps back
  loader      how the program is linked, how many libraries it has, what its threads do meanwhile
  neighbours  libraries that people preload together with this one: both work as each does alone
  foreign     programs that the library cannot or must not be loaded into: they are not affected

A case whose requirements are not installed (scripts/setup --all installs them) is skipped. The last
line of the output is "N passed, N failed".
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "recording"), str(HERE)]
import truth  # noqa: E402
from rig import Rig, find_python, run_cases  # noqa: E402
from routes_check import by_route  # noqa: E402

SYSTEM = pathlib.Path("/usr/lib/x86_64-linux-gnu")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
SAVER = CACHE / "gpumemtrace" / "torch_memory_saver"


class Skipped(Exception):
    pass


def place(folder, name):
    made = folder / name
    (made / "sessions").mkdir(parents=True, mode=0o700)
    return made


def check_all(recording, first=0):
    """Checks that there is one recording with all calls except the first ones."""
    calls = recording.result()["calls"]
    recordings = list(recording.folder.glob("*.gmt"))
    assert recordings == [recording.path], (recordings, recording.done.stderr)
    recording.check_whole()
    have, want = truth.named(recording.events()), truth.reported(calls)[first:]
    assert have == want, f"recorded {have}, expected {want}"
    if first == 0:
        recording.check_against_the_device()
    output = [line for line in recording.done.stderr.splitlines() if line.startswith("gpumemtrace:")]
    assert len(output) == 1 and "recording" in output[0], output


# ---- Copies --------------------------------------------------------------------------------------


def another_copy(rig, folder):
    """Returns a second copy of the library, and the variable that points it to its collector."""
    copy = folder / "copy" / "libgpumemtrace.so"
    copy.parent.mkdir()
    shutil.copy(rig.library(), copy)
    return str(copy), {"GPUMEMTRACE_COLLECTOR": str(rig.build / "bin" / "gpumemtrace-collector")}


def copies_preloaded(rig, folder):
    copy, collector = another_copy(rig, folder)
    ours = rig.library()
    for i, preload in enumerate((f"{ours}:{ours}", f"{ours}:{copy}", f"{copy}:{ours}")):
        for program in ("linked", "linked_12"):
            where = place(folder, f"{program}-{i}")
            check_all(rig.preload(where, rig.built(program), simulated=False, LD_PRELOAD=preload, **collector))


def copies_that_hand_out_functions(rig, folder):
    """Each copy wraps the functions that the driver returns; the program's calls still reach the
    driver."""
    copy, collector = another_copy(rig, folder)
    for command in (["entry_point"], ["driver_only", "five"], ["looked_up"], ["looked_up", "--default"]):
        for first, second in ((copy, rig.library()), (rig.library(), copy)):
            where = place(folder, f"{'-'.join(command)}-{first == copy}")
            more = {"LD_PRELOAD": f"{first}:{second}", **collector}
            check_all(rig.preload(where, rig.built(*command), simulated=False, **more))


def copies_preloaded_and_injected(rig, folder):
    copy, collector = another_copy(rig, folder)
    for name, injected in (("same", rig.library()), ("other", copy)):
        where = place(folder, name)
        more = {"CUDA_INJECTION64_PATH": injected, **collector}
        check_all(rig.preload(where, rig.built("linked"), simulated=False, **more))


def copies_preloaded_and_started(rig, folder):
    copy, collector = another_copy(rig, folder)
    for name, started, text in (("same", rig.library(), "0 preloaded"), ("other", copy, f"-1 {rig.library()}")):
        where = place(folder, name)
        more = {**by_route(rig, where, "start"), **collector, "STARTER_LIBRARY": started}
        more["LD_PRELOAD"] = f"{rig.library()}:{more['LD_PRELOAD']}"
        check_all(rig.preload(where, rig.built("linked"), simulated=False, **more))
        assert (where / "started").read_text() == text + "\n", (where / "started").read_text()


def copies_injected_and_started(rig, folder):
    copy, collector = another_copy(rig, folder)
    for name, started, text in (
        ("same", rig.library(), "0 injected by the driver"),
        ("other", copy, f"-1 {rig.library()}"),
    ):
        where = place(folder, name)
        more = {**by_route(rig, where, "late"), **collector, "STARTER_LIBRARY": started}
        more["CUDA_INJECTION64_PATH"] = rig.library()
        check_all(rig.preload(where, rig.built("linked"), simulated=False, **more), first=1)
        assert (where / "started").read_text() == text + "\n", (where / "started").read_text()


# ---- Loader --------------------------------------------------------------------------------------


def loader_of_every_kind(rig, folder):
    """Programs with lazy binding, with immediate binding, with LD_BIND_NOW, and at fixed addresses;
    and a plugin that takes addresses of functions. In such a program these are the program's own
    PLT entries. (If they are not, calls through an address that was taken earlier are not seen.)"""
    programs = {
        "linked_lazy": rig.built("linked_lazy"),
        "linked_now": rig.built("linked_now"),
        "linked_fixed": rig.built("linked_fixed"),
        "by_address": rig.built("plugin_host", "--local", rig.built("libplugin_address.so")[0]),
        "fixed_by_address": rig.built("plugin_host_fixed", rig.built("libplugin_address.so")[0]),
    }
    for name, command in programs.items():
        for route, first in (("preload", 0), ("injection", 1), ("start", 0), ("late", 1)):
            if name == "by_address" and first:
                continue
            for bind in ({}, {"LD_BIND_NOW": "1"}):
                where = place(folder, f"{name}-{route}-{len(bind)}")
                more = {**by_route(rig, where, route), **bind}
                check_all(rig.preload(where, command, simulated=False, **more), first)


def loader_of_a_driver_that_answers_through_its_got(rig, folder):
    driver = str(rig.build / "simcuda-got" / "libcuda.so.1")
    for route, first in (("injection", 1), ("start", 0), ("late", 1)):
        where = place(folder, route)
        more = by_route(rig, where, route)
        more["LD_PRELOAD"] = ":".join(filter(None, (more["LD_PRELOAD"], driver)))
        check_all(rig.preload(where, rig.built("linked"), simulated=False, **more), first)


def loader_in_a_crowd(rig, folder):
    """Threads open, use and close libraries while the library is loaded and afterwards. Nothing may
    break, not even if a library takes long to load at an address where another one was, and each
    thread's calls are seen from its next round on."""
    plugins = []
    for i in range(4):
        plugins.append(folder / f"plugin{i}.so")
        name = ("libplugin_13.so", "libplugin_slow.so")[i % 2]
        shutil.copy(rig.build / "tests" / "programs" / name, plugins[-1])
    for route in ("injection", "late"):
        where = place(folder, route)
        more = {**by_route(rig, where, route), "LD_LIBRARY_PATH": str(rig.build / "simcuda")}
        recording = rig.preload(where, rig.built("crowded", "1", *plugins), simulated=False, **more)
        recording.result()
        recording.check_whole()
        want = truth.expected(where / "log", recording.info()["target"]["pid"])
        have = truth.recorded(recording.events())
        for thread in {event.thread for event in want}:
            asked = [(e.kind, e.address) for e in want if e.thread == thread]
            seen = [(e.kind, e.address) for e in have if e.thread == thread]
            missed = len(asked) - len(seen)
            assert seen and asked[missed:] == seen, f"{route}: a gap in thread {thread}"
            # How long loading the library takes depends on the machine; but it has to succeed in
            # time.
            assert missed <= len(asked) / 2, (route, missed, len(asked))


def loader_with_little_room_for_thread_locals(rig, folder):
    """A library that is opened late takes its few bytes per thread from a small reserve. If the
    reserve is almost used up, it still works; if it is used up, the error says so."""
    blocks = sorted((rig.build / "tests" / "programs").glob("libthread_locals_*.so"))
    assert len(blocks) == 2, blocks
    program = HERE / "crowded_thread_locals.py"
    for left in (1, 0):
        where = place(folder, str(left))
        done = rig.preload(
            where, [sys.executable, program, *blocks, str(left), where], LD_PRELOAD="",
            PYTHONPATH=str(HERE.parents[2] / "python"), GPUMEMTRACE_LIBRARY=rig.library(),
        ).done  # fmt: skip
        assert done.returncode == 0, done.stderr
        want = "started" if left else "static TLS"
        assert want in done.stdout, done.stdout
        assert (where / "run.gmt").exists() == bool(left)


# ---- Neighbours ----------------------------------------------------------------------------------


def beside_an_allocator(rig, folder, name):
    library = SYSTEM / name
    if not library.exists():
        raise Skipped(f"there is no {library}")
    for route, first in (("preload", 0), ("injection", 1), ("start", 0)):
        for other_first in (True, False):
            where = place(folder, f"{route}-{other_first}")
            more = by_route(rig, where, route)
            order = [str(library), more["LD_PRELOAD"]]
            more["LD_PRELOAD"] = ":".join(filter(None, order if other_first else reversed(order)))
            check_all(rig.preload(where, rig.built("linked"), simulated=False, **more), first)


def neighbours_jemalloc(rig, folder):
    beside_an_allocator(rig, folder, "libjemalloc.so.2")


def neighbours_tcmalloc(rig, folder):
    beside_an_allocator(rig, folder, "libtcmalloc_minimal.so.4")


def saver_run(rig, folder, order, **more):
    library = SAVER / "torch_memory_saver_hook_mode_preload_cu13.abi3.so"
    if not library.exists():
        raise Skipped(f"there is no {library}")
    if rig.python is None:
        raise Skipped("there is no PyTorch")
    preload = ":".join(order(str(library), rig.library()))
    recording = rig.preload(
        folder, [rig.python, HERE / "memory_saver.py"], LD_PRELOAD=preload, PYTHONPATH=str(SAVER),
        LD_LIBRARY_PATH=str(rig.build / "simcuda"), **more,
    )
    assert recording.done.returncode == 0, recording.done.stderr
    assert recording.done.stdout == "True\n", recording.done.stdout
    recording.check_whole()
    return recording


def neighbours_memory_saver_first(rig, folder):
    """Its driver calls are seen: paused memory is given back in the recording as well."""
    recording = saver_run(rig, folder, lambda saver, ours: (saver, ours))
    recording.check_against_the_device()
    # Allocated, released when paused, allocated again.
    kinds = [e["kind"] for e in recording.events()]
    assert kinds.count("create") == kinds.count("map") == kinds.count("release") == 2, kinds


def neighbours_memory_saver_behind(rig, folder):
    """PyTorch's calls of it are seen: one allocation for each, whatever it does with the memory
    meanwhile."""
    recording = saver_run(rig, folder, lambda saver, ours: (ours, saver))
    segments = [e for e in recording.events() if e["kind"] == "alloc" and e.get("heap") == "driver"]
    assert [e["size"] for e in segments] == [20 << 20, 40 << 20], segments
    assert {e["api"] for e in segments} == {"cudaMalloc"}, segments


def neighbours_memory_saver_injected(rig, folder):
    recording = saver_run(
        rig, folder, lambda saver, ours: (saver,), CUDA_INJECTION64_PATH=rig.library()
    )
    segments = [e for e in recording.events() if e["kind"] == "alloc" and e.get("heap") == "driver"]
    assert [e["size"] for e in segments] == [20 << 20, 40 << 20], segments


def sanitized(rig):
    program = rig.build / "tests" / "faults" / "processes_sanitized"
    runtime = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not program.exists() or not runtime.startswith("/"):
        raise Skipped("the compiler has no AddressSanitizer")
    return [str(program), "use"], runtime


def neighbours_address_sanitizer(rig, folder):
    """AddressSanitizer must be first in a program that was built with it, and itself reports if it
    is not. It does not mind libraries that are loaded later."""
    command, runtime = sanitized(rig)
    leaks = {"ASAN_OPTIONS": "detect_leaks=0", "LD_LIBRARY_PATH": str(rig.build / "simcuda")}
    alone = rig.preload(place(folder, "alone"), command, False, LD_PRELOAD="", **leaks).done
    assert alone.stderr == "", alone.stderr
    refused = rig.preload(place(folder, "refused"), command, False, **leaks)
    assert "ASan runtime does not come first" in refused.done.stderr, refused.done.stderr
    for name, more in (
        ("preload", {"LD_PRELOAD": f"{runtime}:{rig.library()}"}),
        ("injection", {"LD_PRELOAD": "", "CUDA_INJECTION64_PATH": rig.library()}),
    ):
        recording = rig.preload(place(folder, name), command, False, **leaks, **more)
        done = recording.done
        assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout), done
        recording.check_whole()


# ---- Foreign -------------------------------------------------------------------------------------

HELLO = '#include <stdio.h>\n#include <dlfcn.h>\nint main(void) { printf("%d\\n", dlsym(RTLD_DEFAULT, "puts") != 0); return 5; }\n'


def foreign(folder, compiler, *options):
    """Builds a program with that compiler."""
    source, program = folder / "hello.c", folder / "hello"
    source.write_text(HELLO)
    if shutil.which(compiler) is None:
        raise Skipped(f"there is no {compiler}")
    built = subprocess.run(
        [compiler, source, "-o", program, "-ldl", *options], capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise Skipped(f"{compiler} {' '.join(options)}: {built.stderr.splitlines()[-1]}")
    return program


def check_nothing_happens(rig, folder, program, output=""):
    alone = subprocess.run([program], capture_output=True, text=True, check=False)
    assert alone.returncode == 5, alone
    done = rig.preload(folder, [program], simulated=False).done
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout), done
    assert done.stderr.strip() == output, done.stderr
    assert not list(folder.glob("*.gmt"))


def foreign_musl(rig, folder):
    check_nothing_happens(rig, folder, foreign(folder, "musl-gcc"))


def foreign_musl_static(rig, folder):
    check_nothing_happens(rig, folder, foreign(folder, "musl-gcc", "-static"))


def foreign_static(rig, folder):
    check_nothing_happens(rig, folder, foreign(folder, "gcc", "-static"))


def foreign_32_bits(rig, folder):
    """The loader itself prints a line for each such program."""
    program = foreign(folder, "gcc", "-m32")
    output = (
        f"ERROR: ld.so: object '{rig.library()}' from LD_PRELOAD cannot be preloaded "
        "(wrong ELF class: ELFCLASS64): ignored."
    )
    check_nothing_happens(rig, folder, program, output)


def foreign_set_user_id(rig, folder):
    """The program has more rights than the user who starts it: the loader ignores what is
    preloaded, and the injected library does nothing."""
    if os.geteuid() != 0:
        raise Skipped("only root makes such a program for another user")
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        raise Skipped("/dev/shm is mounted nosuid")
    program = folder / "linked"
    shutil.copy(rig.build / "tests" / "programs" / "linked", program)
    program.chmod(0o4755)
    for path in (folder, folder / "sessions"):
        path.chmod(0o755)
    out = folder / "out"
    out.mkdir(mode=0o777)
    out.chmod(0o777)
    for more in ({}, {"LD_PRELOAD": "", "CUDA_INJECTION64_PATH": rig.library()}):
        environment = {
            "LD_PRELOAD": rig.library(), "GPUMEMTRACE": f"output={out}/run.gmt", "GPUMEMTRACE_DIR": str(out), **more,
        }  # fmt: skip
        done = subprocess.run(
            [program], env=environment, capture_output=True, text=True, check=False, user=65534, group=65534
        )
        if "cudart" in done.stderr and "cannot open" in done.stderr:
            raise Skipped("another user may not read the build")
        assert done.returncode == 0, done
        assert "gpumemtrace" not in done.stderr and not list(out.iterdir()), (done, list(out.iterdir()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=("copies", "loader", "neighbours", "foreign"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    for name in ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "SIMCUDA_FAIL", "SIMCUDA_LOG"):
        os.environ.pop(name, None)

    def tolerant(case):
        def run(rig, folder):
            try:
                case(rig, folder)
            except Skipped as why:
                print(f"skip   {case.__name__}: {why}", flush=True)

        return run

    prefixes = (args.part,) if args.part else ("copies", "loader", "neighbours", "foreign")
    cases = [
        (name, tolerant(case))
        for name, case in globals().items()
        if name.startswith(tuple(prefix + "_" for prefix in prefixes))
        and (not args.names or name in args.names)
    ]
    return run_cases(Rig(args.build.resolve(), find_python(None)), cases)


if __name__ == "__main__":
    sys.exit(main())
