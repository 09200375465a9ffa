"""Measures the cost of viewing a recording in a browser: the tables of docs/viewer.md. Used by scripts/bench --viewer."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

PAGE = pathlib.Path("docs/viewer.md")
BEGIN, END = "<!-- scripts/bench --viewer writes from here -->", "<!-- the viewer's to here -->"
# Number of allocations; each consists of an allocation and a free.
SIZES = {"100 k": 100_000, "1 M": 1_000_000, "10 M": 10_000_000, "50 M": 50_000_000}
QUICK = ("100 k",)
SKIPPED = 77
COLUMNS = (
    ("first curves", "first_curves_ms", "s"),
    ("first picture", "first_picture_ms", "s"),
    ("all loaded", "ready_ms", "s"),
    ("frame, median", "frame_median_ms", "ms"),
    ("frame, p95", "frame_p95_ms", "ms"),
    ("click to stack, median", "click_median_ms", "ms"),
    ("worst", "click_worst_ms", "ms"),
    ("page", "page_bytes", "MiB"),
    ("program", "program_bytes", "MiB"),
)


def cell(value, unit):
    """Formats a figure of the browser in the table's unit; null means that it could not be measured."""
    if value is None:
        return "-"
    if unit == "s":
        return f"{value / 1000:.2f} s"
    return f"{value / 2**20:.0f} MiB" if unit == "MiB" else f"{value:.1f} ms"


def table(figures):
    heads = ["allocations", *(title for title, _, _ in COLUMNS)]
    rows = [[f["name"], *(cell(f[key], unit) for _, key, unit in COLUMNS)] for f in figures]
    lines = [heads, ["---:"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def make_recordings(build, names, folder):
    """Returns {name: path}."""
    recordings = {}
    for name in names:
        recordings[name] = folder / f"{SIZES[name]}.gmt"
        subprocess.run([build / "benchmark" / "recording_benchmark", str(2 * SIZES[name]), recordings[name]], check=True,
                       stdout=subprocess.DEVNULL)
    return recordings


def measure_memory_viz(build, recordings, folder):
    """Measures PyTorch's viewer with the same recordings (tests/e2e/memory_viz/bench.mjs): all that it can draw, and the first
    that it cannot, with the reason in `failure`. Returns None if the viewer is not available."""
    figures = []
    for name, recording in recordings.items():
        snapshot, out = folder / "snapshot.pickle", folder / "memory_viz.json"
        subprocess.run([build / "bin" / "gpumemtrace", "export", "--format", "torch", "--max-events", "0", "--force", recording,
                        "-o", snapshot], check=True, stderr=subprocess.DEVNULL)
        megabytes = snapshot.stat().st_size / 1e6
        done = subprocess.run(["node", "tests/e2e/memory_viz/bench.mjs", out, f"{name}={snapshot}"], check=False,
                              stdout=subprocess.PIPE, text=True)
        snapshot.unlink()
        if done.returncode == SKIPPED:
            print(done.stdout.strip())
            return None
        done.check_returncode()
        figures += [{**figure, "megabytes": megabytes} for figure in json.loads(out.read_text(encoding="utf-8"))]
        if figures[-1]["failure"]:
            break
    return figures


def memory_viz_table(theirs, ours):
    """Compares both viewers on the sizes that PyTorch's viewer reached."""
    lines = ["| allocations | snapshot | MemoryViz.js: first picture | frame, median | p95 | here: first picture | frame, median "
             "| p95 |",
             "|---:|---:|---:|---:|---:|---:|---:|---:|"]
    here = {figure["name"]: figure for figure in ours}
    keys = (("first_picture_ms", "s"), ("frame_median_ms", "ms"), ("frame_p95_ms", "ms"))
    for their in theirs:
        cells = ([f"none: {their['failure']}", "-", "-"] if their["failure"] else [cell(their[key], unit) for key, unit in keys])
        cells += [cell(here[their["name"]][key], unit) for key, unit in keys]
        lines.append(f"| {their['name']} | {their['megabytes']:.0f} MB | {' | '.join(cells)} |")
    return "\n".join(lines)


def measure(build, recordings, folder):
    """Returns figures by recording, from viewer/page/e2e/bench.ts."""
    out = folder / "figures.json"
    subprocess.run(["node", "e2e/run.js", "e2e/bench.ts", out, *(f"{name}={path}" for name, path in recordings.items())],
                   check=True, cwd="viewer/page",
                   env={**os.environ, "GMT_PROGRAM": str(build.resolve() / "bin" / "gpumemtrace")})
    return json.loads(out.read_text(encoding="utf-8"))


def write(text):
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main():
    build = pathlib.Path(sys.argv[1])
    if "--write" in sys.argv and not (PAGE.exists() and BEGIN in PAGE.read_text(encoding="utf-8")):
        sys.exit(f"{PAGE} has no line '{BEGIN}' after which to write")
    with tempfile.TemporaryDirectory(prefix="gmt-bench-") as folder:
        folder = pathlib.Path(folder)
        recordings = make_recordings(build, QUICK if "--quick" in sys.argv else SIZES, folder)
        ours = measure(build, recordings, folder)
        text = table(ours)
        print(text, flush=True)
        theirs = measure_memory_viz(build, recordings, folder)
        if theirs:
            beside = f"\nThe same recordings, exported, in PyTorch's viewer:\n\n{memory_viz_table(theirs, ours)}"
            print(beside)
            text += "\n" + beside
    if "--write" in sys.argv:
        write(text)


if __name__ == "__main__":
    main()
