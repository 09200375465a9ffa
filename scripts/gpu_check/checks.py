"""The list of checks, their order and time limits.

The most important checks come first, so that an interrupted run has their results. Seconds are limits, not estimates;
their sum exceeds the budget, because few checks use all of their time.
"""

import dataclasses
from typing import Callable

from . import (
    cupti_checks,
    machine_checks,
    neighbour_checks,
    oracle_checks,
    overhead_checks,
    program_checks,
    role_checks,
    route_checks,
    total_checks,
    training_checks,
)

DRIVER, PROGRAMS, TOTALS = "Machine", "Programs", "Sums"
TORCH, NEIGHBOURS, ROUTES, COST = "PyTorch", "Libraries and frameworks", "Ways in", "Cost"
CUPTI = "CUPTI"


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    title: str  # the group of its rows
    seconds: int
    function: Callable
    quick: bool = True  # included in --quick, which takes a minute in total


def all_checks(facts, pairs):
    """`facts` is filled by the first check; `pairs` is the number of training pairs to measure."""
    return (
        Check("versions", DRIVER, 90, lambda rig, table: machine_checks.versions(rig, table, facts)),
        Check("kernel", DRIVER, 10, machine_checks.kernel),
        Check("driver's pointers", DRIVER, 20, machine_checks.driver_pointers),
        Check("devices", DRIVER, 30, machine_checks.devices),
        Check("doctor", DRIVER, 30, machine_checks.doctor, quick=False),
        Check("ways", PROGRAMS, 90, program_checks.ways),
        Check("calls", PROGRAMS, 90, program_checks.calls),
        Check("known sizes", TOTALS, 60, total_checks.known_sizes),
        Check("segments", TORCH, 90, training_checks.segments),
        Check("out of memory", TORCH, 100, oracle_checks.out_of_memory, quick=False),
        Check("scenarios", TORCH, 170, oracle_checks.scenarios),
        Check("roles", TORCH, 150, role_checks.roles),
        Check("cupti streams", CUPTI, 40, cupti_checks.streams),
        Check("cupti copies", CUPTI, 30, cupti_checks.copies),
        Check("cupti witnesses", CUPTI, 30, cupti_checks.witnesses),
        Check("torch.profiler", CUPTI, 100, cupti_checks.profiler, quick=False),
        Check("overhead", COST, 150, lambda rig, table: overhead_checks.training(rig, table, pairs), quick=False),
        Check("cost of calls", COST, 80, overhead_checks.calls),
        Check("attach", ROUTES, 60, role_checks.attach, quick=False),
        Check("ranges", NEIGHBOURS, 40, neighbour_checks.ranges),
        Check("libraries", NEIGHBOURS, 60, neighbour_checks.libraries),
        Check("compiled here", PROGRAMS, 100, program_checks.compiled, quick=False),
        Check("frameworks", NEIGHBOURS, 100, neighbour_checks.frameworks, quick=False),
        Check("remainder", TOTALS, 60, total_checks.remainder, quick=False),
        Check("cudaMallocAsync", TORCH, 40, oracle_checks.async_backend, quick=False),
        Check("injection", ROUTES, 40, route_checks.injection, quick=False),
        Check("start()", ROUTES, 40, route_checks.start, quick=False),
        Check("cupti memory", CUPTI, 40, cupti_checks.own_memory, quick=False),
        Check("threads", PROGRAMS, 60, program_checks.threads, quick=False),
        Check("preload", ROUTES, 30, route_checks.preload, quick=False),
        Check("ctypes", PROGRAMS, 30, program_checks.by_ctypes, quick=False),
        Check("expandable", TORCH, 60, training_checks.expandable, quick=False),
    )  # fmt: skip
