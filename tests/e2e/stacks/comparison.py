"""Is the recorded stack of a site the right one? Three sources have to agree: the recording, the
comment in the source, and what the interpreter reported about itself at that moment.
"""

import os
import re

from expectations import ANY_LINE, ANYTHING, CUT, LIBRARY, NO_PYTHON, Frame

# A cut stack keeps its innermost frames. Before 3.11 native frames are between Python's.
FEWEST_OF_A_CUT_STACK = 40


def plain_name(function):
    """Reduces `int sites::F<int>(long) [clone .cold]` to sites::F<int>: no result, no arguments."""
    name = re.sub(r" \[clone [^]]*\]|\.(cold|constprop|isra|part)(\.\d+)*", "", function)
    name = re.sub(r"\)( const| volatile| &+)+$", ")", name)
    if name.endswith(")") and not name.endswith("operator()"):
        depth = at = 0
        for at in range(len(name) - 1, -1, -1):
            depth += (name[at] == ")") - (name[at] == "(")
            if depth == 0:
                break
        name = name[:at]
    depth = starts = 0
    for at, letter in enumerate(name):
        depth += (letter in "(<{[") - (letter in ")>}]")
        if letter == " " and depth == 0 and not name.endswith("operator", 0, at):
            starts = at + 1
    return name[starts:]


def is_interpreter(frame):
    """Returns whether a native frame may have run Python code."""
    module = os.path.basename(frame.get("module") or "")
    return bool(re.match(r"(lib)?python3", module)) or "PyEval" in (frame.get("function") or "")


class Comparison:
    """Compares the stacks of one run with what was written and noted, for a version of Python.

    If the notes are taken further out than the allocation, for instance around a function of a
    library, only the comment states the frames further in.
    """

    def __init__(self, expectations, noted_further_out=False):
        self.expectations, self.noted_further_out = expectations, noted_further_out
        self.take_line = expectations.marks["take"][1] if "take" in expectations.marks else 0

    def differences_of_note(self, site, note):
        """Returns the differences between the comment and what the interpreter noted."""
        have = self._reduced(self._noted(note)[self._takes(note) :])
        want = [f for f in self._written(site) if not f.native]
        if want == [NO_PYTHON]:
            return []
        if want and want[-1] == CUT:
            want, have = want[:-1], have[: len(want) - 1]
        if self.noted_further_out and want[:1] == [LIBRARY]:
            del want[0]
        return [] if want == have else [difference("the interpreter", want, have)]

    def differences(self, site, note, stack):
        """Returns the differences between those and a recorded stack, an event of the event log."""
        frames = stack["frames"]
        python = [
            (f["function"], f["file"], f["line"]) for f in frames if f.get("language") == "python"
        ]
        noted = self._noted(note)
        want = self._written(site)
        if want == [NO_PYTHON]:
            good = not python and stack.get("no_python")
            return [] if good else ["Python's frames are neither right nor marked as missing"]
        cut = bool(want) and want[-1] == CUT
        found = []
        if bool(stack.get("truncated")) != cut:
            found.append("the stack is " + ("not " if cut else "") + "marked as cut")
        if cut and len(python) >= FEWEST_OF_A_CUT_STACK:
            noted = noted[: len(python)]
        for flag in ("unmerged", "no_python"):
            if stack.get(flag):
                found.append(f"the stack is marked as {flag}")
        if python[-len(noted) :] != noted if self.noted_further_out else python != noted:
            found.append(difference("the recording", noted, python))
        found += self._against_the_comment(want[:-1] if cut else want, frames, note, cut)
        return found + misplaced_runs(frames)

    def _takes(self, note):
        """Returns whether the innermost frame is that of the function that all sites call."""
        return bool(note["frames"]) and note["frames"][0][0] == "take"

    def _noted(self, note):
        frames = [tuple(frame) for frame in note["frames"]]
        if self._takes(note):  # it had not yet reached the line of the call
            frames[0] = (*frames[0][:2], self.take_line)
        return frames

    def _written(self, site):
        frames = self.expectations.frames(site)
        if self.expectations.version >= (3, 11):
            return frames
        return [
            f
            if f.native or f in (LIBRARY, CUT, NO_PYTHON)
            else Frame(f.function.rpartition(".")[2], f.file, f.line)
            for f in frames
        ]

    def _reduced(self, python):
        """Converts (function, file, line) to frames; adjacent frames of other files become one."""
        reduced = []
        for function, file, line in python:
            if os.path.basename(file) in self.expectations.files:
                reduced.append(Frame(function, os.path.basename(file), line))
            elif not reduced or reduced[-1] != LIBRARY:
                reduced.append(LIBRARY)
        return reduced

    def _against_the_comment(self, want, frames, note, cut):
        """Compares the Python frames one by one, and the native ones between them that the comment
        names."""
        have = []
        for frame in frames:
            if frame.get("language") == "python":
                have += self._reduced([(frame["function"], frame["file"], frame["line"])])
                python = [f for f in have if not f.native]
                if python[-2:] == [LIBRARY, LIBRARY]:
                    del have[len(have) - 1 - have[::-1].index(LIBRARY)]
            else:
                name = plain_name(frame.get("function") or "")
                file = os.path.basename(frame.get("file") or "")
                have.append(Frame(name, file, frame.get("line") or 0, native=True))
        if self._takes(note):
            have = have[next((n + 1 for n, f in enumerate(have) if f.function == "take"), 0) :]
        missing = first_missing(want, have, cut)
        return [difference(f"the recording, without {missing},", want, have)] if missing else []


class NativeComparison:
    """Compares the stacks of a program without Python, all of whose own frames are stated."""

    def __init__(self, expectations, helper):
        self.expectations, self.helper = expectations, helper

    def differences(self, site, stack):
        have = []
        for frame in stack["frames"]:
            file = os.path.basename(frame.get("file") or "")
            if frame.get("language") == "python":
                have.append(Frame(frame["function"], file, frame["line"]))
            elif file in self.expectations.files:
                name = plain_name(frame.get("function") or "")
                have.append(Frame(name, file, frame.get("line") or 0, native=True))
            elif have[-1:] != [LIBRARY]:
                have.append(LIBRARY)
        # Drops the function that all sites call, and what it calls.
        have = have[next((n + 1 for n, f in enumerate(have) if f.function == self.helper), 0) :]
        want = self.expectations.frames(site)
        cut = want[-1] == CUT
        if bool(stack.get("truncated")) != cut:
            return ["the stack is " + ("not " if cut else "") + "marked as cut"]
        if want[-1] in (CUT, ANYTHING):
            want, have = want[:-1], have[: len(want) - 1]
        same = len(want) == len(have) and all(map(matches, want, have))
        return [] if same else [difference("the recording", want, have)]


def first_missing(want, have, cut):
    """Returns the first of `want` that is not in its place, as text; "" if all are."""
    at = 0
    for frame in want:
        while at < len(have) and have[at].native and not matches(frame, have[at]):
            at += 1
        if at == len(have) or not matches(frame, have[at]):
            return str(frame)
        at += 1
    rest = [frame for frame in have[at:] if not frame.native]
    return "" if cut or not rest else f"an end before {rest[0]}"


def matches(want, have):
    if want.native != have.native or want.function != have.function:
        return False
    if want.line == ANY_LINE:
        return want.file == have.file
    return want.line == 0 or (want.file, want.line) == (have.file, have.line)


def misplaced_runs(frames):
    """Finds Python frames that do not directly follow the interpreter's frame that ran them."""
    for before, frame in zip([None, *frames], frames):
        if frame.get("language") != "python" or (before and before.get("language") == "python"):
            continue
        if before is None or not is_interpreter(before):
            place = "innermost" if before is None else f"behind {before.get('function')}"
            return [f"{frame['function']} is {place}, which does not run Python"]
    return []


def difference(whose, want, have):
    def lines(frames):
        return "\n".join(f"      {str(frame)[:90]}" for frame in frames) or "      (nothing)"

    return f"{whose} has another stack\n    expected:\n{lines(want)}\n    actual:\n{lines(have)}"
