"""Compares sums of the recording with memory usage reported by the driver and NVML, in pages of 2 MiB."""

import json

PAGE = 2 << 20
LINEAR = ("cudaMalloc", "cudaFree")


def rounded(size):
    """Rounds up to whole pages; freed sizes, which are negative, are rounded in the same way."""
    pages = -(-abs(size) // PAGE)
    return pages * PAGE if size >= 0 else -pages * PAGE


def _deltas(steps, key):
    """Returns (what, requested, decrease of free device memory) for each step with data before and after it."""
    found = []
    for before, after in zip(steps, steps[1:]):
        if key == "free" and before["free"] and after["free"]:
            found.append((after["what"], after["asked"], before["free"] - after["free"]))
        elif key != "free" and before[key] >= 0 and after[key] >= 0:
            found.append((after["what"], after["asked"], after[key] - before[key]))
    return found


def _compare_steps(table, source, deltas):
    """Compares each large allocation separately, and small ones together, because they share pages."""
    linear = [d for d in deltas if d[0] in LINEAR and abs(d[1]) > PAGE // 2]
    exact = [d for d in linear if d[2] == rounded(d[1])]
    wrong = [f"{what} of {asked}: {delta}" for what, asked, delta in linear if delta != rounded(asked)]
    table.expect(f"{source}: cudaMalloc uses whole pages of 2 MiB", "; ".join(wrong[:6]) or f"{len(exact)} steps",
                 f"{len(linear)} steps, each rounded up", ok=linear and not wrong)
    for what in ("small cudaMalloc", "small cudaFree", "cuMemCreate", "cuMemMap", "cuMemRelease"):
        for _, asked, delta in [d for d in deltas if d[0] == what]:
            table.expect_bytes(f"{source}: {what} of {asked} B", delta, rounded(asked), within=PAGE)
    for what, asked, delta in deltas:
        if "Async" in what or what in ("cudaHostAlloc", "cudaMallocManaged", "cudaFree and cudaFreeHost"):
            table.note(f"{source}: {what} of {asked} B uses of the device", delta)


def known_sizes(rig, table):
    program = rig.built("memory_steps")
    if program is None:
        table.absent("memory step by step", "memory_steps is not built")
        return
    # A context uses memory on a real device; configure the simulated one accordingly.
    shared = {"SIMCUDA_CONTEXT": "300M", "SIMCUDA_SHARED": str(rig.folder / "shared")}
    plain = json.loads(rig.plain([program], **shared).stdout)
    # Without CUPTI, which takes device memory for itself (cupti_checks.own_memory).
    recording = rig.record("steps", [program], "--cupti", "off", **shared)
    said = recording.last_line()
    steps = said["steps"]
    table.keep("steps", steps)
    table.keep("steps, not recorded", plain["steps"])

    _compare_steps(table, "cuMemGetInfo", _deltas(steps, "free"))
    nvml = _deltas(steps, "nvml_used")
    if len(nvml) > 3:
        _compare_steps(table, "NVML", [d for d in nvml if d[0] != "context"])
        context = [delta for what, _, delta in nvml if what == "context"]
        table.note("memory of a context by NVML", f"{context[0] if context else 'unknown'} B")
    else:
        table.absent("NVML", "it is not available or does not report usage")
    mine = [s["process"] for s in steps if s["process"] >= 0]
    table.note("NVML reports the memory of this process", f"at most {max(mine)} B" if mine else "no")

    peak = max(s["total"] - s["free"] for s in [{**s, "total": said["total"]} for s in steps] if s["free"])
    base = next(said["total"] - s["free"] for s in steps if s["what"] == "context")
    ours = 0
    at = {}
    for event in recording.of_kind("alloc", "free", "create", "release"):
        if event.get("memory") not in ("device", "vmm"):
            continue
        sign = 1 if event["kind"] in ("alloc", "create") else -1
        at[event["kind"]] = at.get(event["kind"], 0) + event["size"]
        ours += sign * event["size"]
    asked = sum(s["asked"] for s in steps if s["what"] in ("cudaMalloc", "small cudaMalloc", "cuMemCreate"))
    table.expect("recorded: bytes of device memory", at.get("alloc", 0) + at.get("create", 0), asked)
    table.expect("recorded: live at the end", ours, 0)
    table.expect_bytes("free device memory at the end, compared with the start", steps[-1]["free"],
                       next(s["free"] for s in steps if s["what"] == "context"), within=16 * PAGE)
    same = [(a["what"], a["asked"]) for a in plain["steps"]] == [(b["what"], b["asked"]) for b in steps]
    differ = sum(a[2] != b[2] for a, b in zip(_deltas(plain["steps"], "free"), _deltas(steps, "free")))
    table.expect("memory usage with and without recording", f"{differ} steps differ", "0 steps differ",
                 ok=same and differ == 0)
    table.note("maximum used beyond the context", f"{peak - base} B")


def remainder(rig, table):
    """Device memory in use that is not in any event: contexts, code, and earlier allocations of libraries."""
    recording = rig.record("train", [rig.python, "-c", REMAINDER], seconds=100, SIMCUDA_CONTEXT="300M")
    said = recording.last_line()
    mark = next(i for i, e in enumerate(recording.events()) if e["kind"] == "mark" and e.get("name") == "ledger")
    live = {}
    for event in recording.events()[:mark]:
        if event.get("heap") != "driver" or event.get("memory") not in ("device", "vmm", "pool"):
            continue
        if event["kind"] in ("alloc", "create"):
            live[event["memory"], event["address"]] = event["size"]
        elif event["kind"] in ("free", "release"):
            live.pop((event["memory"], event["address"]), None)
    ours = sum(rounded(size) if size > PAGE // 2 else size for size in live.values())
    used = said["total"] - said["free"]
    context = said["total"] - said["free_at_start"]
    table.note("device memory in use", f"{used} B, of which {ours} B are recorded ({len(live)} allocations)")
    table.note("context and other processes", f"{context} B")
    rest = used - ours - context
    table.note("remainder: kernel code, rounding, unknown", f"{rest} B, {100 * rest / used:.1f} % of use")
    table.expect("recorded memory and context do not exceed usage", ours + context, f"at most {used + PAGE}",
                 ok=ours + context <= used + PAGE)
    table.expect("PyTorch's reserved memory is recorded", said["reserved"], f"at most {ours}",
                 ok=0 < said["reserved"] <= ours)


REMAINDER = r"""
import ctypes, json, torch
free_at_start, total = torch.cuda.mem_get_info()
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
for _ in range(3):
    model(torch.randn(512, 2048, device="cuda")).square().mean().backward()
torch.cuda.synchronize()
mark = ctypes.CDLL(None).gpumemtrace_mark
mark.argtypes, mark.restype = [ctypes.c_char_p, ctypes.c_uint64], None
mark(b"ledger", 0)
free, total = torch.cuda.mem_get_info()
print(json.dumps({"free_at_start": free_at_start, "free": free, "total": total,
                  "reserved": torch.cuda.memory_reserved()}))
"""
