"""make_snapshot.py OUT.pickle [--stacks all] [--entries N] [--late]: a snapshot with everything
that PyTorch's recorder records.

It has blocks shared between streams, a MemPool, training with annotations, out of memory,
empty_cache, and two devices if there are two. --entries: the size of the recorder's history, which
then begins in the middle of the program; --late: recording begins there.
"""

import argparse

import torch


def history(arguments):
    torch.cuda.memory._record_memory_history(
        stacks=arguments.stacks, context="all", max_entries=arguments.entries)


def shared_between_streams(side):
    held = torch.empty(3 << 20, device="cuda")
    kept = torch.empty(1 << 18, device="cuda")
    with torch.cuda.stream(side):
        other = torch.empty(1 << 20, device="cuda")
    held.record_stream(side)
    del held
    return kept, other


def train(steps):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    with torch.profiler.record_function("training"):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(32, 64, device="cuda")).sum().backward()
            optimizer.step()
    return model, optimizer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--stacks", default="python", choices=["python", "all"])
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--late", action="store_true")
    arguments = parser.parse_args()
    if not arguments.late:
        history(arguments)
    side = torch.cuda.Stream()
    small = [torch.empty(1000 + 700 * n, device="cuda") for n in range(5)]
    shared = [shared_between_streams(side) for _ in range(4)]
    if arguments.late:
        history(arguments)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        private = torch.empty(5 << 20, device="cuda")
    trained = train(2)
    try:
        torch.empty(1 << 40, device="cuda")
    except torch.OutOfMemoryError:
        pass
    shared.pop()
    del small[1]
    torch.cuda.empty_cache()
    many = [torch.empty(1 << 22, device="cuda") for _ in range(6)]
    large = torch.empty(60 << 20, device="cuda")
    del large, many[::2]
    torch.cuda.empty_cache()
    if torch.cuda.device_count() > 1:
        with torch.cuda.device(1):
            second = torch.empty(3 << 20, device="cuda")
            second = [second, torch.empty(1 << 10, device="cuda")]
            del second[0]
    with torch.cuda.stream(side):
        pending = torch.empty(7 << 20, device="cuda")
    pending.record_stream(torch.cuda.current_stream())
    torch.cuda._sleep(1)
    del pending
    torch.cuda.memory._dump_snapshot(arguments.out)
    del private, trained, pool


if __name__ == "__main__":
    main()
