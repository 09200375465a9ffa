"""Libraries and frameworks that allocate memory outside PyTorch's allocator, and NVTX ranges."""

import json

from . import recording
from .rig import PROGRAMS

ON_GPU = PROGRAMS / "on_gpu"


def ranges(rig, table):
    run = rig.record("ranges", [rig.python, ON_GPU / "ranges.py"], seconds=60)
    said = run.last_line()
    table.note("source", run.info()["sources"].get("nvtx") or "not recorded")
    begun = [e["name"] for e in run.of_kind("range_begin")]
    marks = [e["name"] for e in run.of_kind("mark") if e.get("name") in said["marks"]]
    table.expect("ranges of NVTX, in order", begun, said["ranges"])
    table.expect("marks of NVTX", marks, said["marks"])
    table.expect("ranges that ended", len(run.of_kind("range_end")), len(said["ranges"]))


def libraries(rig, table):
    """Memory allocated by cuBLAS, cuDNN and NCCL is listed under their names."""
    run = rig.record("libraries", [rig.python, ON_GPU / "library_memory.py"], seconds=90, SIMCUDA_HANDLE="640K")
    used = run.last_line()
    report = run.report("--by", "library")
    by_library = {}
    for row in report["rows"]:
        if row.get("heap") in ("driver", "host"):
            name = row.get("library") or row.get("label") or row["id"]
            by_library[name] = by_library.get(name, 0) + row["bytes"]
    table.keep("by library", by_library)
    for library, version in used.items():
        held = sum(bytes_ for name, bytes_ in by_library.items() if name.startswith(library))
        if library == "NCCL":  # whether the others allocate memory depends on the release
            table.expect(f"memory of {library} {version}", f"{held} B", "some", ok=held > 0)
        else:
            table.note(f"memory of {library} {version}", f"{held} B")
    known = [bytes_ for name, bytes_ in by_library.items() if name != "unknown"]
    driver = sum(by_library.values())
    table.expect("driver memory with a known library", f"{sum(known)} of {driver} B", f"{driver} B",
                 ok=driver > 0 and sum(known) == driver and report["unknown_bytes"] == 0)


def frameworks(rig, table):
    """CuPy and JAX, of which only driver events are recorded."""
    for name in ("cupy", "jax"):
        program = [rig.python, ON_GPU / "other_frameworks.py", name]
        ask = f"import importlib.util as u, sys; sys.exit(u.find_spec('{name}') is None)"
        asked = rig.run([rig.python, "-c", ask], fails=True)
        if asked.code != 0:
            table.absent(name, "not installed")
            continue
        run = rig.record(name, program, seconds=100)
        said = run.last_line()
        if "missing" in said:
            table.absent(name, said["missing"])
            continue
        table.keep(name, said)
        live, peak = {}, 0
        for event in run.of_kind("alloc", "free", "map", "unmap"):
            if event.get("heap") != "driver" or event.get("memory") not in ("device", "vmm", "pool"):
                continue
            if event["kind"] in ("alloc", "map"):
                live[event["address"]] = event["size"]
                peak = max(peak, sum(live.values()))
            else:
                live.pop(event["address"], None)
        table.expect(f"{name} {said['version']}: driver memory covers its pool", f"{peak} B at the peak",
                     f"at least {said['held']} B", ok=peak > 0 and peak >= said["held"])
        lost, written = run.losses()
        table.expect(f"{name}: events lost", f"{lost} of {written}", f"0 of {written}")
