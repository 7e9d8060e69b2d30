# SPDX-License-Identifier: Apache-2.0
"""A cuda-core program: C++ compiled by NVRTC to PTX, loaded by the driver API, launched, checked with NumPy."""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
template <typename T> __global__ void saxpy(T a, const T *x, const T *y, T *out, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        out[i] = a * x[i] + y[i];
}
"""


def main():
    device = Device()
    device.set_current()
    stream = device.create_stream()
    arch = "".join(str(n) for n in device.compute_capability)
    program = Program(SOURCE, code_type="c++", options=ProgramOptions(std="c++17", arch=f"compute_{arch}"))
    module = program.compile("ptx", name_expressions=("saxpy<float>", "saxpy<double>"))
    for dtype, name in ((np.float32, "saxpy<float>"), (np.float64, "saxpy<double>")):
        n = 10007
        x = np.arange(n).astype(dtype) % 1000
        y = (np.arange(n).astype(dtype) * 7) % 500
        buffers = [device.allocate(n * x.itemsize, stream=stream) for _ in range(3)]
        copy(buffers[0], x, True, stream)
        copy(buffers[1], y, True, stream)
        kernel = module.get_kernel(name)
        launch(stream, LaunchConfig(grid=16, block=128), kernel, dtype(2.5), buffers[0], buffers[1], buffers[2], np.uint64(n))
        out = np.empty_like(x)
        copy(buffers[2], out, False, stream)
        stream.sync()
        good = np.array_equal(out, dtype(2.5) * x + y)
        print(name, "ok" if good else "WRONG", float(out.sum()))
        for buffer in buffers:
            buffer.close(stream)
        if not good:
            return 1
    return 0


def copy(buffer, array, to_device, stream):
    """Through the driver's own asynchronous copy; the array must live until the stream is synchronised."""
    from cuda.bindings import driver
    if to_device:
        (error,) = driver.cuMemcpyHtoDAsync(int(buffer.handle), array.ctypes.data, array.nbytes, int(stream.handle))
    else:
        (error,) = driver.cuMemcpyDtoHAsync(array.ctypes.data, int(buffer.handle), array.nbytes, int(stream.handle))
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(error))


if __name__ == "__main__":
    sys.exit(main())
