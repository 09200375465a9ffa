"""Makes arrays with JAX and saves JAX's device memory profile.

Usage: jax_profile.py PROFILE

Prints one JSON line: {"bytes_in_use", "held": {function: [sizes of its arrays]}}. Records a mark
"profile" at the moment of the profile, if a recording exists.
"""

import argparse
import gc
import json

import jax
import jax.numpy as jnp
from jax_train import find_mark

# All sizes are multiples of the allocator's granularity.
WIDTH = 1024


def weights():
    return [jnp.ones((WIDTH, WIDTH)) for _ in range(3)]


def inputs():
    return [jnp.zeros((64, WIDTH)), jnp.zeros((32, WIDTH), jnp.bfloat16)]


@jax.jit
def layer(x, w):
    return jnp.tanh(x @ w)


def outputs(x, w):
    return [layer(x, w)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile")
    path = parser.parse_args().profile
    held = {"weights": weights(), "inputs": inputs()}
    held["outputs"] = outputs(held["inputs"][0], held["weights"][0])
    freed = weights()
    jax.block_until_ready((held, freed))
    del freed
    gc.collect()
    find_mark()(b"profile", 0)
    jax.profiler.save_device_memory_profile(path)
    stats = jax.devices()[0].memory_stats()
    sizes = {name: sorted(array.nbytes for array in arrays) for name, arrays in held.items()}
    print(json.dumps({"bytes_in_use": stats["bytes_in_use"], "held": sizes}))


if __name__ == "__main__":
    main()
