"""A program that uses up the reserve of thread-local memory except for LEFT times what this library
takes, and then starts recording.

Usage: crowded_thread_locals.py LIBRARY_OF_64_BYTES LIBRARY_OF_512_BYTES LEFT FOLDER
Prints "started", or the error. It first finds out, in a process of its own, how much it has to
allocate to use up the reserve.
"""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys


def fill(small, big, folder, most):
    """Opens copies of the libraries until none fits, or until `most` small ones are open. Returns
    their number."""
    counts = []
    for library, limit in ((big, 1000), (small, most)):
        count = 0
        while count < limit:
            copy = folder / f"{os.getpid()}-{len(counts)}-{count}.so"
            shutil.copy(library, copy)
            try:
                ctypes.CDLL(str(copy))
            except OSError as error:
                assert "static TLS" in str(error), error
                break
            count += 1
        counts.append(count)
    return counts[1]


def main():
    libraries = sorted(map(pathlib.Path, sys.argv[1:3]), key=lambda path: int(path.stem.split("_")[-1]))
    left, folder = int(sys.argv[3]), pathlib.Path(sys.argv[4])
    if len(sys.argv) == 5:
        import gpumemtrace  # noqa: F401  opens its dependencies in both processes

        most = subprocess.run(
            [sys.executable, *sys.argv, "probe"], capture_output=True, text=True, check=True
        ).stdout
        fill(*libraries, folder, int(most) - left)
        try:
            gpumemtrace.start()
        except OSError as error:
            print(error)
            return
        runtime, pointer = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
        assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)) == 0
        assert runtime.cudaFree(pointer) == 0
        print("started" if gpumemtrace.recording() else "not recorded")
        return
    import gpumemtrace  # noqa: F401

    print(fill(*libraries, folder, 1000))


if __name__ == "__main__":
    main()
