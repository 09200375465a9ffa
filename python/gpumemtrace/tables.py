"""Reads recordings as Arrow tables, and writes them as Parquet. read() and to_parquet() of the package
are these.

The program gpumemtrace streams the tables through a pipe. pyarrow refers to what it received and
does not copy it again.
"""

import contextlib
import hashlib
import os
import subprocess
import tempfile
import urllib.parse
import warnings
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from .__main__ import find_program

Files = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]

# Selections of the table `memory`, as the views of SQL.
_VIEWS = {"blocks": ("kind", "block"), "segments": ("holds_blocks", 1)}
# Columns of the table `recordings` that are directories of a partitioned dataset.
_PARTITIONS = ("run", "host", "rank")
# The value of an unknown partition, as Hive, DuckDB, Spark and pyarrow write it.
_UNKNOWN = "__HIVE_DEFAULT_PARTITION__"


def _require(package: str, purpose: str) -> Any:
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        top = package.split(".")[0]
        raise ImportError(f"gpumemtrace needs {top} {purpose}. Install it with: pip install {top}") from error


def _list(names: Files) -> List[str]:
    return [os.fspath(name) for name in ([names] if isinstance(names, (str, os.PathLike)) else names)]


class Tables:
    """The tables of recordings, as pyarrow.Table: tables.memory, tables.events, ..., also as
    tables.table(name). docs/sql.md of gpumemtrace describes them.

    Texts are dictionary-encoded. In a table of several recordings, the column `file` has the name of
    each.
    """

    def __init__(self, tables: Dict[str, Any]) -> None:
        self._tables = tables

    @property
    def names(self) -> List[str]:
        """The tables that were read, and the views of them."""
        return [*self._tables, *(_VIEWS if "memory" in self._tables else ())]

    def table(self, name: str) -> Any:
        """Returns a table. Raises KeyError if it does not exist or was not read."""
        if name in self._tables:
            return self._tables[name]
        if name in self.names:
            import pyarrow.compute

            column, value = _VIEWS[name]
            return self._tables["memory"].filter(pyarrow.compute.field(column) == value)
        raise KeyError(f"no table {name!r} was read; there are {', '.join(self.names)}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except KeyError as error:
            raise AttributeError(*error.args) from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self.names]

    def to_pandas(self) -> Dict[str, Any]:
        """Returns a pandas.DataFrame for each table, by name. Texts are categorical."""
        _require("pandas", "to return data frames of pandas")
        return {name: self.table(name).to_pandas() for name in self._tables}

    def to_polars(self) -> Dict[str, Any]:
        """Returns a polars.DataFrame for each table, by name. Texts are categorical."""
        polars = _require("polars", "to return data frames of polars")
        return {name: polars.from_arrow(self.table(name)) for name in self._tables}


@contextlib.contextmanager
def _streams(files: List[str], tables: List[str], program: Optional[str]) -> Iterator[Iterator[Tuple[str, Any]]]:
    """Provides the name and the reader of each table, which must be read in this order. Raises
    RuntimeError at the end if the program failed; the tables are incomplete then."""
    pyarrow = _require("pyarrow", "to read recordings")
    program = program or find_program()
    if program is None:
        raise FileNotFoundError("the program gpumemtrace was not found. Install its wheel, or add the directory of the "
                                "program to PATH")
    if not files:
        raise ValueError("no recording is given")
    options = [word for table in tables for word in ("--table", table)]
    command = [program, "export", *files, "--format", "arrow", *options, "-o", "/dev/stdout"]
    with tempfile.TemporaryFile() as messages, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages) as process:
        assert process.stdout is not None
        source = pyarrow.PythonFile(process.stdout, mode="r")

        def readers() -> Iterator[Tuple[str, Any]]:
            while True:
                try:
                    reader = pyarrow.ipc.open_stream(source)
                except pyarrow.ArrowInvalid:  # there is no further stream
                    return
                yield reader.schema.metadata[b"table"].decode(), reader

        error: Optional[BaseException] = None
        try:
            yield readers()
        except BaseException as raised:
            if process.stdout.read(1):  # the program still writes: it is not the reason
                process.kill()
                raise
            error = raised
        process.stdout.close()
        code = process.wait()
        messages.seek(0)
        text = messages.read().decode("utf-8", "replace").strip()
        if code > 0:
            raise RuntimeError(text) from error
        if code < 0:
            raise RuntimeError(f"the program gpumemtrace was ended by signal {-code}") from error
        if error is not None:
            raise error
        for line in text.splitlines():
            warnings.warn(line, stacklevel=4)


def read(files: Files, tables: Union[str, Sequence[str]] = "all", program: Optional[str] = None) -> Tables:
    """Reads one or several recordings, PyTorch snapshots or event logs.

        tables = gpumemtrace.read("run.gmt")
        tables.memory.group_by("category").aggregate([("bytes", "sum")])

    `tables` selects tables by name, which saves time and memory. `program` is the path of the program
    gpumemtrace, if it is neither in this package nor in $PATH.

    Raises RuntimeError with the program's message if it cannot read a recording, and ImportError if
    pyarrow is missing. What a recording lacks is a warning.
    """
    with _streams(_list(files), _list(tables), program) as streams:
        return Tables({name: reader.read_all() for name, reader in streams})


def _write(table: str, reader: Any, folder: str) -> Any:
    """Writes a table to FOLDER/TABLE. Returns its first batch, or None if it has no rows."""
    pyarrow, parquet = _require("pyarrow", "to write Parquet"), _require("pyarrow.parquet", "to write Parquet")
    # The directories of a partition have these.
    dropped = _PARTITIONS if table == "recordings" else ()
    columns = [name for name in reader.schema.names if name not in dropped]
    schema = pyarrow.schema([reader.schema.field(name) for name in columns])
    first = None
    with parquet.ParquetWriter(os.path.join(folder, table), schema, compression="zstd") as writer:
        for batch in reader:
            first = first or batch
            writer.write_batch(batch.select(columns))
    return first


def _partition(values: Dict[str, Any]) -> str:
    """Returns the directories of a recording."""
    folders = []
    for key in _PARTITIONS:
        text = _UNKNOWN if values[key] is None else urllib.parse.quote(str(values[key]), safe="")
        folders.append(f"{key}={text}")
    return os.path.join(*folders)


def to_parquet(files: Files, folder: "Union[str, os.PathLike[str]]", run: Optional[str] = None,
               tables: Union[str, Sequence[str]] = "all", program: Optional[str] = None) -> List[str]:
    """Adds recordings to datasets of Parquet files. Each table is a dataset, in which each recording has
    a file:

        FOLDER/memory/run=RUN/host=HOST/rank=RANK/NAME.parquet

    `run` names the run; without it, that is the id of the `gpumemtrace run` that started the process.
    What is unknown is __HIVE_DEFAULT_PARTITION__, which readers return as null. A file that was added
    before is replaced. Recordings are read one after the other, in batches of rows.

    `tables` and `program` are those of read(); the table `recordings` is always written. Returns the
    paths of the written files. Raises as read() does; then nothing of the recording that failed is
    written.
    """
    written: List[str] = []
    selected = _list(tables)
    if selected != ["all"]:
        selected = ["recordings", *(table for table in selected if table != "recordings")]
    os.makedirs(folder, exist_ok=True)
    for file in _list(files):
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=folder) as unfinished:
            with _streams([file], selected, program) as streams:
                firsts = {table: _write(table, reader, unfinished) for table, reader in streams}
            values = {key: firsts["recordings"].column(key)[0].as_py() for key in _PARTITIONS}
            if run is not None:
                values["run"] = run
            # Recordings with the same name are in different directories.
            digest = hashlib.sha256(os.path.abspath(file).encode("utf-8", "surrogateescape")).hexdigest()[:8]
            name = f"{os.path.splitext(os.path.basename(file))[0]}-{digest}.parquet"
            for table in firsts:
                place = os.path.join(folder, table, _partition(values))
                os.makedirs(place, exist_ok=True)
                written.append(os.path.join(place, name))
                os.replace(os.path.join(unfinished, table), written[-1])
    return written
