#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA programs from the wheel: Numba, CuPy and a program that nvcc compiled, each in an environment that has just been made.

usage: test_wheel_programs.py --packages DIR [--program NVCC-PROGRAM] numba|cupy|nvcc

Prints the CPU seconds from pip install to the end of the first test.  What PyPI does not give is skipped.  CuPy needs about 170 MB of it.
"""

import argparse
import os
import sys
import tempfile

import wheel

REQUIREMENTS = os.path.join(wheel.TOP, "tests", "python", "requirements.txt")
TESTS = {"numba": '''
import numpy as np
from numba import cuda
@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]
def test_add():
    a = np.arange(1000, dtype=np.float32)
    out = np.zeros_like(a)
    add[4, 256](a, a, out)
    np.testing.assert_array_equal(out, 2 * a)
''', "cupy": '''
import cupy
def test_sum():
    assert float((cupy.arange(1000, dtype=cupy.float32) * 2 + 1).sum()) == 1000000.0
def test_raw_kernel():
    text = 'extern "C" __global__ void twice(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }'
    a = cupy.arange(100, dtype=cupy.float32)
    cupy.RawKernel(text, "twice")((1,), (128,), (a, 100))
    assert float(a[99]) == 198.0
'''}
# With the versions of the other Python tests.  NVIDIA's CRT and CCCL are headers that CuPy's kernels include.
PACKAGES = {"numba": ("{wheel}[numba]", "-c", REQUIREMENTS), "nvcc": ("{wheel}",),
            "cupy": ("{wheel}", "pytest", "cupy-cuda13x==14.*", "nvidia-cuda-nvrtc==13.0.*", "nvidia-cuda-runtime==13.0.*", "nvidia-cuda-crt==13.0.*", "nvidia-cuda-cccl==13.0.*")}


def commands(which, directory, program):
    """What runs in the environment: (name below bin, arguments)."""
    if which == "nvcc":
        return "cricket-run", ["--soft", program]
    test = os.path.join(directory, f"test_{which}.py")
    with open(test, "w", encoding="utf-8") as f:
        f.write(TESTS[which])
    return "pytest", ["--cuda-soft", "-q", "--disable-warnings", test]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", required=True)
    parser.add_argument("--program")
    parser.add_argument("which", choices=sorted(PACKAGES))
    arguments = parser.parse_args()
    path = wheel.find(arguments.packages)
    if arguments.which == "nvcc" and not (arguments.program and os.path.exists(arguments.program)):
        print(f"{arguments.program}: not there; it needs nvcc")
        return wheel.SKIP
    with tempfile.TemporaryDirectory(prefix="ckt-wheel-") as directory:
        venv = wheel.make_venv(os.path.join(directory, "venv"))
        begin = wheel.cpu_seconds()
        try:
            wheel.pip(venv, "install", "--no-compile", *(word.replace("{wheel}", path) for word in PACKAGES[arguments.which]))
        except OSError as error:
            print(f"not to be had from PyPI: {error}")
            return wheel.SKIP
        installed = wheel.cpu_seconds()
        name, words = commands(arguments.which, directory, arguments.program)
        status, text = wheel.run(os.path.join(venv, "bin", name), *words, cwd=directory, HOME=directory)
        end = wheel.cpu_seconds()
        print(text[-3000:])
        print(f"{arguments.which}: {end - begin:.1f} s of CPU from pip install to the end of the first test: {installed - begin:.1f} s pip, {end - installed:.1f} s test")
        if arguments.which != "nvcc" and "soft GPU: nothing was refused" not in text:
            print("something was refused, or the tests did not run on the soft GPU")
            return 1
        return status


if __name__ == "__main__":
    sys.exit(main())
