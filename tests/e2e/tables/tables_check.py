#!/usr/bin/env python3
"""Checks exported tables, and the Python package that reads them, with pyarrow, DuckDB, Spark, pandas and polars. The rows
must be those of `gpumemtrace query`.

Usage: tables_check.py --build DIR [CASE...]
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "gpumemtrace"
ENVIRONMENT, SPARK = CACHE / "tables", CACHE / "spark"
SPARK_QUERIES = pathlib.Path(__file__).resolve().with_name("spark_queries.py")
GOLDEN = ROOT / "tests/golden/v1.gmt"
TABLES = ("memory", "events", "stacks", "frames", "steps", "phases", "categories", "failures", "waits", "roles", "marks",
          "ranges", "samples", "recordings")
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/e2e/memory_viz")]


class Checked:
    """Recordings, and the program with which they are read."""

    def __init__(self, build, folder):
        self.program, self.folder = str(build / "bin/gpumemtrace"), folder
        self.logs = []
        for name, scenario in write_events.SCENARIOS.items():
            self.logs.append(folder / f"{name}.jsonl")
            scenario().write(self.logs[-1])
        self.logs.append(GOLDEN)

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=False)

    def query(self, files, sql):
        """Returns the names of the columns, and the rows."""
        done = self.run("query", *files, sql, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        return answer["columns"], answer["rows"]

    def read(self, files, **options):
        return gpumemtrace.read(files, program=self.program, **options)

    def to_parquet(self, files, folder, **options):
        return gpumemtrace.to_parquet(files, folder, program=self.program, **options)

    def ranks(self, count):
        """Writes the recordings of a training job of several hosts, in which a block of each rank outlives its step, and some
        memory belongs to no framework. Returns their paths."""
        paths = []
        for rank in range(count):
            log = write_events.SCENARIOS["training"]()
            log.lines[0].update(rank=rank, world_size=count, hostname=f"node {rank // 4}", run_id="job/7", pid=100 + rank)
            first_step = next(i for i, line in enumerate(log.lines) if line["kind"] == "mark")
            log.lines.insert(first_step + 2, {**log.lines[first_step + 1], "address": write_events.BASE + (1 << 35),
                                              "size": (rank + 1) << 20})
            log.event("alloc", memory="device", address=write_events.BASE + (1 << 36), size=(rank + 1) << 21, api="cudaMalloc")
            paths.append(self.folder / f"rank{rank}" / "run.jsonl")
            paths[-1].parent.mkdir(exist_ok=True)
            log.write(paths[-1])
        return paths


def rows_of(table):
    """Returns the names of the columns of an Arrow table, and the rows."""
    columns = [column.to_pylist() for column in table.columns]
    return table.column_names, [list(row) for row in zip(*columns)]


def check_types(name, table):
    for field, column in zip(table.schema, table.columns):
        if pyarrow.types.is_dictionary(field.type):
            assert field.type.value_type == pyarrow.string(), (name, field)
            for chunk in column.chunks:
                chunk.validate(full=True)
                assert len(set(chunk.dictionary.to_pylist())) == len(chunk.dictionary), (name, field)
        else:
            assert field.type == pyarrow.int64(), (name, field)


def every_table_has_the_rows_of_query(checked):
    filled = set()
    for log in checked.logs:
        tables = checked.read(log)
        assert tables.names == [*TABLES, "blocks", "segments"], tables.names
        for name in tables.names:
            more = ", stack_text(stack) AS stack_text" if name in ("memory", "blocks", "segments") else ""
            found, wanted = rows_of(tables.table(name)), checked.query([log], f"SELECT *{more} FROM {name}")
            assert found[0] == wanted[0] and found[1] == wanted[1], (log, name, found[0], wanted[0])
            check_types(name, tables.table(name))
            filled |= {name} if found[1] else set()
        assert tables.memory is tables.table("memory") and "blocks" in dir(tables)
    assert filled >= set(TABLES) - {"roles", "ranges", "samples"}, filled


def rows_of_several_recordings_have_their_file(checked):
    files = checked.logs[:3]
    tables = checked.read(files)
    for name in TABLES:
        more = ", stack_text(file, stack) AS stack_text" if name == "memory" else ""
        assert rows_of(tables.table(name)) == tuple(checked.query(files, f"SELECT *{more} FROM {name}")), name
    assert set(tables.memory.column("file").to_pylist()) == set(map(str, files))


def hostile_texts_are_kept(checked):
    names = ["line\nbreak\ttab", 'quote"\' comma,', "\u202eright to left", "größe 重 \U0001f600", "\x1b[31mred\x1b[0m",
             "\x00null", "x" * 100_000]
    log = write_events.Log()
    for number, name in enumerate(names):
        log.note("mark", name=name, index=number)
        log.stack(50 + number, name)
        log.event("alloc", memory="device", address=write_events.BASE + (number << 20), size=4096, stack=50 + number,
                  api="cudaMalloc")
    path = checked.folder / "hostile.jsonl"
    log.write(path)
    tables = checked.read(path)
    for name in TABLES:
        more = ", stack_text(stack) AS stack_text" if name == "memory" else ""
        assert rows_of(tables.table(name)) == tuple(checked.query([path], f"SELECT *{more} FROM {name}")), name
    marks = tables.marks.column("name").to_pylist()
    assert len(marks) == len(names) and names[1] in marks and names[3] in marks, marks


def tables_can_be_selected(checked):
    log = checked.logs[1]
    assert checked.read(log, tables="events").names == ["events"]
    tables = checked.read(log, tables=["stacks", "memory"])
    assert tables.names == ["stacks", "memory", "blocks", "segments"], tables.names
    try:
        tables.table("events")
        raise AssertionError("no error")
    except KeyError as error:
        assert "'events'" in str(error), error
    try:
        tables.events
        raise AssertionError("no error")
    except AttributeError:
        pass
    out = checked.folder / "memory.arrow"
    assert checked.run("export", "--format", "arrow", log, "-o", out).returncode == 0
    with pyarrow.memory_map(str(out)) as file:
        table = pyarrow.ipc.open_stream(file).read_all()
    assert table.schema.metadata == {b"table": b"memory"}, table.schema
    assert rows_of(table) == rows_of(tables.memory)


def failed_export_leaves_no_file(checked):
    out = checked.folder / "none.arrow"
    broken = checked.folder / "broken.gmt"
    broken.write_bytes(b"GMTRACE1" + bytes(1000))
    for words, code, message in (
            ([checked.logs[0], "--table", "nothing"], 2, "--table nothing: expected all, or one of memory, events"),
            ([checked.logs[0], "--table", "all", "--table", "memory"], 2, "--table all includes all tables"),
            ([checked.logs[0], "--device", "0"], 2, "--format arrow does not take --device"),
            ([broken], 1, "broken.gmt"), ([checked.folder / "missing.gmt"], 1, "missing.gmt")):
        done = checked.run("export", "--format", "arrow", *words, "-o", out)
        assert done.returncode == code and message in done.stderr, (words, done)
        assert not list(checked.folder.glob("none.arrow*")), words
    done = checked.run("export", "--format", "arrow", checked.logs[0], "-o", "/dev/full")
    assert done.returncode == 1 and "/dev/full: cannot be written" in done.stderr, done


def error_of(kind, call, *words, **options):
    """Returns the message of the exception that a call raises."""
    try:
        call(*words, **options)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call.__name__} raised no {kind.__name__}")


def errors_are_those_of_the_program(checked):
    text = checked.folder / "text.gmt"
    text.write_text("no recording", encoding="utf-8")
    assert "missing.gmt" in error_of(RuntimeError, checked.read, checked.folder / "missing.gmt")
    assert "text.gmt" in error_of(RuntimeError, checked.read, [checked.logs[0], text])
    assert "expected all, or one of memory" in error_of(RuntimeError, checked.read, checked.logs[0], tables="nothing")
    assert "no recording is given" in error_of(ValueError, checked.read, [])
    killed = checked.folder / "killed"
    killed.write_text(f"#!/bin/sh\n'{checked.program}' \"$@\" | head -c 5000\nkill -9 $$\n", encoding="utf-8")
    killed.chmod(0o755)
    assert "ended by signal 9" in error_of(RuntimeError, gpumemtrace.read, GOLDEN, program=str(killed))
    with mock.patch.dict(os.environ, PATH=str(checked.folder / "none")):
        assert "was not found" in error_of(FileNotFoundError, gpumemtrace.read, GOLDEN)


def damaged_recordings_are_read_with_a_warning(checked):
    cut = checked.folder / "cut.gmt"
    cut.write_bytes(GOLDEN.read_bytes()[:-200])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tables = checked.read(cut)
    assert seen and "cut.gmt" in str(seen[0].message), [str(w.message) for w in seen]
    assert seen[0].filename == __file__, seen[0].filename
    assert tables.recordings.column("complete").to_pylist() == [0]


def ranks_are_partitions(checked):
    paths = checked.ranks(5)
    folder = checked.folder / "dataset"
    written = checked.to_parquet(paths, folder)
    assert len(written) == len(set(written)) == len(TABLES) * len(paths) and all(map(os.path.isfile, written)), written
    found = sorted(str(path.parent.relative_to(folder / "memory")) for path in (folder / "memory").rglob("*.parquet"))
    assert found == [f"run=job%2F7/host=node%20{rank // 4}/rank={rank}" for rank in range(5)], found
    both = checked.read(paths)
    for name in TABLES:
        table = pyarrow.dataset.dataset(folder / name, partitioning="hive").to_table()
        rows = [dict(zip(table.column_names, row)) for row in rows_of(table)[1]]
        ranks = {row["file"]: (row["run"], row["host"], row["rank"]) for row in rows}
        of_paths = {str(path): ("job/7", f"node {rank // 4}", rank) for rank, path in enumerate(paths)}
        assert ranks == (of_paths if ranks else {}) and (ranks or name in ("failures", "waits", "roles", "samples")), (name, ranks)
        columns, wanted = rows_of(both.table(name))
        found = collections.Counter(tuple(row[column] for column in columns) for row in rows)
        assert found == collections.Counter(map(tuple, wanted)), name
    again = checked.to_parquet(paths[0], folder, tables="memory")
    assert sorted(again) == sorted(path for path in written if path in again) and len(again) == 2, again
    unknown = checked.to_parquet(checked.logs[0], folder, run="named", tables="memory")
    assert any("memory/run=named/host=__HIVE_DEFAULT_PARTITION__/rank=__HIVE_DEFAULT_PARTITION__/raw_cuda-" in path
               for path in unknown), unknown


def failed_parquet_leaves_no_file(checked):
    folder = checked.folder / "failed"
    broken = checked.folder / "broken.gmt"
    broken.write_bytes(b"GMTRACE1" + bytes(1000))
    assert "broken.gmt" in error_of(RuntimeError, checked.to_parquet, broken, folder)
    assert not list(folder.iterdir()), list(folder.iterdir())
    assert "broken.gmt" in error_of(RuntimeError, checked.to_parquet, [checked.logs[0], broken], folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(TABLES)


def missing_packages_are_named(checked):
    empty = checked.folder / "without"
    empty.mkdir()
    for package in ("pyarrow", "pandas", "polars"):
        (empty / f"{package}.py").write_text("raise ImportError('not installed')\n", encoding="utf-8")
    program = "import sys, gpumemtrace; gpumemtrace.step(); gpumemtrace.read(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", program, GOLDEN], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": f"{empty}:{ROOT / 'python'}", "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 1 and "ImportError: gpumemtrace needs pyarrow to read recordings. Install it with: " \
        "pip install pyarrow" in done.stderr, done


def pandas_and_polars_have_the_same_rows(checked):
    for log in checked.logs:
        tables = checked.read(log)
        pandas_frames, polars_frames = tables.to_pandas(), tables.to_polars()
        assert list(pandas_frames) == list(polars_frames) == list(TABLES)
        for name in TABLES:
            columns, rows = rows_of(tables.table(name))
            frame = pandas_frames[name]
            assert list(frame.columns) == columns and len(frame) == len(rows), name
            for column, values in zip(columns, zip(*rows)):
                found = [None if value != value else value for value in frame[column].tolist()]
                assert found == list(values), (log, name, column)
            assert polars_frames[name].columns == columns, name
            assert [list(row) for row in polars_frames[name].iter_rows()] == rows, (log, name)


def queries_of_the_documentation():
    """Returns them with plain sizes, and without LIMIT: which of several equal rows it keeps is not determined."""
    page = (ROOT / "docs/sql.md").read_text(encoding="utf-8")
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    return [re.sub(r"\bLIMIT \d+", "", query.replace("human(", "(")) for query in queries]


def duckdb_over(folder):
    import duckdb
    connection = duckdb.connect()
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM "
                           f"read_parquet('{folder}/{name}/**/*.parquet', hive_partitioning = true)")
    connection.execute("CREATE VIEW blocks AS SELECT * FROM memory WHERE kind = 'block'")
    connection.execute("CREATE VIEW segments AS SELECT * FROM memory WHERE holds_blocks = 1")
    connection.execute("CREATE MACRO stack_text(wanted) AS (SELECT text FROM stacks WHERE id = wanted)")
    return connection


def duckdb_answers_the_queries_of_the_documentation(checked):
    queries = queries_of_the_documentation()
    assert len(queries) >= 10, queries
    answered = collections.Counter()
    ranks = checked.ranks(8)
    for number, files in enumerate([*([log] for log in checked.logs), ranks[:1], ranks]):
        folder = checked.folder / f"duckdb{number}"
        checked.to_parquet(files, folder)
        connection = duckdb_over(folder)
        for sql in queries:
            if len(files) > 1 and "stack_text" in sql:
                continue  # ids of stacks are those of one recording
            found = [tuple(row) for row in connection.execute(sql).fetchall()]
            wanted = [tuple(row) for row in checked.query(files, sql)[1]]
            assert collections.Counter(found) == collections.Counter(wanted), (files, sql, found, wanted)
            answered[sql] += len(found)
    assert all(answered[sql] for sql in queries), answered
    by_rank = next(sql for sql in queries if "recordings" in sql)
    rows = connection.execute(by_rank).fetchall()
    assert sorted(row[0] for row in rows) == list(range(8)) and len({row[2] for row in rows}) == 8, rows


def spark_answers_the_queries_of_the_documentation(checked):
    """The queries over the Parquet of eight ranks: about one of them, and about all if the ids of stacks are not used."""
    python = SPARK / "bin/python"
    if not python.exists() or shutil.which("java") is None:
        return "skipped: no Spark, or no Java: run scripts/setup --all"
    ranks = checked.ranks(8)
    folder = checked.folder / "spark"
    checked.to_parquet(ranks, folder)
    queries = queries_of_the_documentation()
    of_all = [sql for sql in queries if "stack_text" not in sql]
    assert len(queries) >= 10 and len(of_all) >= 5, queries
    answered = collections.Counter()
    for rank, files, asked in ((3, ranks[3:4], queries), (None, ranks, of_all)):
        request = {"folder": str(folder), "tables": [name for name in TABLES if any((folder / name).rglob("*.parquet"))],
                   "rank": rank, "queries": asked}
        done = subprocess.run([python, SPARK_QUERIES], input=json.dumps(request), capture_output=True, text=True, check=False,
                              env={**os.environ, "PYSPARK_PYTHON": str(python)})
        assert done.returncode == 0, done.stderr[-3000:]
        for sql, found in zip(asked, json.loads(done.stdout), strict=True):
            wanted = checked.query(files, sql)[1]
            assert collections.Counter(map(tuple, found)) == collections.Counter(map(tuple, wanted)), (rank, sql, found, wanted)
            answered[sql] += len(found)
    assert all(answered[sql] for sql in queries), answered
    return None


CASES = [every_table_has_the_rows_of_query, rows_of_several_recordings_have_their_file, hostile_texts_are_kept,
         tables_can_be_selected, failed_export_leaves_no_file, errors_are_those_of_the_program,
         damaged_recordings_are_read_with_a_warning, ranks_are_partitions, failed_parquet_leaves_no_file,
         missing_packages_are_named, pandas_and_polars_have_the_same_rows,
         duckdb_answers_the_queries_of_the_documentation, spark_answers_the_queries_of_the_documentation]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    failed = 0
    warnings.simplefilter("ignore")  # the recordings lack something
    with tempfile.TemporaryDirectory(prefix="gmt-tables.") as folder:
        checked = Checked(arguments.build.resolve(), pathlib.Path(folder))
        for case in CASES:
            if arguments.cases and case.__name__ not in arguments.cases:
                continue
            name = case.__name__.replace("_", " ")
            try:
                print(f"ok   {name}: {case(checked) or ''}".rstrip(": "))
            except Exception:  # pylint: disable=broad-exception-caught
                failed += 1
                print(f"FAIL {name}")
                traceback.print_exc()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if pathlib.Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
        if not (ENVIRONMENT / "bin/python").exists():
            print("skipped: pyarrow is not installed: run scripts/setup --test")
            sys.exit(77)
        os.execv(ENVIRONMENT / "bin/python", [str(ENVIRONMENT / "bin/python"), "-B", *sys.argv])
    import gpumemtrace
    import pyarrow
    import pyarrow.dataset
    import write_events
    main()
