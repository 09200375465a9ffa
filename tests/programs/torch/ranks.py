"""Runs the ranks of a program: started by torchrun, or spawned by the program itself."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _enter(rank, world, port, body):
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(world),
        LOCAL_WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    _join(body)


def _join(body):
    """Runs `body(rank)` as one rank of a group in which each rank has its own device."""
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    body(rank)
    dist.destroy_process_group()


def run(world, body):
    """Runs `body(rank)` in `world` processes, or as one of them if torchrun started this process."""
    if "RANK" in os.environ:
        _join(body)
    else:
        mp.spawn(_enter, args=(world, _free_port(), body), nprocs=world)
