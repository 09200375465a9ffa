"""Validates the --json output of the commands with docs/schemas/."""

import functools
import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "docs" / "schemas"
TIMEOUT_S = 300
LARGEST = 1 << 20  # maximum size of a recording to validate; larger ones take too long
# Command lines, to be followed by the file, that answer from a recording.
VERBS = (
    ("info",),
    ("report",),
    ("report", "--by", "category", "--at", "end"),
    ("oom",),
    ("leaks",),
    ("ledger",),
    ("frag",),
    ("whatif", "--expandable-segments"),
    ("whatif", "--batch", "2x", "--fit", "H100"),
    ("advise",),
    ("show", "device/0"),
)


def path_of(verb):
    return FOLDER / f"{'events' if verb == 'cat' else verb}.schema.json"


@functools.cache
def validator(verb):
    try:
        import jsonschema
    except ImportError:
        sys.exit("python3-jsonschema is missing: scripts/setup --test installs it")
    schema = json.loads(path_of(verb).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def output(program, words, folder=None):
    """Returns the --json output of a command; empty if it fails."""
    return subprocess.run([program, *map(str, words), "--json"], cwd=folder, capture_output=True, text=True,
                          timeout=TIMEOUT_S).stdout


def undescribed(schema, value, where):
    """Yields the keys of an output that its schema does not list. Objects whose keys are names are skipped."""
    if isinstance(value, list):
        for item in value:
            yield from undescribed(schema.get("items", {}), item, f"{where}[]")
    elif isinstance(value, dict) and "properties" in schema and "additionalProperties" not in schema:
        for key, inner in value.items():
            if key in schema["properties"]:
                yield from undescribed(schema["properties"][key], inner, f"{where}.{key}")
            else:
                yield f"{where}.{key}"


def problems(words, text):
    """Yields the violations of the schema in the output of a command."""
    command = " ".join(map(str, words))
    name = "slope" if "--slope" in words else words[0]
    for line in text.splitlines() if words[0] == "cat" else [text]:
        value = json.loads(line)
        for error in validator(name).iter_errors(value):
            yield f"{command}: {error.json_path}: {error.message[:200]}"
        if words[0] == "cat":
            continue  # an event's keys depend on its kind, and its own keys come from the log
        for key in sorted(set(undescribed(validator(name).schema, value, "$"))):
            yield f"{command}: {key} is not in {path_of(name).name}"


def problems_of_file(program, path):
    """Yields the violations for all commands on one file and on one row of its report."""
    if path.stat().st_size > LARGEST:
        return
    text = output(program, ["report", path])
    rows = json.loads(text)["rows"] if text else []
    for verb, *rest in (*VERBS, *(("show", row["id"]) for row in rows[:1])):
        words = [verb, path, *rest]
        text = output(program, words)
        if text:
            yield from problems(words, text)
