# SPDX-License-Identifier: Apache-2.0
"""A Numba program with a mid point as phase.h has it: arrays on both sides, compiled kernels, and Python's own state live on behind it."""

import os
import sys
import time

import numpy as np
from cuda.bindings._internal import nvjitlink

# As in numba_kernels.py: the driver links the PTX.
nvjitlink._inspect_function_pointer = lambda name: 0

from numba import cuda  # noqa: E402


@cuda.jit
def step(x, salt):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * 1664525 + salt + i


def phase():
    sys.stdout.flush()
    path = os.environ.get("CKT_TEST_PHASE_FILE")
    if not path:
        return
    open(path + ".ready", "w").close()
    while not os.path.exists(path + ".go"):
        time.sleep(0.005)


def main():
    size = 4096
    expected = np.arange(size, dtype=np.uint32)
    device = cuda.to_device(expected)
    history = {}
    for salt in range(8):
        if salt == 4:
            phase()
        step[(size + 127) // 128, 128](device, np.uint32(salt))
        expected = (expected * np.uint32(1664525) + np.uint32(salt) + np.arange(size, dtype=np.uint32)).astype(np.uint32)
        history[salt] = int(device.copy_to_host().astype(np.uint64).sum())
    good = np.array_equal(device.copy_to_host(), expected)
    print(history)
    print("ok" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
