"""The stacks that the programs of tests/programs/stack_sites state in their comments.

sites.py there describes the notation. A mark is a line that a comment names, in any file of the
folder.
"""

import dataclasses
import pathlib
import re
import tokenize

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "programs" / "stack_sites"
# What `main` is in Python and in C++ programs.
MAIN = {".py": "run@run < <module>@start", ".cc": "main@cc_main < ~"}

MARK = re.compile(r"(?:^|\s)@(\w+)(?:\{([^}]*)\})?(?=\s|$)")
SITE = re.compile(r"(?:^|\s)site (\w+)(?:\{([^}]*)\})?:\s*(.*)$")
CONDITION = re.compile(r"^(.*)\{([^{}]*)\}$")


@dataclasses.dataclass(frozen=True)
class Frame:
    """A frame that must be there. A native one may have no line."""

    function: str
    file: str = ""
    line: int = 0
    native: bool = False

    def __str__(self):
        place = f" {self.file}:{self.line}" if self.line else ""
        return ("native " if self.native else "") + self.function + place


LIBRARY = Frame("~")
CUT = Frame("...")
ANYTHING = Frame("*")
NO_PYTHON = Frame("no_python")
ANY_LINE = -1


@dataclasses.dataclass
class Site:
    name: str
    file: str
    line: int
    text: str

    @property
    def suffix(self):
        return pathlib.Path(self.file).suffix

    @property
    def where(self):
        return f"{self.file}:{self.line}"


def size_of(site):
    """Returns the size that a site allocates, as the programs compute it."""
    value = 0
    for letter in site:
        value = (value * 131 + ord(letter)) % 65521
    return (1 << 20) + 16 * value


def holds(condition, version, settings):
    """Evaluates a condition: "<3.12", ">=3.11", a setting of the run, or several of them with
    commas."""
    for part in filter(None, (condition or "").split(",")):
        bound = re.fullmatch(r"(<|>=)3\.(\d+)", part)
        if bound is None and part not in settings:
            return False
        if bound and (version < (3, int(bound[2]))) != (bound[1] == "<"):
            return False
    return True


def comments(path):
    """Yields (line, text, whether the line has nothing else) of each comment."""
    if path.suffix == ".py":
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT:
                    alone = token.line[: token.start[1]].strip() == ""
                    yield token.start[0], token.string.lstrip("# "), alone
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        before, slashes, text = line.partition("//")
        if slashes:
            yield number, text.strip(), before.strip() == ""


class Expectations:
    """What files of the folder state, for a version of Python (a pair such as (3, 11)) and for the
    settings of a run (words).
    """

    def __init__(self, files, version=(3, 99), settings=()):
        self.version, self.settings = version, settings
        self.sites, self.marks, self.files = {}, {}, set()
        for path in files:
            self._read(pathlib.Path(path))
        for site in self.sites.values():
            self.frames(site)  # adds the files that only their text names

    def _read(self, path):
        self.files.add(path.name)
        last, unfinished = 0, None
        for number, text, alone in comments(path):
            goes_on = unfinished and alone and number == last + 1
            if goes_on and (text.startswith("<") or unfinished.text == ""):
                unfinished.text = f"{unfinished.text} {text}".strip()
                last = number
                continue
            stated = SITE.search(text)
            for name, condition in MARK.findall(text[: stated.start()] if stated else text):
                if self._holds(condition):
                    assert name not in self.marks, f"{path.name}:{number}: @{name} is defined twice"
                    self.marks[name] = (path.name, number)
            if stated:
                name = stated[1]
                unfinished, last = Site(name, path.name, number, stated[3]), number
                if not self._holds(stated[2]):
                    continue
                assert name not in self.sites, f"{path.name}:{number}: site {name} is defined twice"
                self.sites[name] = unfinished

    def frames(self, site):
        """Returns the frames of a site, innermost first."""
        frames = []
        text = re.sub(r"< main$", "< " + MAIN[site.suffix], site.text)
        for item in re.split(r"\s+<\s+", text):
            condition = CONDITION.match(item)
            if condition:
                if not self._holds(condition[2]):
                    continue
                item = condition[1]
            frames.append(self._frame(item.strip(), site))
        return frames

    def _holds(self, condition):
        return holds(condition, self.version, self.settings)

    def _frame(self, item, site):
        if item in (f.function for f in (LIBRARY, CUT, ANYTHING, NO_PYTHON)):
            return Frame(item)
        native = item.startswith("native ") or site.suffix == ".cc"
        function, _, place = item.removeprefix("native ").partition("@")
        if place == "?":
            return Frame(function, site.file, ANY_LINE, native)
        if native and not place and site.suffix == ".py":
            return Frame(function, native=True)
        file, colon, line = place.rpartition(":")
        if colon:
            self.files.add(file)
            return Frame(function, file, int(line), native)
        if not place:
            return Frame(function, site.file, site.line, native)
        if place in self.marks:
            return Frame(function, *self.marks[place], native)
        assert place in self.sites, f"{site.where}: nothing has the mark @{place}"
        return Frame(function, self.sites[place].file, self.sites[place].line, native)
