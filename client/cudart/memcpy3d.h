/* SPDX-License-Identifier: Apache-2.0 */
/* Three-dimensional copies. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Translates a three-dimensional copy into the driver's form.  Precondition: entered. */
cudaError_t ckt_rt_copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *ret_copy);
