/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of a fat binary that a GPU can use: a fat binary often holds machine code for many
 * GPUs, and only one of them is needed at the worker.  Entries are copied as they are, so compressed
 * ones stay compressed.  Threading: any.
 */
#pragma once

#include <cuda.h>

#include <stddef.h>

/*
 * Leaves out machine code that a GPU of that capability (90 for 9.0) cannot run, or does not run
 * because there is code for exactly this GPU.  All PTX stays: another model of GPU compiles it after
 * a restore.  CUDA_FORCE_PTX_JIT=1 leaves out all machine code, as NVIDIA's driver does.
 * CRICKET_WHOLE_MODULES=1 leaves out nothing.
 *
 * *ret_data is malloc'd and the caller's; NULL: nothing is left out, or the image is no intact fat
 * binary.  CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_NO_BINARY_FOR_GPU if PTX is forced and there is
 * none.
 */
CUresult ckt_client_fat_binary_choose(
	const void *image, size_t size, unsigned capability, void **ret_data, size_t *ret_size);
