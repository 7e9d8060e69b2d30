/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels. */
#pragma once

#include "softgpu/cuda_api.h"

struct ckt_soft_function;

/* The checks of a launch's parameters that the call makes. */
CUresult ckt_soft_launch_check(struct ckt_soft_function *function, const unsigned grid[3],
	const unsigned block[3], unsigned dynamic_shared);
