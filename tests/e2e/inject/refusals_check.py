#!/usr/bin/env python3
"""Real processes that cannot be attached to: `attach` reports the reason and the remedy, and harms none of them.

Each case starts a process, runs `gpumemtrace attach` and `attach --check`, looks for the words of the heading in
docs/troubleshooting.md, and checks that the process still works. Other roots and PID namespaces are real ones (unshare),
which needs root; without root those cases are reported as skipped.

Usage: refusals_check.py --build BUILD [NAME...]
"""

import ctypes
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys

import cases
from cases import Skipped

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import HANG_S, wait_for  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534


class Rig(cases.Rig):
    def __init__(self, build, folder):
        super().__init__(build, folder)
        folder.chmod(0o777)
        self.tool = str(build / "tests" / "inject" / "inject_tool")
        self.probe = str(build / "tests" / "inject" / "probe.so")

    def compiled(self, *command):
        """Returns refuser.c, built with this compiler and these flags."""
        binary = self.folder / ("refuser" + "".join(command).replace("/", ""))
        if not binary.exists():
            subprocess.run([*command, "-O1", "-w", HERE / "refuser.c", "-o", binary, "-lpthread"], check=True)
            binary.chmod(0o755)
        return binary

    def refuser(self, what, compiler=("cc",), **more):
        return self.start(self.compiled(*compiler), what, stdin=subprocess.PIPE, **more)

    def attach(self, pid, *options, **more):
        return subprocess.run(
            [self.program, "attach", str(pid), "-o", str(self.folder / "run.gmt"), *options],
            capture_output=True, text=True, timeout=HANG_S, check=False, **more
        )

    def check(self, pid, **more):
        return subprocess.run([self.program, "attach", "--check", str(pid)], capture_output=True,
                              text=True, timeout=HANG_S, check=False, **more)

    def refused(self, pid, words, **more):
        done = self.attach(pid, **more)
        assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
        assert re.search(words, done.stderr), f"'{words}' is not in: {done.stderr}"
        checked = self.check(pid, **more)
        assert checked.returncode == 1 and "cannot be attached to" in checked.stdout, checked
        assert re.search(words, checked.stdout), f"'{words}' is not in: {checked.stdout}"
        assert not (self.folder / "run.gmt").exists(), "a file remains"

    def waits_for_a_call(self, pid, **more):
        """Injects the library into a process that makes no call, which then has a session; ^C ends the attach."""
        attach = subprocess.Popen([self.program, "attach", str(pid), "-o", str(self.folder / "run.gmt")],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        output = ""
        for line in attach.stderr:
            output += line
            if "waiting for the next GPU call" in line:
                break
        attach.send_signal(signal.SIGINT)
        _, rest = attach.communicate(timeout=HANG_S)
        assert attach.returncode == 1 and "interrupted" in rest, output + rest

    def inject(self, pid, *options, **more):
        return subprocess.run([self.tool, "--pid", str(pid), "--library", self.probe, *options],
                              capture_output=True, text=True, timeout=HANG_S, check=False, **more)


def state_of(pid):
    return re.search(r"^State:\t(\w)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M).group(1)


def is_alive(process, state="S"):
    """Waits until the process is in that state again, for example waiting or stopped."""

    def is_in_it():
        assert process.poll() is None, f"it has ended: {process.returncode}"
        return state_of(process.pid) == state

    wait_for(lambda: f"state {state}, but {state_of(process.pid)}", is_in_it)


def as_nobody():
    if os.geteuid() != 0:
        raise Skipped("takes root")
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


# ---- Processes -----------------------------------------------------------------------------------


def no_such_process(rig):
    process = rig.refuser("plain")
    process.kill()
    process.wait()
    rig.refused(process.pid, "no such process")


def no_number(rig):
    done = rig.attach("train.py")
    assert done.returncode == 2 and "is not a process ID" in done.stderr, done


def a_thread(rig):
    process = rig.refuser("leaderless")
    wait_for("the end of its first thread", lambda: state_of(process.pid) == "Z")
    tasks = [int(t) for t in os.listdir(f"/proc/{process.pid}/task") if int(t) != process.pid]
    rig.refused(tasks[0], f"(?s)thread of process {process.pid}.*gpumemtrace attach {process.pid}")


def first_thread_gone(rig):
    process = rig.refuser("leaderless")
    wait_for("the end of its first thread", lambda: state_of(process.pid) == "Z")
    rig.refused(process.pid, "first thread has ended")
    assert process.poll() is None


def zombie(rig):
    process = rig.refuser("zombie")
    rig.refused(int(process.output.split()[1]), "has ended and waits for its parent")


def kernel_thread(rig):
    if pathlib.Path("/proc/2/comm").read_text() != "kthreadd\n":
        raise Skipped("kernel threads are not visible here")
    rig.refused(2, "thread of the kernel")


def stopped(rig):
    process = rig.refuser("plain")
    process.send_signal(signal.SIGSTOP)
    is_alive(process, "T")
    rig.refused(process.pid, f"(?s)stopped by a signal.*kill -CONT {process.pid}")
    is_alive(process, "T")
    process.send_signal(signal.SIGCONT)
    is_alive(process)


def uninterruptible(rig):
    process = rig.refuser("vfork")
    is_alive(process, "D")
    rig.refused(process.pid, "state D")


def traced(rig):
    process = rig.refuser("plain")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(0x4206, process.pid, None, None) == 0  # PTRACE_SEIZE
    rig.refused(process.pid, rf"traced by python\S* \(process {os.getpid()}\)")
    is_alive(process)


# ---- Rights --------------------------------------------------------------------------------------


def other_user(rig):
    process = rig.refuser("plain")
    rig.refused(process.pid, "belongs to user 0, and you are user 65534", **as_nobody())


def root_may(rig):
    process = rig.refuser("plain", **as_nobody())
    done = rig.inject(process.pid)
    assert done.returncode == 0, done.stderr
    is_alive(process)


def set_user_id(rig):
    """A process with more rights than the user who started it is not recorded, not even by root."""
    nobody = as_nobody()
    program = rig.folder / "set-user-id"
    shutil.copy(rig.compiled("cc"), program)
    program.chmod(0o4755)
    process = rig.start(program, "plain", **nobody)
    uids = re.search(r"^Uid:\t(\d+)\t(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M)
    if uids.groups() != (str(NOBODY), "0"):
        raise Skipped("set-user-ID files have no effect here")
    words = r"(?s)rights of user 0 and was started by user 65534 .*copy of it without set-user-ID"
    rig.refused(process.pid, words, **nobody)
    is_alive(process)
    done = rig.attach(process.pid)
    assert done.returncode == 1, done
    assert re.search(r"is privileged \(set-user-ID or file capabilities\). A copy of it without these can be recorded", done.stderr), done
    assert not (rig.folder / "run.gmt").exists(), "a file was left"
    is_alive(process)
    # The suggested remedy: a copy.
    program.chmod(0o755)
    copy = rig.start(program, "plain", **nobody)
    rig.waits_for_a_call(copy.pid, **nobody)
    is_alive(copy)


def undumpable(rig):
    process = rig.refuser("undumpable", **as_nobody())
    rig.refused(process.pid, "forbids being looked at", **as_nobody())
    done = rig.inject(process.pid)  # root may nevertheless
    assert done.returncode == 0, done.stderr
    is_alive(process)


# ---- Programs ------------------------------------------------------------------------------------


def static(rig):
    rig.refused(rig.refuser("plain", ("cc", "-static")).pid, "static program")


def musl(rig):
    rig.refused(rig.refuser("plain", ("musl-gcc",)).pid, "program of musl")


def musl_static(rig):
    rig.refused(rig.refuser("plain", ("musl-gcc", "-static")).pid, "static program")


def under_valgrind(rig):
    """Its libc is loaded, but valgrind is what runs: an injected call would end both."""
    if shutil.which("valgrind") is None:
        raise Skipped("there is no valgrind")
    process = rig.start("valgrind", "--tool=none", "-q", rig.compiled("cc"), "plain")
    rig.refused(process.pid, "(?s)runs inside of none-amd64.*GPUMEMTRACE=dormant")
    is_alive(process)


def started_by_its_loader(rig):
    """Its executable is the loader, which is as static as that of valgrind."""
    process = rig.start("/lib64/ld-linux-x86-64.so.2", rig.compiled("cc"), "plain")
    rig.waits_for_a_call(process.pid)
    is_alive(process)


# ---- Locks ---------------------------------------------------------------------------------------


def start_allocator(rig, *words, flags=()):
    binary = rig.folder / "server"  # a neutral name
    subprocess.run(["cc", "-O1", "-fno-builtin", "-w", *flags, HERE / "own_allocator.c", "-o", binary, "-lpthread"],
                   check=True)
    return rig.start(binary, *words)


def goes_on(process):
    """Checks that it still allocates: empties the pipe, and waits for more output."""
    for _ in range(3):
        assert select.select([process.stdout], [], [], HANG_S)[0], "it no longer allocates"
        os.read(process.stdout.fileno(), 1 << 20)


def allocator_of_its_own(rig, flags=()):
    """Linked in, so that no file name reveals it: its lock is also taken by the loader."""
    process = start_allocator(rig, flags=flags)
    done = rig.inject(process.pid)
    if done.returncode != 0:
        assert re.search("no safe moment .* inside of malloc", done.stderr + done.stdout), done
    goes_on(process)


def allocator_whose_malloc_has_other_names(rig):
    """Aliases like those of tcmalloc, mimalloc and AddressSanitizer: any of them may come first in the symbol table."""
    allocator_of_its_own(rig, flags=("-DALIASED", "-rdynamic"))


def allocator_of_its_own_and_a_thread_that_waits(rig):
    process = start_allocator(rig, "sleeper")
    done = rig.inject(process.pid)
    assert done.returncode == 0, done
    goes_on(process)


# ---- Seccomp -------------------------------------------------------------------------------------


def filter_that_kills(rig):
    process = rig.refuser("seccomp-kill")
    rig.refused(process.pid, "forbid loading a library: openat would end it")
    is_alive(process)


def filter_that_refuses(rig):
    process = rig.refuser("seccomp-errno")
    rig.refused(process.pid, "forbid loading a library: mmap is refused")
    is_alive(process)


def harmless_filter(rig):
    process = rig.refuser("seccomp-harmless")
    done = rig.check(process.pid)
    assert done.returncode == 0 and "its filters allow" in done.stdout, done
    assert rig.inject(process.pid).returncode == 0
    is_alive(process)


def filter_that_allows_loading_alone(rig):
    """What the library does after loading would end the process."""
    process = rig.refuser("seccomp-few")
    rig.refused(process.pid, "would end it")
    is_alive(process)


def filter_that_allows_what_is_asked_about(rig):
    """The library makes only the system calls that the check tests."""
    process = rig.refuser("seccomp-enough")
    done = rig.check(process.pid)
    assert done.returncode == 0 and "its filters allow" in done.stdout, done
    rig.waits_for_a_call(process.pid)
    is_alive(process)


def unreadable_filter(rig):
    process = rig.refuser("seccomp-kill", **as_nobody())
    rig.refused(process.pid, "filters that this program may not read", **as_nobody())
    is_alive(process)


def strict_seccomp(rig):
    process = rig.refuser("strict")
    status = pathlib.Path(f"/proc/{process.pid}/status")
    wait_for("strict seccomp", lambda: "Seccomp:\t1\n" in status.read_text())
    rig.refused(process.pid, "strict seccomp")
    is_alive(process)


# ---- Loading -------------------------------------------------------------------------------------


def unloadable(rig):
    process = rig.refuser("plain")
    bad = rig.folder / "bad.so"
    bad.write_text("this is not a library")
    done = rig.inject(process.pid, "--library", str(bad))
    assert done.returncode == 1 and "could not load" in done.stderr, done
    assert re.search("file too short|invalid ELF header", done.stderr), done.stderr
    is_alive(process)


# Closes the last small library when a line arrives on stdin.
CROWDED = """
import _ctypes, ctypes, shutil, sys
folder, last = sys.argv[1], None
for library in sys.argv[2:]:
    for number in range(1000):
        copy = f"{folder}/{library.rpartition('_')[2]}.{number}.so"
        shutil.copy(library, copy)
        try:
            last = ctypes.CDLL(copy)
        except OSError as error:
            assert "static TLS" in str(error), error
            break
print("ready", flush=True)
for line in sys.stdin:
    _ctypes.dlclose(last._handle)
    print("closed", flush=True)
"""


def static_thread_locals_used_up(rig):
    """The library's few bytes of thread-local storage come from a reserve of the loader. If it is used up, the error says so
    and nothing has changed. The space returned by one small library is sufficient."""
    blocks = sorted((rig.build / "tests" / "programs").glob("libthread_locals_*.so"),
                    key=lambda path: -int(path.stem.rpartition("_")[2]))  # the large one first
    assert len(blocks) == 2, blocks
    process = rig.start("/usr/bin/python3", "-c", CROWDED, rig.folder, *blocks, stdin=subprocess.PIPE)
    done = rig.attach(process.pid)
    assert done.returncode == 1, done
    assert re.search("could not load .*static TLS block.*LD_PRELOAD=.*preload-path", done.stderr), done.stderr
    assert not (rig.folder / "run.gmt").exists(), "a file remains"
    assert "libgpumemtrace" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text()
    is_alive(process)
    process.stdin.write("close\n")
    process.stdin.flush()
    assert process.stdout.readline() == "closed\n"
    rig.waits_for_a_call(process.pid)
    is_alive(process)


class LongCall:
    """A call of the library that continues until end()."""

    def __init__(self, rig):
        self.fifo = rig.folder / "fifo"
        self.options = ("--options", f"wait={self.fifo}")
        os.mkfifo(self.fifo)

    def wait_begun(self):
        def is_read():
            try:
                self.writer = os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return False
            return True

        wait_for("the call", is_read)

    def end(self):
        os.close(self.writer)
        self.fifo.unlink()


def slow_call(rig):
    for patience_ms in (300, 3000, 30000):  # the call must start within this time
        process, call = rig.refuser("plain"), LongCall(rig)
        done = rig.inject(process.pid, *call.options, "--call", str(patience_ms))
        assert done.returncode == 1 and "continues by itself" in done.stderr, done
        call.wait_begun()
        if "sleeping in system call" in done.stderr:
            break
        call.end()
    assert "sleeping in system call" in done.stderr, done.stderr
    is_alive(process)
    call.end()
    is_alive(process)
    wait_for("the next call", lambda: "call 2" in rig.inject(process.pid).stdout)
    is_alive(process)


def two_at_once(rig):
    process, call = rig.refuser("plain"), LongCall(rig)
    first = subprocess.Popen([rig.tool, "--pid", str(process.pid), "--library", rig.probe, *call.options,
                              "--call", str(HANG_S * 1000)], stdout=subprocess.PIPE, text=True)
    call.wait_begun()
    done = rig.inject(process.pid)
    assert done.returncode == 1 and "another attach is at work" in done.stderr, done
    call.end()
    assert first.wait(timeout=HANG_S) == 0
    is_alive(process)


# ---- Namespaces ----------------------------------------------------------------------------------

CONTAINER = """
import os, subprocess, sys
hide, more = sys.argv[1], sys.argv[2]
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
for folder in hide.split(":"):
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
for folder in filter(None, more.split(":")):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "none", folder], check=True)
print("ready", os.getpid(), flush=True)
while True:
    sum(range(1000))
    import time; time.sleep(0.001)
"""


def contained(rig, *options, noexec=""):
    """Starts a process in its own namespaces, which does not see the build directory. Returns its pid outside."""
    if os.geteuid() != 0:
        raise Skipped("takes root")
    unshare = rig.start("unshare", *options, "--kill-child", "--mount", "--pid", "--fork", "--mount-proc", "/usr/bin/python3", "-c",
                        CONTAINER, str(rig.build), noexec)
    assert unshare.output == "ready 1\n", unshare.output
    children = pathlib.Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text().split()
    return int(children[0])


def container(rig):
    pid = contained(rig)
    check = rig.check(pid)
    assert check.returncode == 0 and "does not see" in check.stdout, check
    done = rig.inject(pid, "--place", "copy")
    assert done.returncode == 0 and "pid 1" in done.stdout, done
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    assert re.search(r"libgpumemtrace\.1\.\d+\.so \(deleted\)", maps), maps
    assert not list(pathlib.Path("/tmp").glob("libgpumemtrace.1.*.so")), "the copy remains"


def user_namespace(rig):
    pid = contained(rig, "--user", "--map-root-user")
    done = rig.inject(pid, "--place", "copy")
    assert done.returncode == 0 and "pid 1" in done.stdout, done


def container_without_a_place(rig):
    pid = contained(rig, noexec="/tmp:/var/tmp:/dev/shm:/run")
    done = rig.inject(pid, "--place", "copy")
    assert done.returncode == 1 and "none of /tmp, /var/tmp" in done.stderr, done


def link_out_of_a_container(rig):
    """The container's /tmp is a link to a directory whose name also exists outside: nothing may be written there."""
    if os.geteuid() != 0:
        raise Skipped("takes root")
    root = rig.folder / "root"
    outside = rig.folder / "outside"
    outside.mkdir()
    for name in ("usr", "proc", "dev", "var", "run"):
        (root / name).mkdir(parents=True)
    for name in ("lib", "lib64", "bin"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "tmp").symlink_to(outside)
    script = f"mount --make-rprivate /; mount --rbind /usr {root}/usr; mount -t proc none {root}/proc; exec chroot {root} /usr/bin/python3 -c 'import signal; print(\"ready\", flush=True); signal.pause()'"
    process = rig.start("unshare", "--mount", "sh", "-c", script)
    done = rig.inject(process.pid, "--place", "copy")
    assert not list(outside.iterdir()), "a file was written outside of the container"
    assert done.returncode == 0, done  # because there is /var/tmp or /run


def launcher(rig):
    """A shell whose child uses the GPU."""
    simulated = [str(rig.build / "simcuda" / "with-simcuda"), "/usr/bin/python3", "-c",
                 "import ctypes, signal; ctypes.CDLL('libcuda.so.1'); print('ready', flush=True); signal.pause()"]
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in simulated)
    process = rig.start("sh", "-c", f"{quoted} & wait")
    done = rig.attach(process.pid)
    assert done.returncode == 1, done
    found = re.search(r"uses no GPU, but a child of it does:\n  gpumemtrace attach (\d+)", done.stderr)
    assert found, done.stderr
    status = pathlib.Path(f"/proc/{found.group(1)}/status").read_text()
    assert f"PPid:\t{process.pid}" in status, status


CASES = [
    no_such_process, no_number, a_thread, first_thread_gone, zombie, kernel_thread, stopped, uninterruptible,
    traced, other_user, root_may, set_user_id, undumpable, static, musl, musl_static, under_valgrind, started_by_its_loader, filter_that_kills,
    filter_that_refuses, harmless_filter, filter_that_allows_loading_alone,
    filter_that_allows_what_is_asked_about, allocator_of_its_own, allocator_whose_malloc_has_other_names,
    allocator_of_its_own_and_a_thread_that_waits, unreadable_filter, strict_seccomp, unloadable,
    static_thread_locals_used_up, slow_call,
    two_at_once, container, user_namespace, container_without_a_place, link_out_of_a_container, launcher,
]


if __name__ == "__main__":
    sys.exit(cases.main(__doc__, CASES, Rig, "/var/tmp"))
