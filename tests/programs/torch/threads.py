#!/usr/bin/env python3
"""Allocates and frees at random from several threads, each with its own stream. Some blocks are freed
by another thread, and some wait for streams.

--seed    for the random choices; the order of the threads is not reproducible
"""

import argparse
import queue
import random
import threading

import moments
import torch
from outcome import print_outcome

THREADS = 4
ROUNDS = 5
STEPS = 150


def work(number, seed, stream, others, shared):
    choice = random.Random(seed)
    own = []
    with torch.cuda.stream(stream):
        for _ in range(STEPS):
            what = choice.random()
            if what < 0.5:
                size = int(2 ** choice.uniform(5, 23))
                own.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            elif what < 0.6 and own:
                block = own.pop(choice.randrange(len(own)))
                block.record_stream(choice.choice(others))
                block.zero_()
                del block
            elif what < 0.75 and own:
                shared.put(own.pop(choice.randrange(len(own))))
            elif what < 0.9:
                try:
                    shared.get_nowait()
                except queue.Empty:
                    pass
            elif own:
                own.pop(choice.randrange(len(own)))
            if what > 0.995:
                torch.cuda.empty_cache()
    for block in own[:3]:
        shared.put(block)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    moments.begin()
    streams = [torch.cuda.Stream() for _ in range(THREADS)]
    shared = queue.Queue()
    for turn in range(ROUNDS):
        threads = [
            threading.Thread(
                target=work,
                args=(n, args.seed * 1000 + turn * THREADS + n, streams[n], streams, shared),
            )
            for n in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        moments.moment("all have come together")
        if turn % 2:
            torch.cuda.synchronize()
            torch.empty(1, device="cuda")
            moments.moment("and nothing waits")
    moments.end()
    print_outcome(shared=shared.qsize())


if __name__ == "__main__":
    main()
