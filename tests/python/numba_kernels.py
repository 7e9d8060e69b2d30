# SPDX-License-Identifier: Apache-2.0
"""Numba kernels: elementwise, a shared-memory reduction, atomics and a device function, compiled to PTX and linked by the driver."""

import math
import os
import sys

import numpy as np
from cuda.bindings._internal import nvjitlink

# nvJitLink, where a toolkit is installed, would link to machine code for one model of GPU; without it the driver links the PTX.
# cricket-run --soft sees to that by itself.
if "CRICKET_SOFT_PTX" not in os.environ:
    nvjitlink._inspect_function_pointer = lambda name: 0

from numba import cuda, float32, int64  # noqa: E402

BLOCK = 128


@cuda.jit(device=True)
def poly(x):
    return x * x * 3.0 - x + math.sqrt(x)


@cuda.jit
def elementwise(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = poly(x[i])


@cuda.jit
def block_sums(x, out):
    shared = cuda.shared.array(BLOCK, float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    shared[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            shared[t] += shared[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = shared[0]


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, int64(x[i]) % bins.size, 1)


@cuda.jit
def transpose(a, out):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        out[j, i] = a[i, j]


def check(name, good):
    print(name, "ok" if good else "WRONG")
    return good


def main():
    n = 5003
    blocks = (n + BLOCK - 1) // BLOCK
    x = (np.arange(n) % 97).astype(np.float32)
    good = True

    out = cuda.device_array(n, np.float64)
    dx = cuda.to_device(x)
    elementwise[blocks, BLOCK](dx, out)
    x64 = x.astype(np.float64)
    good &= check("elementwise", np.allclose(out.copy_to_host(), x64 * x64 * 3 - x64 + np.sqrt(x64), rtol=1e-6))

    sums = cuda.device_array(blocks, np.float32)
    block_sums[blocks, BLOCK](dx, sums)
    good &= check("block_sums", float(sums.copy_to_host().sum()) == float(x.sum()))

    bins = cuda.to_device(np.zeros(10, np.int64))
    stream = cuda.stream()
    histogram[blocks, BLOCK, stream](dx, bins)
    stream.synchronize()
    good &= check("histogram", np.array_equal(bins.copy_to_host(), np.bincount(x.astype(np.int64) % 10, minlength=10)))

    a = np.arange(60 * 35, dtype=np.int32).reshape(60, 35)
    b = cuda.device_array((35, 60), np.int32)
    transpose[(8, 8), (8, 8)](cuda.to_device(a), b)
    good &= check("transpose", np.array_equal(b.copy_to_host(), a.T))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
