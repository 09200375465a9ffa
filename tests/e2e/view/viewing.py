"""Runs a `gpumemtrace view`, with a client that sends it a page's requests, and forbidden ones."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "recording"))
from waiting import HANG_S, wait_for  # noqa: E402

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/\n")

POLICY = "default-src 'none'; script-src 'none'"
PAGE = f"""<!doctype html><meta http-equiv="Content-Security-Policy" content="{POLICY}"><p>page</p><script>1</script>"""


class Viewing:
    def __init__(self, program, folder, files, options=(), environment=None, built_in_page=False):
        self.folder = folder
        page = folder / "page.html"
        page.write_text(PAGE)
        chosen = () if built_in_page else ("--page", str(page))
        clean = {key: value for key, value in os.environ.items()
                 if key not in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "COLUMNS", "LD_PRELOAD")}
        self.errors = open(folder / "stderr", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "view", *chosen, *options, *files], cwd=folder, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self.errors,
            env=clean | {"XDG_CACHE_HOME": str(folder / "cache"), "TZ": "UTC"} | (environment or {}))
        address = self.process.stdout.readline()
        found = ADDRESS.fullmatch(address)
        if not found:
            self.process.kill()
            raise AssertionError(f"the first line is no address: {address!r}; {self.stderr()}")
        self.url, self.port, self.token = address.strip(), int(found[1]), found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()

    def request(self, path, method="GET", headers=None, body=None):
        """Returns status, headers and body. `path` is sent as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host="Host" in (headers or {}))
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def ask(self, name, /, headers=None, **parameters):
        """Returns status and body of a request: JSON, or (fields, arrays) of a slab."""
        query = urllib.parse.urlencode(parameters)
        status, got, body = self.request(f"/{self.token}/api/{name}?{query}", headers=headers)
        is_slab = got["Content-Type"] == "application/octet-stream"
        return status, read_slab(body) if is_slab else json.loads(body)

    def answer(self, name, /, **parameters):
        status, body = self.ask(name, **parameters)
        assert status == 200, f"{name} {parameters}: {status} {body}"
        return body

    def files(self):
        return self.answer("progress")["files"]

    def wait_ready(self):
        wait_for("all files", lambda: all(file["state"] in ("ready", "failed") for file in self.files()))
        return self.files()

    def page(self):
        """Returns the connection that an open page holds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        connection.request("GET", f"/{self.token}/api/alive")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
        return connection, answer

    def exit_code(self):
        return self.process.wait(HANG_S)

    def interrupt(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.exit_code()


def close(page):
    """Closes it as a browser does when its tab is closed."""
    connection, answer = page
    answer.close()
    connection.close()


def read_slab(data):
    """Returns fields and arrays."""
    assert data[:4] == b"GMTV" and struct.unpack_from("<H", data, 4)[0] == 1
    length = struct.unpack_from("<I", data, 8)[0]
    header = json.loads(data[12:12 + length])
    offset, arrays = 12 + length, {}
    for array in header["arrays"]:
        offset += -offset % 8
        kind = {"u8": "B", "u16": "H", "u32": "I", "f64": "d"}[array["type"]]
        arrays[array["name"]] = list(struct.unpack_from(f"<{array['count']}{kind}", data, offset))
        offset += array["count"] * struct.calcsize(kind)
    assert offset + -offset % 8 == len(data), "there are bytes behind the last array"
    return header["fields"], arrays
