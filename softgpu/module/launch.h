/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels. */
#pragma once

#include "softgpu/cuda_api.h"

struct ckt_soft_function;

/* What is checked of a launch in the call. */
CUresult ckt_soft_launch_check(struct ckt_soft_function *function, const unsigned grid[3],
	const unsigned block[3], unsigned dynamic_shared);
