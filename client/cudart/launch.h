/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/*
 * Translates a configuration into the driver's form, with another stream.  The result points into
 * config.
 */
cudaError_t ckt_rt_launch_config(
	const cudaLaunchConfig_t *config, cudaStream_t stream, CUlaunchConfig *ret_config);
