#!/usr/bin/env python3
"""Builds the site of the documentation and checks it: no link leads nowhere, nothing is loaded from another machine, every
page is in the navigation, and the generated pages have every option and every key. Then breaks a small site in several
ways, each of which must be an error.

Usage: site_check.py --build BUILD
"""

import argparse
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "gpumemtrace")
HANG_S = 600


class Page(html.parser.HTMLParser):
    """What a page of the site links to, loads and contains."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded, self.text = {""}, [], [], ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" or "src" in values:
            self.loaded.append(values.get("src") or values.get("href"))
        if tag == "section":
            self.text += f"\n#{values.get('id')}\n"

    def handle_data(self, data):
        self.text += data


def build_site(build, folder, root=ROOT):
    return subprocess.run([root / "scripts/site", "--to", folder], env={**os.environ, "GMT_BUILD": str(build)}, timeout=HANG_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def is_remote(address):
    return bool(re.match(r"(https?:)?//", address))


def links_lead_somewhere(site, pages):
    count = 0
    for path, page in pages.items():
        for address in page.links + page.loaded:
            if is_remote(address) or address.startswith("data:"):
                continue
            name, _, anchor = urllib.parse.unquote(address).partition("#")
            name = name.partition("?")[0]
            target = (path.parent / name).resolve() if name else path
            assert target.is_file() and site in target.parents, f"{path}: {address} does not exist"
            assert target not in pages or anchor in pages[target].ids, f"{path}: {address} has no such anchor"
            count += 1
    assert count > 5_000, count


def nothing_is_loaded_from_elsewhere(site, pages):
    for path, page in pages.items():
        remote = list(filter(is_remote, page.loaded))
        assert not remote, (path, remote)
    styles = list(site.rglob("*.css"))
    assert styles
    for path in styles:
        remote = re.findall(r"""(?:url\(|@import )\s*["']?(?:https?:)?//[^)]*""", path.read_text(encoding="utf-8"))
        assert not remote, (path, remote)


def navigation_has_every_page(site, pages):
    wanted = {f"docs/{path.stem}.html" for path in (ROOT / "docs").glob("*.md")}
    missing = wanted - {link.partition("#")[0] for link in pages[site / "README.html"].links}
    assert len(wanted) > 40 and not missing, missing
    assert (site / "index.html").read_bytes() == (site / "README.html").read_bytes()


def options_are_those_of_the_help(site, pages, build):
    program = build / "bin/gpumemtrace"
    run = lambda *words: subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, check=True, timeout=HANG_S).stdout
    verbs = [line.split("\t")[0] for line in run("completion", "--words", "--", "").splitlines()[1:]]
    assert {"run", "report", "man"} <= set(verbs), verbs
    sections = dict(re.findall(r"^#([\w-]+)\n(.*?)(?=^#[\w-]+$|\Z)", pages[site / "docs/options.html"].text, re.M | re.S))
    common = sections["options-of-every-command"]
    for verb in verbs:
        options = re.findall(r"^  (?:-\w,)?(--[\w-]+)", run(verb, "--help"), re.MULTILINE)
        missing = [option for option in options if not re.search(rf"{option}(?![\w-])", sections[verb] + common)]
        assert options and not missing, (verb, missing)


def keys(schema):
    for name, value in schema.items() if isinstance(schema, dict) else ():
        if name in ("properties", "$defs"):
            yield from value
            for inner in value.values():
                yield from keys(inner)
        elif name in ("items", "additionalProperties"):
            yield from keys(value)


def schemas_have_every_key(site, pages):
    schemas = list((ROOT / "docs/schemas").glob("*.schema.json"))
    assert len(schemas) > 20, schemas
    for path in schemas:
        schema = json.loads(path.read_text(encoding="utf-8"))
        page = pages[site / "docs/schemas" / path.name.replace(".schema.json", ".html")]
        words = set(re.findall(r"[\w-]+", page.text))
        missing = {key for key in keys(schema) if key not in words}
        assert schema["title"] in page.text and not missing, (path, missing)


def mistakes_are_errors(build, folder):
    root, site = folder / "tree", folder / "kept"
    for name in ("CMakeLists.txt", "scripts/site", "scripts/common.sh", "docs/site/conf.py", "docs/site/generated.py",
                 "docs/site/site.css"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "README.md").write_text("# Start\n\n[a](docs/missing.md), [b](docs/leaks.md#missing), [c](#missing), [d](docs/leaks.md#it-leaks),"
                                    " [e](docs/missing), ![f](docs/missing.png)\n")
    (root / "docs/leaks.md").write_text("# Leaks\n\n## It leaks\n")
    (root / "docs/outside.md").write_text("# Outside\n")
    site.mkdir()
    (site / "searchindex.js").write_text("the previous site")
    done = build_site(build, site, root)
    assert done.returncode == 1 and "scripts/site: the site was not built" in done.stdout, done
    for mistake in ("target not found: 'docs/missing.md'", "local id not found in doc 'docs/leaks': 'missing'",
                    "'myst' cross-reference target not found: 'missing'", "target not found: 'docs/missing'",
                    "image file not readable: docs/missing.png", "outside.md: WARNING: document isn't included in any toctree"):
        assert mistake in done.stdout, (mistake, done.stdout)
    assert "it-leaks" not in done.stdout and "leaks.md: WARNING" not in done.stdout, done.stdout
    assert [path.name for path in folder.iterdir() if path.name.startswith("site.")] == []
    assert (site / "searchindex.js").read_text() == "the previous site"
    (folder / "other").mkdir()
    (folder / "other/file").touch()
    done = build_site(build, folder / "other")
    assert done.returncode == 1 and "contains other files" in done.stdout and (folder / "other/file").exists(), done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    if not (CACHE / "site").exists():
        print("skipped: Sphinx is not installed (scripts/setup --test)")
        return 77
    with tempfile.TemporaryDirectory(prefix="gmt-site-") as name:
        folder = pathlib.Path(name).resolve()
        mistakes_are_errors(build, folder)
        site = folder / "built"
        done = build_site(build, site)
        assert done.returncode == 0, done.stdout
        pages = {path: Page(path) for path in site.rglob("*.html")}
        links_lead_somewhere(site, pages)
        nothing_is_loaded_from_elsewhere(site, pages)
        navigation_has_every_page(site, pages)
        options_are_those_of_the_help(site, pages, build)
        schemas_have_every_key(site, pages)
    print(f"{len(pages)} pages are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
