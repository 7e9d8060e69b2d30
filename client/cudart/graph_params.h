/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of graph nodes in the driver's form. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Translates the parameters of a kernel node.  Enters. */
cudaError_t ckt_rt_kernel_params(
	const struct cudaKernelNodeParamsV2 *p, CUDA_KERNEL_NODE_PARAMS *ret);
