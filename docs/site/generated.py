"""Pages of the site that are made from the code when it is built: the options of all commands, and the JSON schemas.

Both are returned as Markdown for MyST.
"""

import json
import re
import subprocess

import bs4


def output_of(*command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def manual_page(program, *verb):
    """Returns the sections of a manual page, {title: HTML}."""
    page = output_of("mandoc", "-T", "html", "-O", "fragment", text=output_of(program, "man", *verb))
    sections = {}
    for section in bs4.BeautifulSoup(page, "html.parser").find_all("section", class_="Sh"):
        title = " ".join(section.find(["h1", "h2"]).extract().get_text().split())
        # The page has the sections of all verbs, whose ids are the same.
        for element in section.find_all(id=True):
            del element["id"]
        for link in section.find_all("a", class_="permalink"):
            link.unwrap()
        sections[title] = section.decode_contents().strip()
    return sections


def html(text):
    return f"\n````{{raw}} html\n{text}\n````\n"


def options(program):
    """Returns a section for each command, from its manual page, and one for the options that all have."""
    verbs = [line.split("\t")[0] for line in output_of(program, "completion", "--words", "--", "").splitlines()[1:]]
    pages = {verb: manual_page(program, verb) for verb in verbs}
    whole = manual_page(program)
    text = "".join(f"\n## {title.capitalize()}\n{html(whole[title])}" for title in ("EXIT STATUS", "ENVIRONMENT", "FILES"))
    text += f"\n## Options of every command\n{html(pages[verbs[0]]['COMMON OPTIONS'])}"
    for verb, sections in pages.items():
        text += f"\n## {verb}\n" + html("".join(
            content if title in ("SYNOPSIS", "DESCRIPTION") else f'<p class="rubric">{title.capitalize()}</p>{content}'
            for title, content in sections.items() if title not in ("NAME", "COMMON OPTIONS", "SEE ALSO")))
    return text


def escaped(text):
    """Returns text as Markdown; what is between backticks is code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\*_{}\[\]<>|&~])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def others_of(schema):
    """Returns the schema of values whose keys are data; {} if there are none."""
    return schema.get("additionalProperties") or {}


def type_of(schema):
    """Returns the type of a value as Markdown: "integer or null", "array of [frame](#frame)".

    An object of integers has keys that are data, such as the names of categories."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name})"
    if "anyOf" in schema:
        return " or ".join(map(type_of, schema["anyOf"]))
    types = schema.get("type", "any")
    types = [types] if isinstance(types, str) else types
    inner = schema.get("items") or others_of(schema)
    return " or ".join(f"{name} of {type_of(inner)}" if inner and name in ("array", "object") else name for name in types)


def rows(schema, path=""):
    """Yields (key, schema of its value, whether it is always there) for all keys below a value."""
    for name, value in schema.get("properties", {}).items():
        yield path + name, value, name in schema.get("required", ())
        yield from rows(value, f"{path}{name}.")
    if "items" in schema:
        yield from rows(schema["items"], f"{path[:-1]}[].")
    if others_of(schema):
        yield from rows(others_of(schema), f"{path}*.")


def table(schema):
    text = "\n| key | type | meaning |\n|---|---|---|\n"
    for key, value, always in rows(schema):
        meaning = escaped(value.get("description", ""))
        choices = value.get("enum", [value["const"]] if "const" in value else [])
        if choices:
            meaning += " Values: " + ", ".join(f"`{json.dumps(choice)}`" for choice in choices) + "."
        text += f"| `{key}` | {type_of(value)}{'' if always else ', optional'} | {meaning} |\n"
    return text


def schema(source):
    """Returns the page of a JSON schema: a table of the keys, and one for each of its definitions."""
    whole = json.loads(source)
    text = f"# {escaped(whole['title'])}\n\n{escaped(whole['description'])}\n{table(whole)}"
    for name, definition in whole.get("$defs", {}).items():
        text += f"\n## {name}\n\n{escaped(definition.get('description', ''))}\n{table(definition)}"
    return text
