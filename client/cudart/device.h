/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of the runtime. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* For a thread that never chose a device: takes the first valid device that gives a context. */
cudaError_t ckt_rt_choose_valid(CUcontext *ret_context);
