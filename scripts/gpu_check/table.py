"""Rows of results: check, seen, expected, ok."""

import dataclasses

YES, NO, NOTED, ABSENT, NO_TIME = "yes", "NO", "-", "not here", "no time"
LONGEST = 200  # characters of a column; the JSON has the complete text


@dataclasses.dataclass
class Row:
    group: str
    check: str
    seen: str
    expected: str
    ok: str
    seconds: float = 0.0


def size(bytes_):
    if bytes_ is None:
        return "unknown"
    if abs(bytes_) >= 1 << 20:
        return f"{bytes_ / (1 << 20):,.1f} MiB"
    return f"{bytes_} B"


def short(text):
    text = " ".join(str(text).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


class Table:
    """The results of all checks. Rows are printed immediately."""

    def __init__(self, echo=print):
        self.rows = []
        self.details = {}  # check -> additional data for the JSON
        self.group = self.name = ""
        self._echo = echo

    def begin(self, group, name):
        self.group, self.name = group, name

    def expect(self, check, seen, expected, ok=None):
        """`ok`: the result, if it is not just whether both are equal."""
        holds = seen == expected if ok is None else bool(ok)
        self._add(check, seen, expected, YES if holds else NO)
        return holds

    def expect_bytes(self, check, seen, expected, within=0):
        near = f" within {size(within)}" if within else ""
        holds = seen is not None and expected is not None and abs(seen - expected) <= within
        self._add(check, size(seen), size(expected) + near, YES if holds else NO)
        return holds

    def note(self, check, seen):
        """Adds information without an expected result."""
        self._add(check, seen, "-", NOTED)

    def fail(self, check, seen, expected="no failure"):
        self._add(check, seen, expected, NO)

    def absent(self, check, why):
        self._add(check, why, "-", ABSENT)

    def no_time(self, check, why):
        self._add(check, why, "-", NO_TIME)

    def keep(self, name, value):
        self.details.setdefault(self.name, {})[name] = value

    def count(self, ok):
        return sum(row.ok == ok for row in self.rows)

    def failed(self, since=0):
        return any(row.ok == NO for row in self.rows[since:])

    def summary(self):
        return (
            f"{self.count(YES)} passed, {self.count(NO)} failed, {self.count(ABSENT)} not here, "
            f"{self.count(NO_TIME)} without time"
        )

    def _add(self, check, seen, expected, ok):
        row = Row(self.group, check, str(seen), str(expected), ok)
        self.rows.append(row)
        self._echo(f"{ok:<8} {short(check):<58} {short(seen)}"
                   + ("" if ok in (NOTED, ABSENT, NO_TIME) or seen == expected
                      else f"   [expected {short(expected)}]"))
