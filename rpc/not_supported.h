/* SPDX-License-Identifier: Apache-2.0 */
/* The word for "not supported" that no program gets; tests/unit/not_supported.py. */
#pragma once

#include <cuda.h>

/* The caller deals with it, and logs its name if a program gets it. */
#define CKT_INTERNAL_NOT_SUPPORTED CUDA_ERROR_NOT_SUPPORTED
