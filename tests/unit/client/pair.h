/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda.so.1 of the client inside the test, with sessions at two private servers of two soft GPUs
 * each; CUDA_VISIBLE_DEVICES is 3,0,2, so that the program's devices are
 *
 *	0	the second one of the second server (1 GiB)
 *	1	the first one of the first server (2 GiB)
 *	2	the first one of the second server (2 GiB)
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "tests/unit/suite.h"

enum { DEVICES = 3 };
/*
 * Their primary contexts; that of device 0 is current when a test begins, and must be when it ends.
 */
extern CUcontext contexts[DEVICES];
/* add(u64 out, u32 n): *out += n, by each thread; a u32 `counter` that begins as 3. */
extern const char pair_ptx[];

void use(int device);
/* Device memory of the current device, each word of it set to the value. */
CUdeviceptr memory_with(size_t size, uint32_t value);
/* How many of the words are not the value. */
unsigned words_not(CUdeviceptr address, size_t size, uint32_t value);
