"""Sends requests to the control socket of a collector (docs/control.md) in protobuf's text format, using protoc."""

import pathlib
import socket
import subprocess

from waiting import HANG_S

PROTO = pathlib.Path(__file__).resolve().parents[3]


def protoc(how, message, text):
    done = subprocess.run(["protoc", f"--{how}=gmt.control.{message}", f"-I{PROTO}", "proto/control.proto"],
                          cwd=PROTO, input=text, capture_output=True, check=True)
    return done.stdout


def read_message(connection):
    def read(size):
        data = b""
        while len(data) < size:
            piece = connection.recv(size - len(data))
            if not piece:
                raise EOFError("the collector has closed the connection")
            data += piece
        return data

    return read(int.from_bytes(read(4), "little"))


def ask(session, what):
    """Returns the reply to `what`, such as 'options { text: "snapshot=oom" }', as text."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANG_S)
        connection.connect(f"{session}.sock")
        read_message(connection)  # Hello
        request = protoc("encode", "Request", f"version: 1 id: 7 {what}".encode())
        connection.sendall(len(request).to_bytes(4, "little") + request)
        return protoc("decode", "Reply", read_message(connection)).decode()
