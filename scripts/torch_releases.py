"""The implementation of scripts/torch-releases, which documents the usage.

Data about a release comes from its wheel: one wheel per minor release, for a Python version that all of them support.
A wheel is downloaded with pip, read without being installed or run, and deleted. The data stays in the cache, so that
a later call downloads only new releases.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import elf_calls
import torch_compatibility

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "compatibility.json"
PAGE = ROOT / "docs" / "compatibility.md"
FIRST = (2, 1)
PYTHON = "3.11"
PLATFORMS = ["manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64"]
READER = 4  # increment when more is read, to invalidate the cache

LIBRARIES = ["libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", "libtorch_python.so"]
# Functions that the preloaded library depends on: our name -> prefix of the mangled names.
FUNCTIONS = {
    "reportMemoryUsageToProfiler": "_ZN3c1027reportMemoryUsageToProfilerE",
    "reportOutOfMemoryToProfiler": "_ZN3c1027reportOutOfMemoryToProfilerE",
    "getCurrentCUDAStream": "_ZN3c104cuda20getCurrentCUDAStreamE",
    "CUDAStream::stream": "_ZNK3c104cuda10CUDAStream6streamE",
    "sequence_number::get_and_increment": "_ZN2at15sequence_number17get_and_incrementE",
    "Engine::evaluate_function": "_ZN5torch8autograd6Engine17evaluate_functionE",
    "Engine::execute": "_ZN5torch8autograd6Engine7executeE",
    "RecordFunction::RecordFunction": "_ZN2at14RecordFunctionC1E",
    "RecordFunction::end": "_ZN2at14RecordFunction3endE",
    "RecordFunction::currentThreadId": "_ZN2at14RecordFunction15currentThreadIdE",
    "LogAPIUsage": "_ZN3c1011LogAPIUsageE",
    "empty_cuda": "_ZN2at6detail10empty_cudaEN3c108ArrayRefIlEE",
    "empty_strided_cuda": "_ZN2at6detail18empty_strided_cudaEN3c108ArrayRefIlEE",
    "TensorImpl::set_requires_grad": "_ZN3c1010TensorImpl17set_requires_gradE",
    "TensorImpl::mutable_grad": "_ZN3c1010TensorImpl12mutable_gradE",
    "TensorBase::set_data": "_ZNK2at10TensorBase8set_dataE",
    "SavedVariable::SavedVariable": "_ZN5torch8autograd13SavedVariableC1E",
    "SavedVariable::reset_data": "_ZN5torch8autograd13SavedVariable10reset_dataE",
    "set_gradient_edge": "_ZN5torch8autograd4impl17set_gradient_edgeE",
    "AccumulateGrad::AccumulateGrad": "_ZN5torch8autograd14AccumulateGradC1E",
    "AccumulateGrad::apply": "_ZN5torch8autograd14AccumulateGrad5applyE",
    "post_acc_grad_hooks": "_ZN5torch8autograd4impl19post_acc_grad_hooksE",
    "deleteNode": "_ZN5torch8autograd10deleteNodeE",
    "Node::release_resources": "_ZN5torch8autograd4Node17release_resourcesE",
    "cudaMalloc": "cudaMalloc",
    "cudaFree": "cudaFree",
    "cudaMemGetInfo": "cudaMemGetInfo",
    "cudaEventRecord": "cudaEventRecord",
    "cudaEventQuery": "cudaEventQuery",
    "cudaEventSynchronize": "cudaEventSynchronize",
    "cudaGetDriverEntryPoint": "cudaGetDriverEntryPoint",
    "dlsym": "dlsym",
}
WHOLE_NAMES = {name for name, prefix in FUNCTIONS.items() if name == prefix}


def minor(version):
    return tuple(int(part) for part in version.split(".")[:2])


class Registry:
    """Lists and downloads PyTorch releases with pip."""

    def __init__(self, pip):
        self._pip = [pip, "--disable-pip-version-check"]

    def _run(self, *arguments):
        done = subprocess.run([*self._pip, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"torch-releases: pip {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def newest_of_each_minor(self):
        listed = re.search(r"^Available versions: (.*)$", self._run("index", "versions", "torch"), re.M)
        if listed is None:
            sys.exit("torch-releases: pip does not list the versions of torch")
        newest = {}
        for version in listed.group(1).split(", "):
            if re.fullmatch(r"\d+\.\d+\.\d+", version) and minor(version) >= FIRST:
                patch = int(version.split(".")[2])
                if patch >= newest.get(minor(version), (-1, ""))[0]:
                    newest[minor(version)] = (patch, version)
        return [version for _, (_, version) in sorted(newest.items())]

    def fetch(self, version, folder):
        platforms = [f"--platform={platform}" for platform in PLATFORMS]
        self._run("download", "-q", "--no-deps", "--no-cache-dir", "--only-binary=:all:", f"--python-version={PYTHON}",
                  "--implementation=cp", *platforms, f"--dest={folder}", f"torch=={version}")
        wheel, = pathlib.Path(folder).glob("torch-*.whl")
        return wheel


def unpack(wheel, name, folder):
    """Extracts the file of that name from the wheel. Returns its path, or None if there is none."""
    path = pathlib.Path(folder) / pathlib.Path(name).name
    try:
        with wheel.open(name) as packed, path.open("wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)
    except KeyError:
        return None
    return path


def functions_of(library, facts):
    """Adds the functions that one library defines and calls."""
    for mangled, found in library.find(FUNCTIONS.values()).items():
        name = next(n for n, prefix in FUNCTIONS.items() if mangled.startswith(prefix))
        if name in WHOLE_NAMES and mangled not in (name, f"{name}ByVersion"):
            continue
        entry = facts["functions"].setdefault(name, {}).setdefault(mangled, {"defined": [], "called": {}})
        if found["defined"]:
            entry["defined"].append(library.soname)
        if found["called"]:
            entry["called"][library.soname] = found["called"]


def read_wheel(path, version):
    """Reads everything that the page shows about a release from its wheel."""
    facts = {"version": version, "wheel": path.name, "reader": READER, "symbolic": [], "missing": [], "functions": {}}
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory(prefix="torch-release-") as folder:
        text = wheel.read("torch/version.py").decode()
        cuda = re.search(r"^cuda.*= '([\d.]+)'", text, re.M)
        facts["cuda"] = cuda.group(1) if cuda else ""
        for name in LIBRARIES:
            file = unpack(wheel, f"torch/lib/{name}", folder)
            if file is None:
                facts["missing"].append(name)
                continue
            with elf_calls.Library(file) as library:
                functions_of(library, facts)
                if library.symbolic:
                    facts["symbolic"].append(name)
                if name == "libc10_cuda.so":
                    facts["cudart"] = next((n for n in library.needed if n.startswith("libcudart")), "")
            file.unlink()
    return facts


def facts_of(version, registry, cache):
    kept = cache / f"{version}.json"
    if kept.exists():
        facts = json.loads(kept.read_text(encoding="utf-8"))
        if facts["reader"] == READER:
            return facts
    print(f"Reading the wheel of torch {version}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix=".wheel-", dir=cache) as folder:
        facts = read_wheel(registry.fetch(version, folder), version)
    kept.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def write_data(facts):
    text = json.dumps(facts, indent=1, sort_keys=True)
    # Put each list of names on one line.
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + " ".join(found.group(1).split()) + "]", text)
    DATA.write_text(text + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="scripts/torch-releases")
    parser.add_argument("--pip", required=True)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--offline", action="store_true")
    arguments = parser.parse_args()

    known = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else []
    if arguments.offline:
        facts = known
    else:
        cache = arguments.cache / "torch-releases"
        cache.mkdir(parents=True, exist_ok=True)
        registry = Registry(arguments.pip)
        facts = [facts_of(version, registry, cache) for version in registry.newest_of_each_minor()]
    page = torch_compatibility.page(facts)
    if not arguments.check:
        write_data(facts)
        PAGE.write_text(page, encoding="utf-8")
        return
    stale = [path.relative_to(ROOT) for path, same in ((DATA, facts == known), (PAGE, PAGE.exists() and page ==
                                                       PAGE.read_text(encoding="utf-8"))) if not same]
    if stale:
        sys.exit(f"torch-releases: not current: {', '.join(map(str, stale))}. Update them with: scripts/torch-releases")


if __name__ == "__main__":
    main()
