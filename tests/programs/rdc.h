/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the separately compiled program share. */
#pragma once

__device__ unsigned rdc_mix(unsigned v);
extern __device__ unsigned rdc_calls;
extern __constant__ unsigned rdc_salt;
__global__ void rdc_fill(unsigned *data, unsigned n);
