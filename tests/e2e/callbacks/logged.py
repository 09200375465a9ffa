"""Prints as JSON what the files of TensorBoard and of Weights & Biases below the working directory contain: of each, the
values by name.
"""

import json
import pathlib
import struct

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.proto import wandb_internal_pb2


def in_tensorboard():
    """Returns {name: values} of all event files."""
    found = {}
    for folder in {path.parent for path in pathlib.Path(".").rglob("events.out.tfevents.*")}:
        events = EventAccumulator(str(folder)).Reload()
        for name in events.Tags()["scalars"]:
            found.setdefault(name, []).extend(scalar.value for scalar in events.Scalars(name))
    return found


def records_of(data):
    """Yields the records of a file of Weights & Biases: LevelDB's log, after a header of 7 bytes."""
    at, record = 7, b""
    while at + 7 <= len(data):
        rest = -at % 32768  # of the block; no record begins in its last bytes
        if 0 < rest < 7:
            at += rest
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or its last part
            yield record
            record = b""


def in_wandb():
    """Returns {name: values} of all files of runs that were not uploaded."""
    found = {}
    for path in pathlib.Path("wandb").glob("offline-run-*/*.wandb"):
        for data in records_of(path.read_bytes()):
            record = wandb_internal_pb2.Record.FromString(data)
            for item in record.history.item:
                name = item.key or "/".join(item.nested_key)
                found.setdefault(name, []).append(json.loads(item.value_json))
    return found


if __name__ == "__main__":
    print(json.dumps({"tensorboard": in_tensorboard(), "wandb": in_wandb()}))
