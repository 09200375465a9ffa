#!/usr/bin/env python3
"""One rank of a distributed job, or the whole job: uses the GPU a little and communicates with the
other ranks.

Exercises: launchers that set the rank in the environment (torchrun and those that use its names);
programs that start their own workers (torch.multiprocessing.spawn), with and without setting the
variables in them; data loaders, whose worker processes use no GPU.

Usage: ranks.py [--spawn N [--silent]] [--workers N]
  --spawn N    starts N ranks itself; without it, the process is a rank of torchrun
  --silent     passes each rank its number as an argument and sets no variable
  --workers N  processes of a data loader in each rank
Each rank prints one line of JSON: its rank, pid and device.
"""

import argparse
import json
import os

import torch
import torch.distributed
import torch.multiprocessing
import torch.utils.data


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((64,), float(index))


def work(rank, world_size, local_rank, workers, store):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world_size, init_method=store)
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    model = torch.nn.Linear(64, 64, device=device)
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=workers, pin_memory=workers > 0)
    for batch in loader:
        model(batch.to(device)).sum().backward()
    total = torch.ones(1)
    torch.distributed.all_reduce(total)
    assert total.item() == world_size, total
    line = json.dumps({"rank": rank, "pid": os.getpid(), "device": str(device)})
    # The ranks share the pipe, and print() may write the line end separately.
    os.write(1, f"{line}\n".encode())
    torch.distributed.destroy_process_group()


def spawned(rank, arguments, store):
    if not arguments.silent:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(arguments.spawn))
    work(rank, arguments.spawn, rank, arguments.workers, store)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spawn", type=int, default=0)
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--store", default="env://", help="init method of the process group")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.spawn:
        torch.multiprocessing.spawn(spawned, (arguments, arguments.store), arguments.spawn)
    else:
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"]),
             arguments.workers, arguments.store)


if __name__ == "__main__":
    main()
