"""Creates docs/compatibility.md from the data read by scripts/torch-releases.

This file decides what is supported. A release has a layer if every function of that layer has a mangled name
known to the preloaded library, is defined in the expected library, and is called through relocations that the
dynamic loader resolves, so that the library loaded first is called.
"""

# Layer -> [(function, mangled names known to preload/, defined in, called from)]. A function
# called by us needs no caller; a function defined outside of PyTorch has no library here.
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
    "optimizers": [
        ("LogAPIUsage", ["_ZN3c1011LogAPIUsageERKSs",
                         "_ZN3c1011LogAPIUsageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"], C10, [PYTHON])],
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
        ("TensorImpl::mutable_grad", ["_ZN3c1010TensorImpl12mutable_gradEv"], C10, [CPU]),
        ("post_acc_grad_hooks", ["_ZN5torch8autograd4impl19post_acc_grad_hooksERKN2at6TensorE"], CPU, [CPU])],
}
# The loader resolves an entry of a virtual table with a symbol like a call by name.
INTERPOSABLE = {"JUMP_SLOT", "GLOB_DAT"}
VIRTUAL = {"AccumulateGrad::apply"}

# Releases with which tests train models (tests/e2e/releases); all others are only inspected. Of
# CUDA 12, a release whose expandable segments look up driver functions themselves.
EVERY_TIME, IN_FULL = "run: `scripts/test`", "run: `scripts/test --full`"
RUN = {"2.7.1": IN_FULL, "2.11.0": EVERY_TIME, "2.15.0": IN_FULL}

HEADER = """# Which PyTorch releases are supported

Written by `scripts/torch-releases`, which reads the wheel of each minor release (Linux x86-64, CPython 3.11, PyPI) without
running it; `scripts/test --full` checks that it is current. For each minor release it takes the newest patch release.

A layer is **yes** if every function that it depends on has a mangled name known to the preloaded library, is defined in the
expected library, and is called through a relocation that the dynamic loader resolves (`JUMP_SLOT`), so that the preloaded
function is called first; no library binds its own functions to itself (`DF_SYMBOLIC`). This can be determined from the files.
**run** means that tests train models with that release and compare the recording with PyTorch's own data; **inspected** means
that they do not.
"""

NOTES = """
- *blocks*: allocations and frees of the caching allocator, with its totals. *out of memory*: the failed request, recorded
  before the exception. *streams*: the stream that a block was allocated on. *pending frees*: when a block that another stream
  still uses is reused. *forward lines*: the stack of the forward pass for allocations of the backward pass. *phases*: backward
  passes, optimizer steps, `record_function`. *optimizers*: the class and the line of the first optimizer. *roles*: what
  tensors are used for, with their types and shapes.
- *roles* also need the offsets of two pointers, from a tensor to its memory. They are determined and verified in the running
  process; if that fails, the layer is off and the reason is recorded.
- *forward lines* also need two fields of a graph node, whose offsets are not in any symbol. They are determined in the running
  process by comparison; if that fails, the layer is off and the reason is recorded.
- *expandable segments*: how the allocator obtains the driver functions for them.
- Releases that are not in the table are treated in the same way: a layer whose functions have unknown names is off, and
  `gpumemtrace info` shows the reason under its sources. Driver allocations are recorded with any PyTorch, or without it.
- Allocators other than the native one (`backend:cudaMallocAsync`, `PYTORCH_NO_CUDA_MEMORY_CACHING=1`, pluggable ones) report no
  blocks in any release; their allocations are those of the driver.
"""


def what_is_wrong(facts, function, known, defined_in, callers):
    """Returns why this function cannot be used in that release, or None."""
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
            return f"{caller} binds to its own {function}"
    return None


def layer(facts, name):
    wrong = [reason for function in LAYERS[name] if (reason := what_is_wrong(facts, *function))]
    return f"no: {'; '.join(wrong)}" if wrong else "yes"


def expandable_segments(facts):
    """Returns how libc10_cuda obtains the driver functions for virtual memory."""
    functions = facts["functions"]
    entry = [name for name, uses in functions.get("cudaGetDriverEntryPoint", {}).items() if C10_CUDA in uses["called"]]
    if entry:
        return "`" + "`, `".join(sorted(entry, reverse=True)) + "`"
    return "`dlsym`" if C10_CUDA in functions.get("dlsym", {}).get("dlsym", {}).get("called", {}) else "unknown"


def releases_of(versions, facts):
    """Returns versions as ranges, such as `2.1.2 to 2.5.1, 2.8.0`. The versions are in order."""
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
    """Lists every mangled name found, where, and in which releases."""
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
             "Libraries without `.so`. `64` is a word of data, for example in a virtual table, and not a call by name.", "",
             *function_table(facts), "",
             f"Libraries that bind their own functions to themselves: {'; '.join(symbolic) or 'none'}.",
             f"Libraries that a wheel lacks: {'; '.join(missing) or 'none'}."]
    return "\n".join(lines) + "\n"
