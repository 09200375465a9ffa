"""Settings of Sphinx for the site of the documentation, which scripts/site builds.

The source directory is the tree, so links between pages and to other files are those that work on GitHub. Pages have no
syntax of Sphinx: what only the site has is appended when they are read (`add_what_is_generated`).
"""

import os
import pathlib
import re
import sys

from sphinx import addnodes

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import generated  # noqa: E402

# The navigation. Sphinx warns about a page that is not in it, and warnings are errors.
NAVIGATION = {
    "Start": ["Overview <self>", "docs/install", "docs/routes", "docs/README"],
    "Tutorials": ["docs/tutorials"],
    "Questions": [
        "docs/categories", "docs/oom", "docs/leaks", "docs/fragmentation", "docs/ledger", "docs/diff", "docs/ranks",
        "docs/whatif", "docs/advise", "docs/estimate", "docs/streams", "docs/sql"],
    "How to": [
        "docs/viewer", "docs/top", "docs/attach", "docs/long-runs", "docs/notebook", "docs/pytest", "python/README",
        "docs/fleet", "docs/exports"],
    "Frameworks": ["docs/frameworks", "docs/pytorch", "docs/vllm", "docs/jax", "docs/llama_cpp", "docs/cupy"],
    "Reference": [
        "docs/commands", "docs/options", "docs/schemas/README", "docs/troubleshooting", "docs/format", "docs/metrics",
        "docs/control", "docs/compatibility", "CHANGELOG"],
    "Explanation": [
        "docs/comparison", "docs/security", "docs/stacks", "docs/frames", "docs/cupti", "docs/nvtx",
        "docs/devices", "docs/architecture", "docs/session", "docs/interception", "docs/unwinding"],
    "Measurements": ["docs/overhead", "docs/accuracy", "docs/reliability", "docs/gpu"],
    "Development": ["CONTRIBUTING", "tests/simcuda/README", "viewer/README"],
}

project = "gpumemtrace"
version = release = re.search(r"project\(gpumemtrace\s+VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/schemas/*", "python/README.md", "tests/simcuda/README.md", "viewer/README.md"]
exclude_patterns = [".*", "build", "**/node_modules"]
source_suffix = {".md": "markdown", ".schema.json": "markdown"}
smartquotes = False
nitpicky = True

# Like GitHub: anchors of all headings, images as HTML, and no syntax beyond GitHub's.
myst_heading_anchors = 6
myst_enable_extensions = ["html_image"]
myst_disable_syntax = ["myst_block_break", "myst_line_comment", "myst_role", "myst_target"]

html_theme = "furo"
html_title = f"{project} {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = html_show_copyright = html_show_sphinx = html_use_index = False
pygments_style, pygments_dark_style = "friendly", "monokai"


def navigation():
    return "".join("\n```{toctree}\n:hidden:\n:caption: " + "\n".join([caption, "", *pages]) + "\n```\n"
                   for caption, pages in NAVIGATION.items())


def add_what_is_generated(app, page, source):
    if page == root_doc:
        source[0] += navigation()
    elif page == "docs/options":
        source[0] += generated.options(os.environ["GMT_PROGRAM"])
    elif page == "docs/schemas/README":
        source[0] += "\n```{toctree}\n:glob:\n\n*\n```\n"
    elif page.startswith("docs/schemas/"):
        source[0] = generated.schema(source[0])


def resolve_links_to_directories(app, doctree):
    """A link to a directory leads to its README.md, as on GitHub; without one, only its text remains."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link.get("reftype") != "myst" or link.get("refdomain"):
            continue
        name, path = app.env.relfn2path(link["reftarget"])
        if os.path.isfile(f"{path}/README.md"):
            link["refdomain"], link["reftarget"], link["reftargetid"] = "doc", f"{name.rstrip('/')}/README", None
        elif os.path.isdir(path):
            link.replace_self(link.children)


def add_index(app, exception):
    """The page of README.md is also the one that a server shows for the directory."""
    if not exception:
        (app.outdir / "index.html").write_bytes((app.outdir / "README.html").read_bytes())


def setup(app):
    app.connect("source-read", add_what_is_generated)
    app.connect("doctree-read", resolve_links_to_directories)
    app.connect("build-finished", add_index)
