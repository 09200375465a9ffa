"""Notes the interpreter's own view of the stack at each allocation, from sys._getframe() outwards, as
a line of JSON in the file $STACK_SITES_NOTES.
"""

import json
import os

_file = os.open(os.environ["STACK_SITES_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def size_of(site):
    """Returns a size between 1 and 2 MiB that is unique to the site and the same in every process."""
    value = 0
    for letter in site:
        value = (value * 131 + ord(letter)) % 65521
    return (1 << 20) + 16 * value


def note(site, frame, size=None):
    """Notes the stack whose innermost frame is `frame`, at its current line. None: no frames."""
    chain = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        chain.append((name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    line = {"site": site, "size": size or size_of(site), "frames": chain}
    os.write(_file, json.dumps(line).encode() + b"\n")
