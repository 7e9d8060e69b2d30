/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests by the library's own functions: device memory, and plans judged by the plain transform.
 */
#pragma once

#include <cuda.h>
#include <cufftXt.h>

#include "tests/unit/soft_cufft/reference.h"

/* A context, once. */
void api_context(void);
/* Runs a made plan of that shape out of place on the stream and compares. */
void api_judge(cufftHandle plan, const struct shape *shape, bool inverse, CUstream stream);
