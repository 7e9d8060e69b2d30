/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of boxes. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* The driver's form of a three-dimensional copy.  Precondition: entered. */
cudaError_t ckt_rt_copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *ret_copy);
