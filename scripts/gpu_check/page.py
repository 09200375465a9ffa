"""Writes the results as a page of docs/ and as JSON. A page that exists keeps everything from the heading KEPT on."""

import dataclasses
import datetime
import json

from .table import short

HEAD = """# On a real GPU

Results that only a machine with a GPU can show. Created by:

    scripts/bundle /tmp/gpumemtrace
    /tmp/gpumemtrace/scripts/gpu-check --output gpu.md

"yes" and "NO": the result is, or is not, the expected one. "-": for information, without an expected result. "not here": this
machine lacks what the check needs.
"""


KEPT = "\n## Answers compared with the programs\n"


def _kept(path):
    """Returns the end of an existing page, which is written by hand."""
    text = path.read_text() if path.exists() else ""
    return text[text.index(KEPT):] if KEPT in text else ""


def _cell(text):
    return short(text).replace("|", "\\|")


def markdown(table, facts, finished):
    lines = [HEAD]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += ["", f"{table.summary()}{'' if finished else '; NOT FINISHED'}."]
    for group in dict.fromkeys(row.group for row in table.rows):
        lines += ["", f"## {group}", "", "| check | seen | expected | ok |", "|---|---|---|---|"]
        lines += [
            f"| {_cell(row.check)} | {_cell(row.seen)} | {_cell(row.expected)} | {row.ok} |"
            for row in table.rows
            if row.group == group
        ]
    return "\n".join(lines) + "\n"


def as_json(table, facts, runs, finished):
    return json.dumps(
        {
            "schema": "gpumemtrace.gpu-check/1",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "finished": finished,
            "facts": facts,
            "summary": table.summary(),
            "rows": [dataclasses.asdict(row) for row in table.rows],
            "details": table.details,
            "runs": runs,
        },
        indent=1,
        default=str,
    )


def write(place, table, facts, runs, finished):
    """Writes both files atomically, because a run may be killed at any time."""
    for path, text in (
        (place, markdown(table, facts, finished) + _kept(place)),
        (place.with_suffix(".json"), as_json(table, facts, runs, finished)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        being_written = path.with_name(path.name + ".tmp")
        being_written.write_text(text)
        being_written.replace(path)
