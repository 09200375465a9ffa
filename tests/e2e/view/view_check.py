#!/usr/bin/env python3
"""Tests `gpumemtrace view` from outside: access control, answers, and lifetime.

Each case is a function below; it gets a folder of its own with recordings in it.

Usage: view_check.py --build DIR [NAME...]
"""

import argparse
import base64
import hashlib
import inspect
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "golden"))
import cases  # noqa: E402
from viewing import POLICY, Viewing, close  # noqa: E402
from waiting import HANG_S, let_pass, wait_for  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "seeds"))
from seeds import seeds  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
GRACE_S = 5  # for which it stays up after its last page (cli/view.cc)
OVER_SSH = {"SSH_CONNECTION": "192.0.2.7 50000 192.0.2.9 22"}
VERBS = ("report", "oom", "leaks", "ledger", "frag")


class Place:
    """A folder with recordings of a training loop (short, changed, capacity), and with other
    files."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        for name in ("torch-2.11.pickle", "v1.gmt"):
            shutil.copy(GOLDEN / name, folder)
        (folder / "notes.txt").write_text("no recording")

    def view(self, *files, options=("--no-browser",), environment=None, built_in_page=False):
        return Viewing(self.program, self.folder, files, options, environment, built_in_page)

    def run(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=HANG_S,
                              env={k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TZ": "UTC"})
        return done.returncode, done.stdout, done.stderr


# ---- Access control ------------------------------------------------------------------------------


def page_has_a_strict_policy(place):
    with place.view("short.gmt") as view:
        status, headers, body = view.request(f"/{view.token}/")
        assert status == 200 and b"<p>page</p>" in body
        assert headers["Content-Security-Policy"] == f"{POLICY}; frame-ancestors 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"


def built_in_page_runs_only_its_own_scripts(place):
    """The policy lists the hashes of all scripts and styles, and allows nothing else."""
    try:
        viewing = place.view("short.gmt", built_in_page=True)
    except AssertionError as error:
        if "built without its page" not in str(error):
            raise
        print("SKIPPED: this build has no page")
        return
    with viewing as view:
        _, headers, body = view.request(f"/{view.token}/")
        policy = headers["Content-Security-Policy"]
        directives = dict(one.strip().split(" ", 1) for one in policy.split(";"))
        for element in ("script", "style"):
            texts = re.findall(rf"<{element}\b[^>]*>(.*?)</{element}".encode(), body, re.DOTALL | re.IGNORECASE)
            hashes = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts]
            assert hashes and directives[f"{element}-src"].split() == [f"'sha256-{one}'" for one in hashes], policy
        assert directives["default-src"] == "'none'" and directives["connect-src"] == "'self'", policy
        assert "unsafe" not in policy and "*" not in policy, policy


def other_clients_are_refused(place):
    with place.view("short.gmt") as view:
        view.wait_ready()
        good, meta = f"/{view.token}/", f"/{view.token}/api/meta"
        wrong = "0" * 32 if view.token != "0" * 32 else "1" * 32
        refused = [
            ("/", {}, 404), ("/api/meta", {}, 404), (f"/{wrong}/", {}, 404), (f"/{wrong}/api/meta", {}, 404),
            (f"/{view.token[:-1]}/", {}, 404), (f"/{view.token}0/", {}, 404),
            (f"{good}../{view.token}/api/meta", {}, 404), (f"{good}api/../../../etc/passwd", {}, 404),
            (f"{good}..%2f..%2fetc%2fpasswd", {}, 404), (f"{good}short.gmt", {}, 404), (f"{good}api/", {}, 404),
            (f"{good}api/Meta", {}, 404),
            (meta, {"Host": "evil.example"}, 421), (meta, {"Host": f"evil.example:{view.port}"}, 421),
            (meta, {"Host": "127.0.0.1.evil.example"}, 421),
            (meta, {"Origin": "http://evil.example"}, 403), (meta, {"Origin": "null"}, 403),
            (meta, {"Sec-Fetch-Site": "cross-site"}, 403),
        ]
        for path, headers, expected in refused:
            status, got, body = view.request(path, headers=headers)
            assert status == expected, f"{path} {headers}: {status}, not {expected}: {body[:200]}"
            assert json.loads(body)["error"], body
            assert got["Access-Control-Allow-Origin"] is None
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            status, _, _ = view.request(meta, method=method)
            assert status >= 400, f"{method}: {status}"
        # Forwarded by ssh to another port on the loopback interface of another machine.
        for host in ("localhost:8080", "127.0.0.1:1", "[::1]:8080"):
            assert view.request(meta, headers={"Host": host})[0] == 200, host
        assert view.ask("meta", headers={"Origin": f"http://127.0.0.1:{view.port}"})[0] == 200


def other_addresses_cannot_connect(place):
    with place.view("short.gmt") as view:
        for address in ("127.0.0.2", own_address()):
            with socket.socket() as other:
                other.settimeout(5)  # not a guard: if packets are dropped, nothing listens
                assert address is None or other.connect_ex((address, view.port)) != 0, f"{address} accepts connections"


def own_address():
    """Returns the address of this machine in a network, if it is in one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def garbage_never_hurts(place):
    with place.view("short.gmt") as view:
        view.wait_ready()
        questions = ("curve", "passing", "predicted", "blocks", "block", "stacks", "source", "flame", "table", "range", "segments",
                     "events", "find", "answer", "compare", "meta", "progress")
        names = ("file", "lane", "axis", "from", "to", "columns", "low", "high", "rows", "layout", "row", "ids", "path",
                 "line", "of", "text", "category", "stack", "key", "min_size", "max_size", "inverted", "folded", "by",
                 "sort", "limit", "offset", "sparkline", "event", "name", "other", "other_file", "other_lane",
                 "other_to", "after", "descending", "stream", "thread", "settings")
        values = ("0", "1", "-1", "nan", "inf", "1e308", "4294967295", "4294967296", "18446744073709551616", "time",
                  "event", "step", "stacked", "address", "live", "growth", "born", "kept", "true", "stack", "bytes",
                  "/(((/", "/(a+)+$/", "x" * 1000, "%FF", "../../etc/passwd", "100", "8193", "1,2,3", "oom")
        for seed in seeds(1):
            dice = random.Random(seed)
            for _ in range(2000):
                given = {name: dice.choice(values) for name in dice.sample(names, dice.randrange(12))}
                if dice.randrange(2):
                    given |= {"file": "0", "lane": "0", "axis": "event", "of": "live", "from": "0", "to": "9"}
                status, body = view.ask(dice.choice(questions), **given)
                assert status in (200, 400, 404), f"{given}: {status} {body}"
                assert status == 200 or body["error"], given
        view.answer("meta")


# ---- Answers -------------------------------------------------------------------------------------


def answers_are_those_of_the_verbs(place):
    for file in ("short.gmt", "capacity.jsonl", "leak.jsonl"):
        with place.view(file) as view:
            view.wait_ready()
            for verb in VERBS:
                code, text, errors = place.run(verb, file)
                status, answer = view.ask("answer", file=0, name=verb)
                assert (status == 200) == (code == 0), f"{verb} {file}: {code} {errors}, but {status} {answer}"
                if code:
                    assert errors == f"gpumemtrace: {answer['error']}\n", f"{errors} {answer}"
                    continue
                assert answer["text"] == text, f"{verb} {file}:\n{text}\n{answer['text']}"
                assert answer["headline"] == text.split("\n")[0]
                assert answer["json"] == json.loads(place.run(verb, file, "--json")[1]), f"{verb} {file}"


def every_question_is_answered(place):
    with place.view("short.gmt") as view:
        view.wait_ready()
        meta = view.answer("meta")
        assert meta["protocol"] == 1 and meta["origin"] == "server", meta
        file = meta["files"][0]
        lane = file["lanes"][0]
        window = {"file": 0, "lane": 0, "axis": "event", "from": 0, "to": file["events"], "columns": 100}
        _, curve = view.answer("curve", **window)
        assert len(curve["event"]) == 100 and max(curve["live.max"]) == lane["peak_bytes"], lane
        _, passing = view.answer("passing", **window)
        assert passing["live"] == curve["live.max"], lane
        fields, blocks = view.answer("blocks", **window, layout="stacked", low=0, high=lane["peak_bytes"], rows=500)
        assert len(blocks["run_begin"]) == len(blocks["row"]) + 1 and "hidden" in fields
        view.answer("blocks", **window, layout="address", low=0, high=lane["peak_bytes"], rows=500)
        scope = {"file": 0, "lane": 0, "of": "live", "from": 0, "to": lane["peak_event"]}
        table = view.answer("table", **scope, by="stack", sort="bytes", limit=10, sparkline=20)
        tree, nodes = view.answer("flame", **scope, folded="true")
        assert table["total_bytes"] == tree["total"] == nodes["bytes"][0] == lane["peak_bytes"]
        whole = {"file": 0, "lane": 0, "from": 0, "to": file["events"]}
        ranges = view.answer("range", **whole, by="category", sort="bytes", limit=10)
        assert ranges["total"]["bytes"] == sum(row["bytes"] for row in ranges["rows"]) == lane["peak_bytes"], ranges
        assert ranges["peak_event"] == lane["peak_event"], ranges
        view.answer("flame", **scope, other_file=0, other_lane=0, other_to=0)
        found = view.answer("find", **scope, limit=5)
        block = view.answer("block", file=0, row=found["rows"][0])
        assert block["size"] == found["size"][0]
        stacks = view.answer("stacks", file=0, ids=block["stack"]["stack"])
        assert stacks[0]["frames"]
        view.answer("segments", file=0, lane=0, event=lane["peak_event"])
        frame = next(frame for frame in stacks[0]["frames"] if frame["file"])
        view.answer("source", file=0, path=frame["file"], line=frame["line"])


def wrong_parameters_are_named(place):
    with place.view("short.gmt") as view:
        view.wait_ready()
        window = {"file": 0, "lane": 0, "axis": "event", "from": 0, "to": 10, "columns": 10}
        for change, name in (({"columns": 0}, "columns"), ({"columns": 8193}, "columns"), ({"from": "nan"}, "from"),
                             ({"to": 0}, "from"), ({"axis": "week"}, "axis"), ({"file": 1}, "file"),
                             ({"colour": 1}, "colour"), ({"lane": -1}, "lane"), ({"lane": 99}, "lane")):
            status, body = view.ask("curve", **(window | change))
            assert status == 400 and name in body["error"].lower(), f"{change}: {status} {body}"
        del window["to"]
        assert view.ask("curve", **window) == (400, {"error": "to: missing"})
        status, body = view.ask("source", file=0, path="/etc/passwd", line=1)
        assert status in (400, 404), f"a file that no stack names was sent: {body}"


def several_files_of_all_kinds(place):
    with place.view("short.gmt", "changed.jsonl", "torch-2.11.pickle", "v1.gmt") as view:
        assert [file["state"] for file in view.wait_ready()] == ["ready"] * 4, view.files()
        files = view.answer("meta")["files"]
        assert [file["name"] for file in files] == ["short.gmt", "changed.jsonl", "torch-2.11.pickle", "v1.gmt"]
        assert all(file["lanes"] for file in files[:3])
        compared = view.answer("compare", file=0, other=1)
        assert compared["json"] == json.loads(place.run("diff", "short.gmt", "changed.jsonl", "--json")[1])
        assert view.ask("compare", file=0, other=0)[0] == 400
        lane = files[0]["lanes"][0]
        view.answer("flame", file=0, lane=0, of="live", **{"from": 0}, to=lane["peak_event"], other_file=1,
                    other_lane=0, other_to=5)


def file_that_is_none_fails_alone(place):
    with place.view("short.gmt", "notes.txt", "missing.gmt") as view:
        files = view.wait_ready()
        assert [file["state"] for file in files] == ["ready", "failed", "failed"], files
        for index, name in ((1, "notes.txt"), (2, "missing.gmt")):
            output = place.run("report", name)[2]
            assert output == f"gpumemtrace: {files[index]['error']}\n", f"{output} {files[index]}"
            status, body = view.ask("curve", file=index, lane=0, axis="event", to=9, columns=9, **{"from": 0})
            assert status == 400 and body["error"] == files[index]["error"], f"{status} {body}"
        assert view.ask("answer", file=0, name="report")[0] == 200


def folder_stands_for_the_recordings_in_it(place):
    folder = place.folder / "job"
    folder.mkdir()
    assert "no recording (*.gmt) in this directory" in place.run("view", "--no-browser", folder)[2]
    for name in ("r1.gmt", "r0.gmt"):
        shutil.copy(place.folder / "short.gmt", folder / name)
    (folder / "notes.txt").write_text("none")
    with place.view("job") as view:
        view.wait_ready()
        assert [file["name"] for file in view.answer("meta")["files"]] == ["r0.gmt", "r1.gmt"]


def file_that_vanishes_stays_on_the_page(place):
    shutil.copy(place.folder / "short.gmt", place.folder / "gone.gmt")
    with place.view("gone.gmt") as view:
        view.wait_ready()
        for left in place.folder.glob("*gone.gmt*"):
            left.unlink()
        view.answer("answer", file=0, name="report")
        view.answer("curve", file=0, lane=0, axis="event", to=9, columns=9, **{"from": 0})


def cut_recording_is_marked(place):
    whole = (place.folder / "short.gmt").read_bytes()
    (place.folder / "cut.gmt").write_bytes(whole[:len(whole) * 2 // 3])
    with place.view("cut.gmt") as view:
        assert view.wait_ready()[0]["state"] == "ready"
        lacks = view.answer("meta")["files"][0]["lacks"]
        output = place.run("oom", "cut.gmt")[2]
        assert lacks and all(f"gpumemtrace: {lack}\n" in output for lack in lacks), f"{lacks} {output}"


def second_time_gives_the_same(place):
    """The second time uses the index that the first time has written."""
    seen = []
    for _ in range(2):
        with place.view("short.gmt") as view:
            view.wait_ready()
            lane = view.answer("meta")["files"][0]["lanes"][0]
            window = {"file": 0, "lane": 0, "axis": "event", "from": 0, "to": 500, "columns": 50}
            seen.append((view.answer("meta"), view.answer("curve", **window),
                         view.answer("blocks", **window, layout="stacked", low=0, high=lane["peak_bytes"], rows=300)))
            wait_for("the index", lambda: any(
                ".view" in path.name and "short" in path.name for path in place.folder.rglob("*")))
            assert view.interrupt() == 0
    # repr: NaN does not equal itself, but its repr does.
    assert repr(seen[0]) == repr(seen[1])


# ---- Lifetime ------------------------------------------------------------------------------------


def ends_after_the_last_page(place):
    with place.view("short.gmt") as view:
        pages = [view.page(), view.page()]
        first = pages[0][1].readline(), pages[0][1].readline()
        assert first[0].startswith(b"retry: ") and json.loads(first[1].removeprefix(b"data: "))["files"], first
        close(pages[0])
        let_pass(GRACE_S + 1)
        view.answer("meta")  # a page is open
        close(pages[1])
        assert view.exit_code() == 0


def page_may_be_loaded_again(place):
    with place.view("short.gmt", environment=OVER_SSH) as view:  # allows longer for reconnecting
        close(view.page())
        page = view.page()
        view.answer("meta")
        close(page)


def waits_for_its_first_page(place):
    with place.view("short.gmt") as view:
        view.wait_ready()
        let_pass(GRACE_S + 1)
        view.answer("meta")


def keeps_running_on_request(place):
    with place.view("short.gmt", options=("--no-browser", "--keep")) as view:
        close(view.page())
        let_pass(GRACE_S + 1)
        view.answer("meta")
        assert view.interrupt(signal.SIGTERM) == 0


def interrupt_ends_it_at_once(place):
    """It ends even while it reads a file that never ends, and while a page is open."""
    os.mkfifo(place.folder / "endless.jsonl")
    with place.view("short.gmt", "endless.jsonl") as view:
        page = view.page()
        assert view.interrupt() == 0
        close(page)


def open_pages_receive_progress(place):
    with place.view("short.gmt") as view:
        connection, answer = view.page()
        states = []
        while not states or states[-1] != "ready":
            line = answer.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: "):
                states.append(json.loads(line[6:])["files"][0]["state"])
        order = ("loading", "coarse", "blocks", "ready")
        assert states == sorted(states, key=order.index), states
        close((connection, answer))


def many_pages_and_lazy_readers(place):
    with place.view("short.gmt") as view:
        lazy = []
        for _ in range(50):
            client = socket.create_connection(("127.0.0.1", view.port))
            client.sendall(f"GET /{view.token}/api/meta HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            lazy.append(client)
        assert view.wait_ready()[0]["state"] == "ready"
        for client in lazy:
            client.close()


# ---- Address and browser -------------------------------------------------------------------------


def over_ssh_it_says_how_to_forward(place):
    with place.view("short.gmt", options=(), environment={
            **OVER_SSH, "BROWSER": "false", "DISPLAY": ":0"}) as view:
        wait_for("it says how to reach it", lambda: "and open the address" in view.stderr())
        assert f"ssh -N -L {view.port}:127.0.0.1:{view.port} " in view.stderr(), view.stderr()
        assert "@192.0.2.9\n" in view.stderr(), view.stderr()
        close(view.page())
        let_pass(GRACE_S + 1)
        view.answer("meta")  # a broken tunnel does not end it at once


def browser_is_opened(place):
    script = place.folder / "browser"
    script.write_text("#!/bin/sh\necho noise\necho \"$1\" > opened\n")
    script.chmod(0o755)
    with place.view("short.gmt", options=(), environment={"BROWSER": str(script)}) as view:
        opened = place.folder / "opened"
        wait_for("the browser is opened", lambda: opened.exists() and opened.read_text().endswith("\n"))
        assert opened.read_text().strip() == view.url
    opened.unlink()
    with place.view("short.gmt", environment={"BROWSER": str(script)}) as view:
        view.wait_ready()
        assert not opened.exists(), "opened in spite of --no-browser"
    with place.view("short.gmt", options=(), environment={"BROWSER": "/no/such/browser"}) as view:
        wait_for("it says that there is no such browser", lambda: "cannot be run" in view.stderr())


def wrong_usage_is_refused(place):
    with place.view("short.gmt") as view:
        code, _, errors = place.run("view", "--no-browser", "--port", str(view.port), "short.gmt")
        assert code == 1 and f"127.0.0.1:{view.port}" in errors, f"{code} {errors}"
    for words in (("--port", "65536", "short.gmt"), ("--port", "-1", "short.gmt"), (), ("--no-such", "short.gmt")):
        code, out, errors = place.run("view", *words)
        assert code == 2 and errors and not out, f"{words}: {code} {out} {errors}"
    code, _, errors = place.run("view", "--page", "missing.html", "short.gmt")
    assert code == 1 and "missing.html" in errors, errors


def port_that_is_asked_for_is_taken(place):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with place.view("short.gmt", options=("--no-browser", "--port", str(port))) as view:
        assert view.port == port


CASES = [value for value in list(globals().values())
         if inspect.isfunction(value) and value.__code__.co_varnames[:1] == ("place",)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    program = str(options.build.resolve() / "bin/gpumemtrace")
    chosen = [case for case in CASES if not options.names or case.__name__ in options.names]
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        cases.write(pathlib.Path(made))
        subprocess.run([program, "import", "short.jsonl", "-o", "short.gmt"], cwd=made, check=True, capture_output=True)
        for case in chosen:
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                for name in ("short.gmt", "changed.jsonl", "capacity.jsonl", "leak.jsonl"):
                    shutil.copy(pathlib.Path(made) / name, folder)
                try:
                    case(Place(program, folder))
                    print(f"ok     {case.__name__}", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAILED {case.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} cases passed")
    sys.exit(1 if failed or not chosen else 0)


if __name__ == "__main__":
    main()
