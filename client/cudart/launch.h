/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* The driver's form of a configuration, with another stream; points into config. */
cudaError_t ckt_rt_launch_config(
	const cudaLaunchConfig_t *config, cudaStream_t stream, CUlaunchConfig *ret_config);
