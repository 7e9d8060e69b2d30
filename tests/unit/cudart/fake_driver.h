/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that does nothing but remember what it was asked, for tests of the runtime.  One thread.
 */
#pragma once

#include <cuda.h>

struct fake {
	int inits, retains, sets, library_loads, module_loads, unloads, kernels_found, launches,
		syncs, gets, links;
	int devices; /* as cuDeviceGetCount tells */
	int version;
	CUresult init_result;
	CUresult next_result;    /* of the next call of those that can fail; then 0 again */
	CUresult sticky;         /* of all calls that reach the device */
	CUresult library_result; /* of cuLibraryLoadData */
	CUstream last_stream;
	CUfunction last_function;
	unsigned last_shape[7]; /* grid, block, shared bytes */
	void *last_argument;
	const void *last_image;
	CUdeviceptr last_dst, last_src;
	size_t last_count;
	char last_call[64];
};

extern struct fake fake;
