/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels. */
#pragma once

#include <cuda.h>

struct ckt_function;

/* The checks of a launch that CUDA makes at once, in the current context. */
CUresult ckt_client_launch_check(const struct ckt_function *f, const unsigned grid[3],
	const unsigned block[3], unsigned shared_bytes);
