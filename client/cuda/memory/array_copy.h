/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from and to arrays. */
#pragma once

#include <cuda.h>

#include <stdbool.h>

/* Precondition: at least one side of the copy is an array. */
CUresult ckt_client_array_copy(const CUDA_MEMCPY3D *copy, CUstream stream, bool async);
