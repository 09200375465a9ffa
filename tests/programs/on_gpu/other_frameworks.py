"""Allocates through CuPy or JAX and prints that framework's own counters. A recording has only the
driver's events for them, no blocks.

Usage: other_frameworks.py cupy|jax
Prints one JSON line: {"version", "held": bytes that its pool has from the driver, ...}, or
{"missing": why}.
"""

import json
import os
import sys


def use_cupy():
    import cupy

    kept = [cupy.zeros(3 << 20, dtype=cupy.uint8) for _ in range(5)]
    total = sum(int(part.sum()) for part in kept)
    pool = cupy.get_default_memory_pool()
    return {"version": cupy.__version__, "held": pool.total_bytes(), "used": pool.used_bytes(), "total": total}


def use_jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    kept = [jax.numpy.ones(3 << 18, dtype="float32") * n for n in range(5)]
    total = float(sum(part.sum() for part in kept))
    stats = jax.devices("gpu")[0].memory_stats() or {}
    held = stats.get("pool_bytes") or stats.get("bytes_reserved") or 0
    return {"version": jax.__version__, "held": held, "used": stats.get("bytes_in_use"), "total": total, "stats": stats}


def main():
    try:
        result = {"cupy": use_cupy, "jax": use_jax}[sys.argv[1]]()
    except ImportError as error:
        result = {"missing": str(error)}
    except RuntimeError as error:  # JAX found no usable GPU
        result = {"missing": str(error).splitlines()[0]}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
