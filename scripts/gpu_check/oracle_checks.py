"""Compares with PyTorch's own allocator, with real kernels: its blocks, segments and counters at every moment, and order and
stacks of all events, using the comparison of tests/e2e/torch."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import sys

from .rig import PROGRAMS, Failed

# (scenario, title). The scenarios of a group share the device at the same time.
TOGETHER = (
    ("gpt_foreach", "GPT-like steps"),
    ("gpt_expandable", "GPT-like steps, expandable segments"),
    ("gpt_bf16", "GPT-like steps, bf16, fused optimizer"),
    ("convnet", "ResNet-like steps"),
    ("streams", "side streams"),
    ("graphs", "CUDA graphs and memory pools"),
    ("compiled", "torch.compile"),
    ("streams_expandable", "side streams, expandable segments"),
    ("compiled_graphs", "torch.compile, reduce-overhead"),
    ("recurrent", "recurrent networks"),
    ("threads", "threads"),
    ("empty_cache", "emptying the cache"),
)
OOM = (
    ("oom_recover", "out of memory, recovered"),
    ("oom_recover_expandable", "out of memory, expandable segments"),
)
QUICK = ("streams",)
COUNTED = "moments", "events", "blocks", "segments", "order", "stacks", "exported"
MIN_SECONDS = 5  # minimum of seconds left to start a scenario
FREE_FOR_OOM = 5 << 30  # a context uses a part of it


def _environment(rig, scenario):
    """Returns the environment that the scenario needs, without settings of the simulated device on a real one."""
    environment = {k: v for k, v in scenario.environment.items() if rig.simulated or not k.startswith("SIMCUDA_")}
    if scenario.compiles:
        caches = rig.folder / "compiled"
        environment.update(TRITON_CACHE_DIR=str(caches / "triton"), TORCHINDUCTOR_CACHE_DIR=str(caches / "inductor"))
        if rig.simulated:
            environment["TRITON_LIBCUDA_PATH"] = str(rig.simulated / "simcuda")
    return environment


def _scenario(name):
    folder = str(PROGRAMS / "torch")
    if folder not in sys.path:
        sys.path.append(folder)
    from scenarios import SCENARIOS

    return next(s for s in SCENARIOS if s.name == name)


def _run(rig, name):
    """Returns {"row"}, {"differs"}, {"missing"} or {"no_time"}."""
    scenario = _scenario(name)
    if rig.left() < MIN_SECONDS:
        return {"no_time": "used up by earlier scenarios"}
    if scenario.missing():
        return {"missing": scenario.missing()}
    folder = rig.folder / name
    folder.mkdir(mode=0o700)
    given = {"name": name, "program": rig.program, "python": rig.python, "folder": str(folder),
             "device": rig.on_device([]), "environment": _environment(rig, scenario)}
    script = pathlib.Path(__file__).with_name("oracle_scene.py")
    done = rig.run([sys.executable, "-B", script, json.dumps(given)], seconds=150, fails=True)
    if done.timed_out and rig.left() <= 0:
        return {"no_time": f"stopped after {done.seconds:.0f} s"}
    if done.code != 0 or not done.stdout.strip():
        return {"differs": str(Failed(done))}
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    if "row" in answer:  # keep the files of failed scenarios
        shutil.rmtree(folder, ignore_errors=True)
    return answer


def _add_result(table, name, what, answer):
    check = f"{what} ({name})"
    if "missing" in answer:
        table.absent(check, answer["missing"])
    elif "no_time" in answer:
        table.no_time(check, answer["no_time"])
    elif "row" in answer:
        row = answer["row"]
        table.keep(name, row)
        seen = ", ".join(f"{row[k]} {k}" for k in COUNTED)
        table.expect(check, f"agree: {seen}", "agree with PyTorch", ok=row["moments"] and row["blocks"])
    else:
        table.fail(check, answer["differs"], "agree with PyTorch")


def _run_all(rig, table, scenarios):
    workers = 1 if rig.simulated else max(1, min(4, (os.cpu_count() or 1) // 3))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = [(name, what, pool.submit(_run, rig, name)) for name, what in scenarios]
        for name, what, future in futures:
            _add_result(table, name, what, future.result())


def scenarios(rig, table):
    chosen = [(n, w) for n, w in TOGETHER if not rig.quick or n in QUICK]
    _run_all(rig, table, chosen)


@contextlib.contextmanager
def _little_memory(rig, table):
    """Runs on nearly full memory: another process holds most of a real device; the simulated one is made small."""
    if rig.simulated:
        yield True
        return
    process = rig.start([rig.python, "-c", HOLD, str(FREE_FOR_OOM)])
    try:
        said = process.stdout.readline()
        if not said.startswith("held"):
            table.absent("out of memory", f"the rest of the device could not be allocated: {said}")
            yield False
            return
        table.note("held by another process", said.split(None, 1)[1].strip())
        yield True
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except Exception:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()


HOLD = r"""
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
size = free.value - int(sys.argv[1])
assert size > 0 and driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
print("held", size, "of", total.value, "B", flush=True)
sys.stdin.read()
"""


def out_of_memory(rig, table):
    chosen = OOM[:1] if rig.quick else OOM
    with _little_memory(rig, table) as little:
        if little:
            for name, what in chosen:
                answer = _run(rig, name)
                _add_result(table, name, what, answer)
                if "row" in answer:  # check that it did run out of memory
                    table.expect(f"{name}: errors and retries of the allocator", answer["ran_out"], "some of both",
                                 ok=min(answer["ran_out"]) > 0)


def async_backend(rig, table):
    """backend:cudaMallocAsync has no blocks: the live memory of the driver's pool equals PyTorch's counters."""
    backend = dict.fromkeys(("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"), "backend:cudaMallocAsync")
    recording = rig.record("async", [rig.python, "-c", ASYNC], seconds=90, **backend)
    said = recording.last_line()
    live, peak, at_mark, addresses = 0, 0, None, {}
    for event in recording.events():
        if event["kind"] == "alloc" and event.get("memory") == "pool":
            addresses[event["address"]] = event["size"]
            live += event["size"]
            peak = max(peak, live)
        elif event["kind"] == "free" and event["address"] in addresses:
            live -= addresses.pop(event["address"])
        elif event["kind"] == "mark" and event.get("name") == "counted":
            at_mark = live
    table.expect("backend", said["backend"], "cudaMallocAsync")
    table.expect_bytes("cudaMallocAsync: live, compared with memory_allocated()", at_mark, said["allocated"])
    table.expect_bytes("cudaMallocAsync: peak, compared with max_memory_allocated()", peak, said["peak"])


ASYNC = r"""
import ctypes, gc, json, torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.randn(256, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
gc.collect()
gc.disable()
mark = ctypes.CDLL(None).gpumemtrace_mark
mark.argtypes, mark.restype = [ctypes.c_char_p, ctypes.c_uint64], None
mark(b"counted", 0)
print(json.dumps({"backend": torch.cuda.get_allocator_backend(), "allocated": torch.cuda.memory_allocated(),
                  "peak": torch.cuda.max_memory_allocated()}))
"""
