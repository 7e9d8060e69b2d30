#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program that loads a module of so many bytes, launches its kernel, and prints what the kernel wrote.

Arguments: the bytes, and what makes the module another one (default: nothing).  "fat" makes it a fat binary of a small PTX text and machine code,
so many bytes for each of two GPUs.  With CKT_TEST_PHASE_FILE it stops when the module is loaded, and with
CKT_TEST_AGAIN it loads that one afterwards.
"""
import ctypes
import os
import struct
import sys
import time

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 to)
{
	.reg .b64 %rd<2>;
	.reg .b32 %r<2>;
	ld.param.u64 %rd1, [to];
	mov.u32 %r1, 4711;
	st.global.u32 [%rd1], %r1;
	ret;
}
"""

cuda = ctypes.CDLL("libcuda.so.1")


def must(result):
    if result:
        sys.exit(f"CUresult {result}")


def pause():
    point = os.environ.get("CKT_TEST_PHASE_FILE")
    if point:
        open(point + ".ready", "w").close()
        while not os.path.exists(point + ".go"):
            time.sleep(0.01)


def entry(kind, capability, payload):
    payload += bytes(-len(payload) % 8)
    header = struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(payload), 0, 0, capability % 10, capability // 10, capability)
    return header + bytes(64 - len(header)) + payload


def image_of(size, seed):
    if seed == "fat":
        entries = entry(2, 80, b"c" * size) + entry(2, 90, b"d" * size) + entry(1, 70, PTX.encode() + b"\0")
        return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries
    image = (PTX + "// " + seed).encode()
    return image + b"x" * (size - 1 - len(image)) + b"\0"


def main():
    image = image_of(int(sys.argv[1]), " ".join(sys.argv[2:]))
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    address, word = ctypes.c_uint64(), ctypes.c_uint32()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuModuleLoadData(ctypes.byref(module), image))
    must(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"store"))
    pause()
    if "CKT_TEST_AGAIN" in os.environ:
        must(cuda.cuModuleLoadData(ctypes.byref(module), image_of(int(sys.argv[1]), os.environ["CKT_TEST_AGAIN"])))
    must(cuda.cuMemAlloc_v2(ctypes.byref(address), 4))
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(address), ctypes.c_void_p))
    must(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
    must(cuda.cuMemcpyDtoH_v2(ctypes.byref(word), address, 4))
    print(word.value)


main()
