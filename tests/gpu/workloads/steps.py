#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a training does, by the driver's API alone, so that the soft GPU runs it, too: a batch to the device, kernels, and every tenth step a number back.

	steps.py [--steps N]

Each number is printed, and the time of a step is in the file that $WORKLOAD_TIMES names, as by workload.py.
"""
import argparse
import array
import ctypes
import json
import os
import time

WORDS, LAUNCHES = 1 << 12, 8
PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry train(.param .u64 state, .param .u64 batch, .param .u32 add)
{
.reg .b64 %rd<4>;
.reg .b32 %r<6>;
ld.param.u64 %rd1, [state];
ld.param.u64 %rd2, [batch];
ld.param.u32 %r1, [add];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.u32 %r2, %r2, %r3, %r4;
mul.wide.u32 %rd3, %r2, 4;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
ld.global.u32 %r3, [%rd1];
ld.global.u32 %r4, [%rd2];
xor.b32 %r3, %r3, %r4;
mad.lo.u32 %r3, %r3, 1664525, %r1;
add.u32 %r3, %r3, %r2;
st.global.u32 [%rd1], %r3;
ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")


def must(result):
    if result:
        raise SystemExit(f"a call of the driver failed: {result}")


def alloc(size):
    block = ctypes.c_uint64()
    must(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)))
    return block


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps
    context, module, kernel, loss = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint32()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    must(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"train"))
    state, batch = alloc(4 * WORDS), alloc(4 * WORDS)
    must(cuda.cuMemsetD32_v2(state, ctypes.c_uint(1), ctypes.c_size_t(WORDS)))
    begun = time.perf_counter()
    for step in range(steps):
        host = array.array("I", range(step, step + WORDS))
        must(cuda.cuMemcpyHtoD_v2(batch, ctypes.c_void_p(host.buffer_info()[0]), ctypes.c_size_t(4 * WORDS)))
        for launch in range(LAUNCHES):
            values = (state, batch, ctypes.c_uint32(step * LAUNCHES + launch))
            params = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))
            must(cuda.cuLaunchKernel(kernel, WORDS // 256, 1, 1, 256, 1, 1, 0, None, params, None))
        if step % 10 == 9:
            must(cuda.cuMemcpyDtoH_v2(ctypes.byref(loss), state, ctypes.c_size_t(4)))
            print(f"loss {step}: {loss.value}", flush=True)
    must(cuda.cuCtxSynchronize())
    if os.environ.get("WORKLOAD_TIMES"):
        with open(os.environ["WORKLOAD_TIMES"], "w", encoding="utf-8") as f:
            json.dump({"ms": (time.perf_counter() - begun) * 1e3 / steps, "steps": steps, "waited": {}}, f)


if __name__ == "__main__":
    main()
