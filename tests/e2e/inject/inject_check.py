#!/usr/bin/env python3
"""Injects a library into processes and checks that their behaviour does not change.

Each injection involves a process of collector/inject/testing/target.c (or Python in C code) that checks its own results,
and an injector that either finishes or is killed, at one of its stages or at any moment. Afterwards the process must end by
itself with correct results, and none of its threads may be traced or stopped. If the injector finished, the library must be
loaded, and the code of libc must equal that of its file.

Usage: inject_check.py --build BUILD [--count N] [--only KIND]
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import HANG_S, let_pass  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

STAGES = 11  # of inject.h
KINDS = [
    "malloc", "arithmetic", "sleep", "signals", "fork", "threads", "dlopen", "errno", "wait", "exec",
    "exit", "python",
]
PYTHON = """
import hashlib, json, mmap, os
print("ready", flush=True)
stop, done = mmap.mmap(os.open(os.environ["GMT_TARGET_STOP"], os.O_RDONLY), 1, prot=mmap.PROT_READ), 0
want = hashlib.sha256(json.dumps(sorted(str(i) for i in range(2000))).encode()).hexdigest()
while not stop[0]:
    got = hashlib.sha256(json.dumps(sorted(str(i) for i in range(2000))).encode()).hexdigest()
    assert got == want
    done += 1
print("ok", done)
"""


class Failure(Exception):
    pass


def read(path):
    return pathlib.Path(path).read_text()


def check_code_of_libc(pid):
    """Checks that an injector that finished has left libc unmodified."""
    for line in read(f"/proc/{pid}/maps").splitlines():
        found = re.match(r"(\w+)-(\w+) r-xp (\w+) \S+ \d+ +(/\S+libc[.-]\S+)$", line)
        if not found:
            continue
        start, end, offset = (int(found.group(i), 16) for i in (1, 2, 3))
        with open(f"/proc/{pid}/mem", "rb", 0) as memory, open(found.group(4), "rb") as file:
            memory.seek(start)
            file.seek(offset)
            if memory.read(end - start) != file.read(end - start):
                raise Failure("the code of libc was modified")
        return
    raise Failure("no libc is mapped")


def check_untouched(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            status = read(f"/proc/{pid}/task/{task}/status")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if re.search(r"^TracerPid:\t[^0]", status, re.M) or re.search(r"^State:\t[tT]", status, re.M):
            raise Failure(f"thread {task} is traced or stopped")


class Injection:
    def __init__(self, build, number, seed, kind):
        self.folder = build / "tests" / "inject"
        self.random = random.Random(f"{seed}/{number}")
        self.kind = kind
        self.tries = 0
        self.loaded = False
        # Half of each kind may finish; the others are killed, at each stage in turn, some at a
        # random moment.
        is_killed = (number + number // len(KINDS)) % 2 == 0
        self.end_at = 1 + number // 2 % STAGES if is_killed else 0
        self.was_reached = False
        self.kill_after = self.random.random() * 0.02 if self.random.random() < 0.1 else None

    def start(self):
        seconds = "3600" if self.kind != "exit" else f"{self.random.random() * 0.03:.4f}"
        command = (
            ["/usr/bin/python3", "-c", PYTHON]
            if self.kind == "python"
            else [self.folder / "target", self.kind, seconds]
        )
        self.stop = tempfile.NamedTemporaryFile()
        self.stop.write(b"\0")
        self.stop.flush()
        target = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "GMT_TARGET_STOP": self.stop.name})
        if target.stdout.readline() != "ready\n":
            raise Failure("the process did not start")
        return target

    def inject(self, pid):
        command = [self.folder / "inject_tool", "--pid", str(pid), "--library",
                   self.folder / "probe.so", "--options", "hello", "--end-at", str(self.end_at),
                   "--search", "60000", "--call", "60000"]
        tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.kill_after is not None:
            let_pass(self.kill_after)
            subprocess.run(["pkill", "-KILL", "-P", str(tool.pid)], check=False)  # the child that does the work
        out, err = tool.communicate(timeout=HANG_S)
        self.was_reached = f"ended at stage {self.end_at}\n" in err
        return tool.returncode, out, err

    def run(self):
        target = self.start()
        try:
            let_pass(self.random.random() * (0.01 if self.kind == "exit" else 0.1))
            code, out, err = self.inject(target.pid)
            self.look(target, code, out, err)
            self.stop.seek(0)
            self.stop.write(b"\1")
            self.stop.flush()
            target.wait(timeout=HANG_S)
            # Not communicate(), which loses data that readline() has buffered.
            out, err = target.stdout.read(), target.stderr.read()
        except subprocess.TimeoutExpired:
            raise Failure("it hangs: " + read(f"/proc/{target.pid}/status").split("\n")[2]) from None
        finally:
            target.kill()
        if target.returncode != 0 or not out.startswith("ok"):
            raise Failure(f"it ended with {target.returncode}: {out} {err}")

    def look(self, target, code, out, err):
        pid = target.pid
        whole = self.end_at == 0 and self.kill_after is None
        if code == 0:
            self.loaded = True
            self.tries = int(out.split()[2])
            if f"pid {pid}" not in out and self.kind != "exec":
                raise Failure(f"the wrong answer: {out}")
        elif whole and self.kind not in ("exit", "exec") and target.poll() is None:
            raise Failure(f"it was refused: {err}")
        if self.kind in ("exit", "exec") or target.poll() is not None:
            return
        check_untouched(pid)
        if whole:
            if "probe.so" not in read(f"/proc/{pid}/maps"):
                raise Failure("the library is not loaded")
            check_code_of_libc(pid)


def attempt(build, number, seed, kind):
    injection = Injection(build, number, seed, kind)
    try:
        injection.run()
    except (Failure, FileNotFoundError, ProcessLookupError) as problem:
        how = f"stage {injection.end_at}, killed after {injection.kill_after}"
        return injection, f"{kind} number {number} ({how}): {problem!r}"
    return injection, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only")
    args = parser.parse_args()
    kinds = [args.only] if args.only else KINDS
    for seed in seeds(1):
        jobs = [(args.build.resolve(), n, seed, kinds[n % len(kinds)]) for n in range(args.count)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda job: attempt(*job), jobs))
        failures = [problem for _, problem in done if problem]
        for kind in kinds:
            of_kind = [i for i, _ in done if i.kind == kind]
            print(f"{kind:<11} {len(of_kind):4} injections, {sum(i.loaded for i in of_kind):4} finished, "
                  f"at most {max((i.tries for i in of_kind), default=0)}")
        reached = [sum(i.was_reached for i, _ in done if i.end_at == stage) for stage in range(1, STAGES + 1)]
        print(f"killed at stages 1 to {STAGES}: {' '.join(map(str, reached))}")
        if not args.only and args.count >= 60 and 0 in reached:
            failures.append(f"at stage {reached.index(0) + 1} no injector was killed")
        for failure in failures:
            print(f"FAILED {failure}")
        print(f"{args.count - len(failures)} passed, {len(failures)} failed")
        if failures:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
