"""Trains a small model with JAX and prints the counters of JAX's allocator at several moments.

Usage: jax_train.py [--steps N]

Two dense layers, gradients and Adam in one jitted step; then a step with twice the batch, for which
the pool may have to grow, and the release of all arrays. Prints one JSON line:

    {"version", "loss", "moments": [{"name", "index", "stats": Device.memory_stats() or null}]}

Before each moment, a mark of that name and index is recorded, if a recording exists. JAX's work on
other threads has completed by then.
"""

import argparse
import ctypes
import gc
import json

import jax
import jax.numpy as jnp

WIDTH, HIDDEN, OUT, BATCH = 1024, 4096, 256, 2048


def find_mark():
    try:
        mark = ctypes.CDLL(None).gpumemtrace_mark
    except AttributeError:
        return lambda name, index: None
    mark.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    mark.restype = None
    return mark


class Moments:
    def __init__(self):
        self.mark, self.device, self.results = find_mark(), jax.devices()[0], []

    def add(self, name, *arrays):
        jax.block_until_ready(arrays)
        gc.collect()
        index = len(self.results)
        self.mark(name.encode(), index)
        self.results.append({"name": name, "index": index, "stats": self.device.memory_stats()})


def loss(parameters, x):
    hidden = jnp.tanh(x @ parameters["in"])
    return jnp.mean((hidden @ parameters["out"]) ** 2)


@jax.jit
def step(parameters, first, second, x):
    value, gradients = jax.value_and_grad(loss)(parameters, x)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    parameters = jax.tree.map(
        lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), parameters, first, second
    )
    return value, parameters, first, second


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3)
    steps = parser.parse_args().steps
    moments = Moments()
    moments.add("device opened")

    keys = jax.random.split(jax.random.key(0))
    parameters = {
        "in": jax.random.normal(keys[0], (WIDTH, HIDDEN)),
        "out": jax.random.normal(keys[1], (HIDDEN, OUT)),
    }
    first = jax.tree.map(jnp.zeros_like, parameters)
    second = jax.tree.map(jnp.zeros_like, parameters)
    x = jnp.ones((BATCH, WIDTH))
    moments.add("model made", parameters, first, second, x)

    for number in range(steps):
        value, parameters, first, second = step(parameters, first, second, x)
        moments.add(f"step {number}", parameters)
    wide = jnp.ones((2 * BATCH, WIDTH))
    value, parameters, first, second = step(parameters, first, second, wide)
    moments.add("twice the batch", parameters)

    result = float(value)
    del parameters, first, second, x, wide, value, keys
    moments.add("arrays freed")
    print(json.dumps({"version": jax.__version__, "loss": result, "moments": moments.results}))


if __name__ == "__main__":
    main()
