"""What looking at a recording costs, in a browser: the tables of docs/viewer.md. Used by scripts/bench --viewer."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

PAGE = pathlib.Path("docs/viewer.md")
BEGIN, END = "<!-- scripts/bench --viewer writes from here -->", "<!-- the viewer's to here -->"
# Allocations; each is an allocation and a free.
SIZES = {"100 k": 100_000, "1 M": 1_000_000, "10 M": 10_000_000, "50 M": 50_000_000}
QUICK = ("100 k",)
COLUMNS = (
    ("first picture", "first_picture_ms", "s"),
    ("all there", "ready_ms", "s"),
    ("frame, median", "frame_median_ms", "ms"),
    ("frame, p95", "frame_p95_ms", "ms"),
    ("click to stack, median", "click_median_ms", "ms"),
    ("worst", "click_worst_ms", "ms"),
    ("page", "page_bytes", "MiB"),
    ("program", "program_bytes", "MiB"),
)


def cell(value, unit):
    """A figure of the browser's in the table's unit; null is what could not be measured."""
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


def measure(build, names, folder):
    """Figures by recording, from viewer/page/e2e/bench.ts."""
    recordings = []
    for name in names:
        path = folder / f"{SIZES[name]}.gmt"
        subprocess.run([build / "benchmark" / "recording_benchmark", str(2 * SIZES[name]), path], check=True,
                       stdout=subprocess.DEVNULL)
        recordings.append(f"{name}={path}")
    out = folder / "figures.json"
    subprocess.run(["node", "e2e/run.js", "e2e/bench.ts", out, *recordings], check=True, cwd="viewer/page",
                   env={**os.environ, "GMT_PROGRAM": str(build.resolve() / "bin" / "gpumemtrace")})
    return json.loads(out.read_text(encoding="utf-8"))


def write(text):
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main():
    build = pathlib.Path(sys.argv[1])
    if "--write" in sys.argv and not (PAGE.exists() and BEGIN in PAGE.read_text(encoding="utf-8")):
        sys.exit(f"{PAGE} has no line '{BEGIN}' to write behind")
    with tempfile.TemporaryDirectory(prefix="gmt-bench-") as folder:
        text = table(measure(build, QUICK if "--quick" in sys.argv else SIZES, pathlib.Path(folder)))
    print(text)
    if "--write" in sys.argv:
        write(text)


if __name__ == "__main__":
    main()
