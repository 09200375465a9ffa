#!/usr/bin/env python3
"""What a fleet uses: Prometheus's rules with promtool, a Prometheus that scrapes the eight ranks of a machine, and every
expression of the dashboard.

Usage: fleet_check.py --build DIR [NAME...]
"""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from control_check import free_port, running  # noqa: E402
from rig import MIB, ROOT, Rig, main_of_cases  # noqa: E402
from waiting import HANG_S, wait_for  # noqa: E402

RANKS = 8
RULES = ROOT / "share/prometheus/gpumemtrace.rules.yml"
DASHBOARD = ROOT / "share/grafana/gpumemtrace.json"
METRICS = (ROOT / "collector/metrics/metrics_text.cc").read_text(encoding="utf-8")


def rules_fire_when_they_should(_rig, _folder):
    if shutil.which("promtool") is None:
        print("       (no promtool: nothing was checked)")
        return
    tested = pathlib.Path(__file__).with_name("rules_test.yml")
    for words in (["check", "rules", RULES], ["test", "rules", tested]):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, done.stdout + done.stderr
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    records = set(re.findall(r"record: (\S+)", RULES.read_text()))
    text = tested.read_text()
    fired = {name for name, rest in re.findall(r"alertname: (\w+)\n(\s+exp_alerts:)", text)}
    assert alerts == fired and all(name in text for name in records), (alerts - fired, records)


def free_ports(count):
    """Returns the first of `count` ports in a row that are unused."""
    while True:
        first = free_port()
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


class Prometheus:
    """A server that scrapes the ports."""

    def __init__(self, folder, ports):
        self.url = f"http://127.0.0.1:{free_port()}"
        targets = ", ".join(f"'127.0.0.1:{port}'" for port in ports)
        (folder / "prometheus.yml").write_text(
            f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{RULES}']\n"
            f"scrape_configs:\n- job_name: gpumemtrace\n  static_configs:\n  - targets: [{targets}]\n")
        self.log = open(folder / "prometheus.log", "w")
        self.server = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
             f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=self.log, stderr=self.log)

    def query(self, text):
        """Returns the series of an expression; none while the server starts."""
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": text})
        try:
            with urllib.request.urlopen(url, timeout=HANG_S) as answer:
                return json.loads(answer.read())["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return []
            raise AssertionError(f"{text}: {error.read()}") from error
        except OSError:
            return []

    def close(self):
        self.server.terminate()
        self.server.wait()
        self.log.close()


def prometheus_scrapes_eight_ranks(rig, folder):
    if shutil.which("prometheus") is None:
        print("       (no Prometheus: nothing was scraped)")
        return
    rig = Rig(rig.build, sys.executable)
    port = free_ports(RANKS)
    with contextlib.ExitStack() as open_now:
        # One option for all processes of a machine: each listens at the port plus its local rank.
        runs = [open_now.enter_context(running(
            rig, folder, f"listen=127.0.0.1:{port},max_size=64MiB", name=f"r{rank}", RANK=str(8 + rank), LOCAL_RANK=str(rank),
            WORLD_SIZE="16", SLURM_JOB_ID="4711", SIMCUDA_DEVICES=str(RANKS))) for rank in range(RANKS)]
        server = Prometheus(folder, range(port, port + RANKS))
        open_now.callback(server.close)
        up = wait_for("eight ranks", lambda: (found := server.query("up == 1")) and len(found) == RANKS and found)
        assert {each["metric"]["instance"] for each in up} == {f"127.0.0.1:{port + rank}" for rank in range(RANKS)}
        targets = wait_for("who they are", lambda: (found := server.query("gpumemtrace_target_info")) and len(found) == RANKS and found)
        named = {(t["metric"]["rank"], t["metric"]["local_rank"], t["metric"]["slurm_job_id"]) for t in targets}
        assert named == {(str(8 + rank), str(rank), "4711") for rank in range(RANKS)}, named
        wait_for("growth on each", lambda: len(server.query("delta(gpumemtrace_device_memory_inuse_bytes[10s]) > 0")) == RANKS)
        for each in server.query("gpumemtrace_device_memory_inuse_bytes"):
            assert int(each["value"][1]) % MIB == 0, each
        # A dashboard's panel joins ranks with what they hold by the target.
        joined = server.query("gpumemtrace_device_memory_inuse_bytes * on (instance) group_left (rank) gpumemtrace_target_info")
        assert {each["metric"]["rank"] for each in joined} == {str(8 + rank) for rank in range(RANKS)}, joined
        # How many series a rank costs (docs/fleet.md).
        (series,) = server.query("count({__name__=~'gpumemtrace_.*', instance!=''})")
        print(f"       {int(series['value'][1]) / RANKS:.1f} series per rank")
        assert int(series["value"][1]) <= 59 * RANKS, series
        dashboard_works(server)
        for run in runs:
            assert run.process.poll() is None


def dashboard_works(server):
    """Every expression of the dashboard is valid, and every metric in it is one that the ranks have."""
    names = {series["metric"]["__name__"] for series in server.query("{__name__=~'gpumemtrace_.*', instance!=''}")}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(expressions) > 10, expressions
    for expression in expressions:
        server.query(expression.replace("$host", ".*"))
        used = set(re.findall(r"gpumemtrace_\w+", expression))
        # These programs have no framework, and the driver was not asked what is used.
        missing = used - names
        assert missing <= {"gpumemtrace_allocator_inuse_bytes", "gpumemtrace_allocator_reserved_bytes",
                           "gpumemtrace_device_memory_used_bytes"}, missing
        assert all(f'"{name}"' in METRICS for name in missing), missing


CASES = [rules_fire_when_they_should, prometheus_scrapes_eight_ranks]

if __name__ == "__main__":
    sys.exit(main_of_cases([(case.__name__, case) for case in CASES], __doc__, torch=False))
