/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of arrays. */
#pragma once

#include <cuda.h>

#include <stdbool.h>

/* Copies where one side or both are arrays. */
CUresult ckt_client_array_copy(const CUDA_MEMCPY3D *copy, CUstream stream, bool async);
