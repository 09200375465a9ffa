"""A running collector as seen by its clients: the commands status, snapshot and mark, Prometheus, and Go's pprof.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from control_socket import ask  # noqa: E402
from rig import MIB, PROGRAMS, ROOT, Recording, Rig, run_cases  # noqa: E402
from waiting import HANG_S, kill_and_wait, let_pass, wait_for  # noqa: E402

LIVES_S = 3600  # longer than any check; the program is killed at the end
PARTS = "max_size=64MiB,max_time=120s,rotate=600"  # parts of 0.2 s, none of which is deleted
TOKEN = "0123456789abcdef0123456789"


def check_schema(answer):
    """Validates an answer if jsonschema is installed."""
    with contextlib.suppress(ImportError):
        import jsonschema

        verb = answer["schema"].split(".")[1].split("/")[0]
        jsonschema.validate(answer, json.loads((ROOT / f"docs/schemas/{verb}.schema.json").read_text()))


class Run:
    """Runs growing.py and records it by preloading."""

    def __init__(self, rig, folder, options="", name="run", **environment):
        self.rig, self.folder, self.path = rig, folder, folder / f"{name}.gmt"
        self.environment = {
            **rig.environment(folder, environment),
            "LD_PRELOAD": rig.library(),
            "GPUMEMTRACE": f"output={self.path},{options}",
        }
        runtime = next((rig.build / "simcuda").glob("libcudart.so.1*"))
        self.out = open(folder / f"{name}.out", "w+")
        self.process = subprocess.Popen(
            rig.simulated([rig.python, PROGRAMS / "growing.py", runtime, LIVES_S]),
            env=self.environment, stdout=self.out, stderr=subprocess.PIPE, text=True)
        self.session = wait_for("a session", lambda: next(
            (s for s in (folder / "sessions").glob(f"{self.process.pid}-*.session")), None))
        wait_for("a control socket", pathlib.Path(f"{self.session}.sock").exists)
        if "listen=" in options:  # the metrics server listens when the control socket answers
            self.verb("status", self.process.pid)

    def made(self):
        """Returns the number of allocations so far, as counted by the program."""
        return len((self.folder / self.out.name).read_text().splitlines())

    def verb(self, *words, code=0):
        done = subprocess.run([self.rig.program, *map(str, words)], env={
            **os.environ, "GPUMEMTRACE_DIR": str(self.folder / "sessions")},
            capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == code, f"{words}: {done.returncode}: {done.stderr}{done.stdout}"
        return done.stdout if code == 0 else done.stderr

    def json(self, *words):
        return json.loads(self.verb(*words, "--json"))

    def status(self):
        answer = self.json("status", self.process.pid)
        check_schema(answer)
        return answer

    def driver(self):
        return next(h for h in self.status()["heaps"] if h["heap"] == "driver")

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        wait_for("the end of the recording", lambda: not self.session.exists())
        wait_for("the end of the socket", lambda: not pathlib.Path(f"{self.session}.sock").exists())
        return Recording(self.rig, self.folder, self.process)


@contextlib.contextmanager
def running(*args, **kwargs):
    """Ends the run together with its collector, which otherwise would write into a directory that is being removed."""
    run = Run(*args, **kwargs)
    try:
        yield run
    finally:
        run.stop()


def free_port():
    """Returns a port that is unused together with the next one, and that the kernel does not assign to connections."""
    for port in itertools.count(20000 + os.getpid() % 10000):
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as next_one:
            one.bind(("0.0.0.0", port))
            next_one.bind(("0.0.0.0", port + 1))
            return port


def get(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=HANG_S) as answer:
        return answer.read()


def refusal(url, **headers):
    try:
        get(url, **headers)
    except urllib.error.HTTPError as error:
        return error.code
    raise AssertionError("it was answered")


def refusal_or_none(url):
    try:
        get(url)
    except urllib.error.HTTPError as error:
        return error.code
    return None


def samples(text):
    """Parses the text format: {name: {labels as text: value}}."""
    found = {}
    for line in text.splitlines():
        if not line or line[0] == "#":
            continue
        name, _, value = line.rpartition(" ")
        name, _, labels = name.partition("{")
        found.setdefault(name, {})[labels.rstrip("}")] = float(value)
    return found


# ---- Commands ----------------------------------------------------------------------------------


def status_counts_what_the_program_made(rig, folder):
    with running(rig, folder) as run:
        wait_for("some allocations", lambda: run.made() > 20)
        before, heap, after = run.made(), run.driver(), run.made()
        assert before <= heap["allocations"] <= after + 1, (before, heap, after)
        assert heap["live_bytes"] == heap["allocations"] * MIB, heap
        status = run.status()
        assert status["schema"] == "gpumemtrace.status/1"
        assert status["pid"] == run.process.pid and status["exact"], status
        assert status["losses"]["written"] == sum(
            status["losses"][k] for k in ("delivered", "overrun", "holes", "abandoned", "backlog"))
        text = run.verb("status", run.process.pid)
        assert text.startswith(f"Process {run.process.pid} is being recorded: "), text
        assert str(run.path) in text


def snapshot_is_in_the_file_when_it_is_answered(rig, folder):
    with running(rig, folder) as run:
        wait_for("some allocations", lambda: run.made() > 5)
        before = run.made()
        answer = run.json("snapshot", run.process.pid, "--name", "now", "-o", folder / "one.gmt")
        check_schema(answer)
        assert answer["name"] == "now" and answer["exact"], answer
        names = [s["name"] for s in json.loads(run.verb("info", "--json", run.path))["snapshots"]]
        assert names == ["now"], names
        report = json.loads(run.verb("report", "--json", "--at", "snapshot:now", folder / "one.gmt"))
        live = sum(row["bytes"] for row in report["rows"])
        assert before * MIB <= live <= (run.made() + 1) * MIB, (before, live)
        assert run.json("snapshot", run.process.pid, "--name", "now")["name"] == "now-2"
        assert "exists" in run.verb("snapshot", run.process.pid, "-o", folder / "one.gmt", code=1)


def snapshot_of_a_recording_in_parts_is_a_file_of_its_own(rig, folder):
    with running(rig, folder, PARTS) as run:
        wait_for("parts", lambda: len(list(folder.glob("run.part-*.gmt"))) >= 2)
        before = run.made()
        run.verb("snapshot", run.process.pid, "--name", "now", "-o", folder / "one.gmt")
        after = run.made()
        report = json.loads(run.verb("report", "--json", "--at", "snapshot:now", folder / "one.gmt"))
        live = sum(row["bytes"] for row in report["rows"])
        assert before * MIB <= live <= (after + 1) * MIB, (before, live, after)
        assert json.loads(run.verb("info", "--json", folder / "one.gmt"))["complete"]
        info = run.stop().check_whole()
        assert info["history"]["files"] >= 3, info["history"]


def marks_are_in_the_recording(rig, folder):
    with running(rig, folder) as run:
        for index in range(3):
            run.verb("mark", run.process.pid, "step", "--index", index)
        run.verb("mark", run.process.pid, "evening")
        recording = run.stop()
        marks = [e for e in recording.events() if e["kind"] == "mark"]
        assert [(m["name"], m.get("index")) for m in marks] == [
            ("step", 0), ("step", 1), ("step", 2), ("evening", None)], marks


def refusals_say_what_to_do(rig, folder):
    with running(rig, folder) as run:
        pid = run.process.pid
        assert "no process 999999999" in run.verb("status", 999999999, code=1)
        assert "gpumemtrace list" in run.verb("status", os.getpid(), code=1)
        assert "control characters" in run.verb("mark", pid, "a\nb", code=1)
        collector = run.status()["collector"]["pid"]
        kill_and_wait(collector)
        assert "gpumemtrace collect" in run.verb("status", pid, code=1)
        assert pathlib.Path(f"{run.session}.sock").exists()
        with open(folder / "collect.out", "w") as out:
            second = subprocess.Popen([rig.program, "collect", "-o", folder / "two.gmt", str(pid)],
                                      env=run.environment | {"LD_PRELOAD": ""}, stdout=out, stderr=out)
        wait_for("another collector", lambda: second.poll() is not None or subprocess.run(
            [rig.program, "status", str(pid)], env=run.environment | {"LD_PRELOAD": ""},
            capture_output=True).returncode == 0)
        assert run.driver()["live_bytes"] >= MIB
        run.process.kill()
        run.process.wait()
        assert second.wait(timeout=HANG_S) == 0, (folder / "collect.out").read_text()
        assert not list((folder / "sessions").iterdir()), "files are left"


def snapshots_come_by_time_and_growth(rig, folder):
    with running(rig, folder, "snapshot=every:1s+growth:20MiB+exit") as run:
        def reasons():
            return {s["reason"] for s in json.loads(run.verb("info", "--json", run.path))["snapshots"]}

        wait_for("a recording", lambda: run.path.stat().st_size)
        wait_for("both kinds", lambda: {"interval", "growth"} <= reasons())
        run.stop()
        assert "exit" in reasons(), reasons()


def snapshots_come_at_marks(rig, folder):
    with running(rig, folder, "snapshot=mark:epoch") as run:
        for name, snapshots in (("epoch", 1), ("step", 1), ("epoch", 2), ("epoch", 3)):
            run.verb("mark", run.process.pid, name)
            wait_for("a snapshot", lambda n=snapshots: run.status()["snapshots"] == n)
            let_pass(0.15)  # at most ten per second
        taken = [(s["name"], s["reason"]) for s in run.stop().info()["snapshots"] if s["reason"] == "mark"]
        assert [reason for _, reason in taken] == ["mark"] * 3 and len(set(taken)) == 3, taken
        assert all(name.startswith("epoch") for name, _ in taken), taken


def options_are_changed_while_it_runs(rig, folder):
    with running(rig, folder, "snapshot=exit") as run:
        assert "done" in ask(run.session, 'options { text: "snapshot=mark" }')
        run.verb("mark", run.process.pid, "now")
        for text, why in (("snapshot=nonsense", "not one of"), ("stacks=none", "stacks"), ("max_size=1GiB", "max_size")):
            reply = ask(run.session, f'options {{ text: "{text}" }}')
            assert "error" in reply and why in reply and "done" not in reply, reply
        reply = ask(run.session, "detach {}")
        assert "error" in reply and "only what was attached to can be detached from" in reply, reply
        reasons = [s["reason"] for s in run.stop().info()["snapshots"]]
        assert reasons == ["mark"], reasons  # and none at the end, as requested


# ---- HTTP --------------------------------------------------------------------------------------


def metrics_are_what_status_says(rig, folder):
    port = free_port()
    with running(rig, folder, f"listen=127.0.0.1:{port}") as run:
        base = f"http://127.0.0.1:{port}"
        assert run.status()["metrics"] == base
        before = run.driver()["allocations"]
        text = get(base + "/metrics").decode()
        after = run.driver()["allocations"]
        (made,) = samples(text)["gpumemtrace_allocations_total"].values()
        (held,) = samples(text)["gpumemtrace_device_memory_inuse_bytes"].values()
        assert before <= made <= after and held == made * MIB, (before, made, after, held)
        assert get(base + "/healthz") == b"ok\n"
        assert len([line for line in text.splitlines() if line[0] != "#"]) <= 40
        assert refusal(base + "/nothing") == 404
        assert refusal(base + "/metrics", Host="rebound.example.org") == 403
        open_metrics = get(base + "/metrics", Accept="application/openmetrics-text")
        assert open_metrics.endswith(b"# EOF\n")
        if shutil.which("promtool"):
            for body in (text,):
                done = subprocess.run(["promtool", "check", "metrics"], input=body, text=True,
                                      capture_output=True)
                assert done.returncode == 0, done.stdout + done.stderr
        assert run.stop().info()["sources"]["metrics"] == f"on at {base}"


def health_is_bad_while_nothing_can_be_written(rig, folder):
    if os.geteuid() != 0:
        print("SKIPPED: a full file system takes the right to mount one")
        return
    full = folder / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", full], check=True)
    try:
        port = free_port()
        with running(rig, folder, f"listen=127.0.0.1:{port}", name="full/run") as run:
            url = f"http://127.0.0.1:{port}/healthz"
            with contextlib.suppress(OSError), open(full / "filler", "wb", buffering=0) as filler:
                while filler.write(bytes(4096)):
                    pass
            wait_for("a full disk", lambda: refusal_or_none(url) == 503)
            try:
                get(url)
                raise AssertionError("it was answered")
            except urllib.error.HTTPError as error:
                assert b"the recording cannot be written: " in error.read()
            subprocess.run(["mount", "-o", "remount,size=64m", full], check=True)
            wait_for("health", lambda: refusal_or_none(url) is None)
            run.stop()
    finally:
        subprocess.run(["umount", "-l", full], check=True)


def leaks_are_reported_if_watched(rig, folder):
    """Eight series next to a bounded recording, whatever is found."""
    port = free_port()
    with running(rig, folder, f"listen=127.0.0.1:{port},max_size=64MiB") as run:
        wait_for("some allocations", lambda: run.made() > 20)
        text = get(f"http://127.0.0.1:{port}/metrics").decode()
        found = [line for line in text.splitlines() if line.startswith("gpumemtrace_leak_")]
        assert len(found) == 8, text
        (verdict,) = samples(text)["gpumemtrace_leak_verdict"].values()
        assert verdict in range(5), found
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
            assert done.returncode == 0, done.stdout + done.stderr
        run.stop()


def taken_port_ends_nothing(rig, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with running(rig, folder, f"listen=127.0.0.1:{port}") as run:
            assert "cannot be used to listen" in run.status()["metrics_problem"]
            info = run.stop().info()
            assert info["complete"] and "cannot be used to listen" in info["sources"]["metrics"]


def ranks_listen_side_by_side(rig, folder):
    port = free_port()
    with running(rig, folder, f"listen=127.0.0.1:{port}", name="a", LOCAL_RANK="0", RANK="8") as a:
        with running(rig, folder, f"listen=127.0.0.1:{port}", name="b", LOCAL_RANK="1", RANK="9") as b:
            for run, offset in ((a, 0), (b, 1)):
                text = get(f"http://127.0.0.1:{port + offset}/metrics").decode()
                assert f'rank="{8 + offset}"' in text, text
                assert run.status()["metrics"].endswith(str(port + offset))


def others_need_the_token(rig, folder):
    port, token = free_port(), folder / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    with running(rig, folder, f"listen=0.0.0.0:{port}+token:{token}") as run:
        base = f"http://127.0.0.1:{port}"
        for headers in ({}, {"Authorization": "Bearer " + TOKEN[:-1]}, {"Authorization": TOKEN}):
            for path in ("/metrics", "/healthz", "/nothing"):
                assert refusal(base + path, **headers) == 401, (path, headers)
        assert b"gpumemtrace_build_info" in get(base + "/metrics", Authorization=f"Bearer {TOKEN}")
        run.stop()
    with running(rig, folder, f"listen=0.0.0.0:{port}", name="open") as run:
        assert "needs a token" in run.status()["metrics_problem"]


def unix_socket_serves_its_user(rig, folder):
    path = folder / "metrics.sock"
    with running(rig, folder, f"listen=unix:{path}") as run:
        assert path.stat().st_mode & 0o777 == 0o600
        with running(rig, folder, f"listen=unix:{path}", name="second") as second:
            assert "already in use" in second.status()["metrics_problem"]
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = b""
            while piece := client.recv(65536):
                answer += piece
        assert b"gpumemtrace_build_info" in answer, answer
        run.stop()
        wait_for("the end of the socket", lambda: not path.exists())


def pprof_shows_who_holds_it(rig, folder):
    if shutil.which("go") is None:
        print("       (no Go: pprof was not run)")
        return
    # Newer versions of Go build the tool on first use, which takes a minute.
    pprof = subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True, text=True, check=True).stdout.strip()

    def top(profile, *options):
        return subprocess.run([pprof, "-top", "-cum", *options, profile], capture_output=True, text=True, check=True,
                              env={**os.environ, "PPROF_TMPDIR": str(folder / "fetched")}).stdout

    def row_of_grow(text):
        return next((line.split() for line in text.splitlines() if line.endswith("grow")), None)

    port = free_port()
    with running(rig, folder, f"listen=127.0.0.1:{port}") as run:
        wait_for("some allocations", lambda: run.made() > 20)
        url = f"http://127.0.0.1:{port}/debug/pprof/gpu"

        def named_now():
            (folder / "now").write_bytes(get(url))
            text = top(folder / "now", "-unit=B")
            return text if row_of_grow(text) else None

        # Names are looked up while the collector is idle.
        text = wait_for("names of functions", named_now)
        assert "Type: inuse_space" in text, text
        assert int(row_of_grow(text)[3].rstrip("B")) >= 20 * MIB, text

        def grew_in_a_second():
            (folder / "change").write_bytes(get(url + "?seconds=1"))
            return row_of_grow(top(folder / "change", "-sample_index=alloc_objects"))

        wait_for("allocations between two instants", grew_in_a_second)
        # The tool also asks itself, as servers for continuous profiling do. Meanwhile the program allocates more.
        before = int(row_of_grow(text)[3].rstrip("B"))
        held, grown = (int(row_of_grow(top(url, "-unit=B", *options))[3].rstrip("B"))
                       for options in ((), (f"-diff_base={folder / 'now'}",)))
        assert held > before and grown >= held - before, (before, held, grown)
        assert refusal(url + "?seconds=x") == 400
        made = run.made()
        recording = run.stop()
    # Export the recording at its end: the same tool shows the same lines.
    profile = folder / "run.pb.gz"
    done = subprocess.run([rig.program, "export", "--format", "pprof", "--at", "end", run.path, "-o", profile],
                          capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert "go tool pprof" in done.stderr, done.stderr
    text = top(profile, "-unit=B")
    grow = row_of_grow(text)
    live = recording.report("--at", "end", "--heap", "driver")["devices"][0]["bytes"]
    assert made * MIB <= int(grow[3].rstrip("B")) <= live, (made, live, text)
    # The program uses no framework, so its blocks are those of the driver.
    done = subprocess.run([rig.program, "export", "--format", "pprof", "--at", "end", "--heap", "driver", "--force", run.path,
                           "-o", profile], capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert top(profile, "-unit=B") == text, (text, top(profile, "-unit=B"))
    for wrong, why in ((["--heap", "pytorch"], 1), (["--at", "never"], 2), (["--from", "1"], 2), (["--at", "snapshot:none"], 1)):
        done = subprocess.run([rig.program, "export", "--format", "pprof", *wrong, run.path, "-o", folder / "x"],
                              capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == why and done.stderr and not (folder / "x").exists(), (wrong, done)


def hundreds_of_http_connections_leave_the_recording_alone(rig, folder):
    port = free_port()
    with running(rig, folder, f"listen=127.0.0.1:{port}") as run:
        crowd = []
        for n in range(400):
            client = socket.socket()
            client.settimeout(1)  # not a guard: connections not accepted by then wait in the kernel's queue
            crowd.append(client)
            try:
                client.connect(("127.0.0.1", port))
            except OSError:
                break
            with contextlib.suppress(OSError):
                client.sendall((b"GET /metr", b"\x00\xff" * 50,
                                b"GET /debug/pprof/gpu HTTP/1.1\r\n\r\n")[n % 3])
        made = run.made()
        wait_for("more allocations", lambda: run.driver()["allocations"] > made + 5)
        for client in crowd:
            client.close()
        wait_for("free connections", lambda: b"gpumemtrace" in get(f"http://127.0.0.1:{port}/metrics"))
        run.stop().check_whole()


def prometheus_scrapes_it(rig, folder):
    if shutil.which("prometheus") is None:
        print("       (no Prometheus: nothing was scraped)")
        return
    port = free_port()
    own = port + 1
    rules = pathlib.Path(__file__).resolve().parents[3] / "share/prometheus/gpumemtrace.rules.yml"
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: ['{rules}']\n"
        "scrape_configs:\n- job_name: gpumemtrace\n  static_configs:\n"
        f"  - targets: ['127.0.0.1:{port}']\n")
    with running(rig, folder, f"listen=127.0.0.1:{port}") as run:
        with open(folder / "prometheus.log", "w") as log:
            server = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml",
                 f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{own}"],
                stdout=log, stderr=log)
        try:
            def query(text):
                with contextlib.suppress(OSError):
                    url = f"http://127.0.0.1:{own}/api/v1/query?" + urllib.parse.urlencode({"query": text})
                    return json.loads(get(url))["data"]["result"]
                return []

            wait_for("growth in Prometheus", lambda: query("delta(gpumemtrace_device_memory_inuse_bytes[10m]) > 0"))
            (up,) = query("up")
            assert up["value"][1] == "1", up
            (series,) = query("count({__name__=~'gpumemtrace_.*'})")
            assert int(series["value"][1]) <= 40, series
            (inuse,) = query("gpumemtrace_device_memory_inuse_bytes")
            assert int(inuse["value"][1]) % MIB == 0 and inuse["metric"]["kind"] == "driver", inuse
        finally:
            server.terminate()
            server.wait()
        run.stop().check_whole()


CASES = [
    (f.__name__, f) for f in (
        status_counts_what_the_program_made, snapshot_is_in_the_file_when_it_is_answered,
        snapshot_of_a_recording_in_parts_is_a_file_of_its_own,
        marks_are_in_the_recording, refusals_say_what_to_do, snapshots_come_by_time_and_growth, snapshots_come_at_marks,
        options_are_changed_while_it_runs,
        metrics_are_what_status_says, health_is_bad_while_nothing_can_be_written, leaks_are_reported_if_watched, taken_port_ends_nothing,
        ranks_listen_side_by_side,
        others_need_the_token, unix_socket_serves_its_user, pprof_shows_who_holds_it,
        hundreds_of_http_connections_leave_the_recording_alone, prometheus_scrapes_it)
]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    chosen = [(n, c) for n, c in CASES if not given.names or n in given.names]
    sys.exit(run_cases(Rig(given.build.resolve(), given.python), chosen))
