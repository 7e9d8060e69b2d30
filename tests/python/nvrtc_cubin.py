# SPDX-License-Identifier: Apache-2.0
"""A cuda-core program that asks NVRTC for machine code, on the soft GPU: NVRTC gives PTX under that name, and the program does not see it."""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = 'extern "C" __global__ void square(int *p) { p[threadIdx.x] *= p[threadIdx.x]; }'


def main():
    from cuda.bindings import driver
    device = Device()
    device.set_current()
    stream = device.create_stream()
    arch = "".join(str(n) for n in device.compute_capability)
    module = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{arch}")).compile("cubin")
    numbers = np.arange(64, dtype=np.int32)
    out = np.zeros_like(numbers)
    buffer = device.allocate(numbers.nbytes, stream=stream)
    driver.cuMemcpyHtoDAsync(int(buffer.handle), numbers.ctypes.data, numbers.nbytes, int(stream.handle))
    launch(stream, LaunchConfig(grid=1, block=64), module.get_kernel("square"), buffer)
    driver.cuMemcpyDtoHAsync(out.ctypes.data, int(buffer.handle), out.nbytes, int(stream.handle))
    stream.sync()
    print("squares", "ok" if np.array_equal(out, numbers * numbers) else out)
    return 0 if np.array_equal(out, numbers * numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
