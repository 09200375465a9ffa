"""The scenarios: a program with arguments and environment, and its requirements.

tests/simcuda/torch_check.py runs them on the simulated device alone, tests/e2e/torch under the
profiler. This file does not import PyTorch.
"""

import dataclasses
import pathlib
import shutil

FOLDER = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    program: str  # in FOLDER
    arguments: tuple = ()
    environment: dict = dataclasses.field(default_factory=dict)
    ranks: int = 1  # processes that use the device; the program starts them itself
    short: bool = False  # included in every run of the tests
    compiles: bool = False  # uses the machine's C compiler
    caching: bool = True  # PyTorch's allocator keeps blocks and therefore reports them

    def command(self, python):
        return [str(python), str(FOLDER / self.program), *self.arguments]

    def environment_for(self, build):
        """Returns the variables to set, with simcuda in the build folder `build`."""
        if not self.compiles:
            return dict(self.environment)
        caches = pathlib.Path(build) / "compiled"
        return {
            **self.environment,
            "TRITON_LIBCUDA_PATH": str(pathlib.Path(build) / "simcuda"),
            "TRITON_CACHE_DIR": str(caches / "triton"),
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        }

    def missing(self):
        """Returns what this machine lacks to run the scenario, or None."""
        if self.compiles and not (shutil.which("gcc") or shutil.which("clang")):
            return "no C compiler"
        return None


def _gpt(name, *arguments, **environment):
    return Scenario(name, "gpt.py", arguments, environment, short=name == "gpt_checkpoint")


# DDP compares the ranks' parameters in device memory, which must therefore store small contents.
TWO_RANKS = {"SIMCUDA_DEVICES": "2", "SIMCUDA_DATA": "1M"}
EXPANDABLE = "expandable_segments:True"

SCENARIOS = (
    Scenario("mlp", "mlp.py", short=True),
    Scenario(
        "mlp_uncached", "mlp.py", environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, caching=False
    ),
    Scenario(
        "mlp_async",
        "mlp.py",
        environment={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
        caching=False,
    ),
    _gpt("gpt_foreach"),
    _gpt("gpt_fused", "--optimizer", "fused"),
    _gpt("gpt_bf16", "--amp", "bf16", "--optimizer", "fused"),
    _gpt("gpt_fp16", "--amp", "fp16"),
    _gpt("gpt_accumulate", "--accumulate", "3"),
    _gpt("gpt_checkpoint", "--checkpoint", "other"),
    _gpt("gpt_checkpoint_reentrant", "--checkpoint", "reentrant"),
    _gpt("gpt_varying", "--varying"),
    _gpt("gpt_expandable", "--varying", PYTORCH_CUDA_ALLOC_CONF=EXPANDABLE),
    Scenario("phases", "phases.py"),
    Scenario("phases_profiled", "phases.py", ("--profile",)),
    Scenario("streams", "streams.py", environment={"SIMCUDA_LAG": "20"}, short=True),
    Scenario(
        "streams_expandable",
        "streams.py",
        environment={"SIMCUDA_LAG": "20", "PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE},
    ),
    Scenario("graphs", "graphs.py"),
    Scenario("pluggable_pool", "pluggable.py", compiles=True),
    Scenario("pluggable", "pluggable.py", ("--whole",), compiles=True, caching=False),
    Scenario("empty_cache", "empty_cache.py"),
    Scenario(
        "empty_cache_expandable",
        "empty_cache.py",
        environment={"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE},
    ),
    Scenario(
        "empty_cache_collecting",
        "empty_cache.py",
        environment={
            "SIMCUDA_MEMORY": "1G",
            "PYTORCH_CUDA_ALLOC_CONF": "garbage_collection_threshold:0.6,max_split_size_mb:64",
        },
    ),
    Scenario("oom_recover", "oom_recover.py", environment={"SIMCUDA_MEMORY": "4G"}, short=True),
    Scenario(
        "oom_recover_expandable",
        "oom_recover.py",
        environment={"SIMCUDA_MEMORY": "4G", "PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE},
    ),
    Scenario(
        "corners",
        "corners.py",
        environment={
            "SIMCUDA_MEMORY": "4G",
            "SIMCUDA_LAG": "20",
            "PYTORCH_CUDA_ALLOC_CONF": "garbage_collection_threshold:0.6,max_split_size_mb:64",
        },
    ),
    Scenario(
        "corners_expandable",
        "corners.py",
        environment={
            "SIMCUDA_MEMORY": "4G",
            "SIMCUDA_LAG": "20",
            "PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE,
        },
    ),
    Scenario("threads", "threads.py", environment={"SIMCUDA_LAG": "5"}),
    Scenario(
        "threads_expandable",
        "threads.py",
        ("--seed", "2"),
        {"SIMCUDA_LAG": "5", "PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE},
    ),
    Scenario("backward_sites", "backward_sites.py"),
    Scenario("two_devices", "two_devices.py", environment={"SIMCUDA_DEVICES": "2"}),
    Scenario("convnet", "convnet.py", environment={"SIMCUDA_WORKSPACE": "3M"}),
    Scenario(
        "convnet_amp",
        "convnet.py",
        ("--amp", "--channels-last", "--benchmark"),
        {"SIMCUDA_WORKSPACE": "3M", "SIMCUDA_HANDLE": "64K"},
    ),
    Scenario("convnet_native", "convnet.py", ("--native",)),
    Scenario("recurrent", "recurrent.py", environment={"SIMCUDA_WORKSPACE": "3M"}),
    Scenario("loader", "loader.py"),
    Scenario("loader_spawn", "loader.py", ("--spawn",)),
    Scenario("ddp", "ddp.py", environment=TWO_RANKS, ranks=2),
    Scenario("fsdp2", "fsdp2.py", environment=TWO_RANKS, ranks=2),
    Scenario("one_of_eight", "one_of_eight.py", environment={"SIMCUDA_MEMORY": "80G"}),
    Scenario("compiled", "compiled.py", compiles=True),
    Scenario("compiled_graphs", "compiled.py", ("--mode", "reduce-overhead"), compiles=True),
)
