"""docs/compatibility.md, made of the facts that scripts/torch-releases has read.

What is supported is decided here: a release has a layer when every function of that layer has the
mangled name that the preloaded library knows, is defined where it is expected, and is called by
relocations that the dynamic loader fills in, so that whoever comes first is called.
"""

# Layer -> [(function, mangled names that preload/ knows, defined in, called from)]. What we call ourselves
# needs no caller; what is defined outside of PyTorch has no library here.
C10, C10_CUDA, CPU, CUDA, PYTHON = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so",
                                    "libtorch_python.so")
LAYERS = {
    "blocks": [
        ("reportMemoryUsageToProfiler", ["_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE",
                                         "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
                                         "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"], C10, [C10_CUDA])],
    "out of memory": [
        ("reportOutOfMemoryToProfiler", ["_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE",
                                         "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"], C10, [C10_CUDA]),
        ("cudaMemGetInfo", ["cudaMemGetInfo"], None, [C10_CUDA])],
    "streams": [
        ("getCurrentCUDAStream", ["_ZN3c104cuda20getCurrentCUDAStreamEa"], C10_CUDA, []),
        ("CUDAStream::stream", ["_ZNK3c104cuda10CUDAStream6streamEv"], C10_CUDA, [])],
    "pending frees": [
        ("cudaEventRecord", ["cudaEventRecord"], None, [C10_CUDA]),
        ("cudaEventQuery", ["cudaEventQuery"], None, [C10_CUDA]),
        ("cudaEventSynchronize", ["cudaEventSynchronize"], None, [C10_CUDA])],
    "forward lines": [
        ("sequence_number::get_and_increment", ["_ZN2at15sequence_number17get_and_incrementEv"], CPU, [CPU, PYTHON]),
        ("Engine::evaluate_function", ["_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEP"
                                       "NS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE"], CPU, [CPU]),
        ("RecordFunction::currentThreadId", ["_ZN2at14RecordFunction15currentThreadIdEv"], CPU, [])],
    "phases": [
        ("Engine::execute", ["_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorE"
                             "SaIS9_EEbbbS7_"], CPU, [PYTHON]),
        ("RecordFunction::RecordFunction", ["_ZN2at14RecordFunctionC1ENS_11RecordScopeE"], CPU, [PYTHON]),
        ("RecordFunction::end", ["_ZN2at14RecordFunction3endEv"], CPU, [PYTHON])],
    "roles": [
        ("empty_cuda", ["_ZN2at6detail10empty_cudaEN3c108ArrayRefIlEENS1_10ScalarTypeESt8optionalINS1_6DeviceEES5_INS1_12Me"
                        "moryFormatEE",
                        "_ZN2at6detail10empty_cudaEN3c108ArrayRefIlEENS1_10ScalarTypeENS1_8optionalINS1_6DeviceEEENS5_INS1_12"
                        "MemoryFormatEEE"], CUDA, [CUDA]),
        ("empty_strided_cuda", ["_ZN2at6detail18empty_strided_cudaEN3c108ArrayRefIlEES3_NS1_10ScalarTypeESt8optionalINS1_6"
                                "DeviceEE",
                                "_ZN2at6detail18empty_strided_cudaEN3c108ArrayRefIlEES3_NS1_10ScalarTypeENS1_8optionalINS1_6D"
                                "eviceEEE"], CUDA, [CUDA]),
        ("TensorImpl::set_requires_grad", ["_ZN3c1010TensorImpl17set_requires_gradEb"], C10, [CPU, PYTHON]),
        ("TensorBase::set_data", ["_ZNK2at10TensorBase8set_dataERKS0_"], CPU, [PYTHON]),
        ("SavedVariable::SavedVariable", ["_ZN5torch8autograd13SavedVariableC1ERKN2at6TensorEbb"], CPU, [CPU, PYTHON]),
        ("SavedVariable::reset_data", ["_ZN5torch8autograd13SavedVariable10reset_dataEv"], CPU, [CPU]),
        ("set_gradient_edge", ["_ZN5torch8autograd4impl17set_gradient_edgeERKN2at6TensorENS0_4EdgeE"], CPU, [CPU]),
        ("AccumulateGrad::AccumulateGrad", ["_ZN5torch8autograd14AccumulateGradC1EN2at6TensorE"], CPU, [CPU]),
        ("AccumulateGrad::apply", ["_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE"], CPU, [CPU]),
        ("post_acc_grad_hooks", ["_ZN5torch8autograd4impl19post_acc_grad_hooksERKN2at6TensorE"], CPU, [CPU])],
}
# A word of a virtual table with a symbol is filled in by the loader like a call by name.
INTERPOSABLE = {"JUMP_SLOT", "GLOB_DAT"}
VIRTUAL = {"AccumulateGrad::apply"}

# Releases that tests train models with (tests/e2e/releases); all others are known from their files
# alone. Of CUDA 12 one whose expandable segments look the driver's functions up themselves.
EVERY_TIME, IN_FULL = "run: `scripts/test`", "run: `scripts/test --full`"
RUN = {"2.7.1": IN_FULL, "2.11.0": EVERY_TIME, "2.15.0": IN_FULL}

HEADER = """# Which PyTorch releases are seen

Written by `scripts/torch-releases`, which reads the wheel of each minor release (Linux x86-64, CPython 3.11, PyPI) without
running it; `scripts/test --full` checks that it is current. Of a patch release the newest is taken.

A layer is **yes** where every function that it rests on has the mangled name that the preloaded library knows, is defined
in the library that is expected to, and is called through a relocation that the dynamic loader fills in (`JUMP_SLOT`), so that
ours is called first; no library binds its own functions to itself (`DF_SYMBOLIC`). That is what can be known from files.
**run** says that tests train models with that release and compare what is recorded with what PyTorch says;
**inspected** says that they do not.
"""

NOTES = """
- *blocks*: the caching allocator's allocations and frees, with its totals. *out of memory*: the request that failed, told
  before the exception. *streams*: the stream that a block was allocated on. *pending frees*: when a block that another stream
  still uses is reused. *forward lines*: the stack of the forward pass for what backward allocates. *phases*: backward
  passes, optimizer steps, `record_function`. *roles*: what tensors are for, with their types and shapes.
- *roles* also need the offsets of two pointers, from a tensor to its memory: learnt and confirmed in the process, or that layer
  is off and says so.
- *forward lines* also need two fields of a node of the graph, whose offsets no symbol tells: they are found out in the running
  process by comparing, or that layer is off and says so.
- *expandable segments*: how the allocator gets the driver functions that they are made of.
- A release that is not in the table is treated alike: a layer whose functions are not there under a known name is off, and
  `gpumemtrace info` names the reason under its sources. Driver allocations are recorded whatever PyTorch is used, or none.
- Allocators other than the native one (`backend:cudaMallocAsync`, `PYTORCH_NO_CUDA_MEMORY_CACHING=1`, pluggable ones) report no
  blocks in any release; their allocations are those of the driver.
"""


def what_is_wrong(facts, function, known, defined_in, callers):
    """Why this function cannot be relied on in that release, or None."""
    found = {name: facts["functions"].get(function, {})[name]
             for name in facts["functions"].get(function, {}) if name in known}
    if not found:
        return f"{function} has another signature" if facts["functions"].get(function) else f"no {function}"
    name, uses = next(iter(found.items()))
    if len(found) > 1:
        return f"{function} has {len(found)} known signatures"
    if defined_in is not None and uses["defined"] != [defined_in]:
        return f"{function} is defined in {', '.join(uses['defined']) or 'no library'}"
    for caller in callers:
        by_name = INTERPOSABLE | ({"64"} if function in VIRTUAL else set())
        if not by_name & set(uses["called"].get(caller, [])):
            return f"{caller} does not call {function} by name"
        if caller in facts["symbolic"] and caller == defined_in:
            return f"{caller} prefers its own {function}"
    return None


def layer(facts, name):
    wrong = [reason for function in LAYERS[name] if (reason := what_is_wrong(facts, *function))]
    return f"no: {'; '.join(wrong)}" if wrong else "yes"


def expandable_segments(facts):
    """How libc10_cuda gets the driver's functions of virtual memory."""
    functions = facts["functions"]
    entry = [name for name, uses in functions.get("cudaGetDriverEntryPoint", {}).items() if C10_CUDA in uses["called"]]
    if entry:
        return "`" + "`, `".join(sorted(entry, reverse=True)) + "`"
    return "`dlsym`" if C10_CUDA in functions.get("dlsym", {}).get("dlsym", {}).get("called", {}) else "not known"


def releases_of(versions, facts):
    """`2.1.2 to 2.5.1, 2.8.0`, of versions in order."""
    order = [release["version"] for release in facts]
    runs = []
    for place in sorted(order.index(version) for version in versions):
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ", ".join(order[a] if a == b else f"{order[a]} to {order[b]}" for a, b in runs)


def release_table(facts):
    columns = ["torch", "CUDA", "runtime", *LAYERS, "expandable segments", ""]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for release in facts:
        cells = [release["version"], release["cuda"], f"`{release['cudart']}`", *(layer(release, name) for name in LAYERS),
                 expandable_segments(release), RUN.get(release["version"], "inspected")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def function_table(facts):
    """Every mangled name that was found, where, and in which releases."""
    groups = {}
    for release in facts:
        for function, names in release["functions"].items():
            for name, uses in names.items():
                callers = ", ".join(f"{library.removesuffix('.so')} {'/'.join(kinds)}"
                                    for library, kinds in sorted(uses["called"].items()))
                key = (function, name, ", ".join(n.removesuffix(".so") for n in uses["defined"]), callers)
                groups.setdefault(key, []).append(release["version"])
    lines = ["| function | symbol | defined in | referred to by | releases |", "|---|---|---|---|---|"]
    for (function, name, defined, callers), versions in sorted(groups.items()):
        lines.append(f"| {function} | `{name}` | {defined or '(outside)'} | {callers} | {releases_of(versions, facts)} |")
    return lines


def page(facts):
    symbolic = [f"{release['version']}: {', '.join(release['symbolic'])}" for release in facts if release["symbolic"]]
    missing = [f"{release['version']}: {', '.join(release['missing'])}" for release in facts if release["missing"]]
    lines = [HEADER, *release_table(facts), NOTES, "## Every symbol", "",
             "Libraries without `.so`. `64` is a word of data, such as a virtual table's: not a call by name.", "",
             *function_table(facts), "",
             f"Libraries that bind their own functions to themselves: {'; '.join(symbolic) or 'none'}.",
             f"Libraries that a wheel lacks: {'; '.join(missing) or 'none'}."]
    return "\n".join(lines) + "\n"
