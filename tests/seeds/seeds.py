"""The seeds of random checks: those that a check lists, and random ones on request.

    for seed in seeds(1, 16285795):
        chance = random.Random(seed)

GMT_TEST_SEED=N runs seed N only. GMT_TEST_SECONDS=S runs new ones for S seconds after the listed ones.
Each seed is printed before it runs. The commit that fixes a bug that a new seed found adds it to the
list. For C++: tests/seeds/seeds.h.
"""

import os
import random
import time


def seeds(*listed):
    only = os.environ.get("GMT_TEST_SEED")
    for seed in [int(only)] if only else listed:
        yield announced(seed)
    end = time.monotonic() + float(os.environ.get("GMT_TEST_SECONDS", 0))
    while not only and time.monotonic() < end:
        yield announced(random.SystemRandom().randrange(1 << 32))


def announced(seed):
    print(f"seed {seed}: repeat with GMT_TEST_SEED={seed}", flush=True)
    return seed
