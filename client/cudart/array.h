/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays. */
#pragma once

#include <stddef.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Translate a channel description into the driver's form, and back. */
cudaError_t ckt_rt_format(const struct cudaChannelFormatDesc *desc, CUarray_format *ret_format,
	unsigned *ret_channels);
cudaError_t ckt_rt_channel(
	CUarray_format format, unsigned channels, struct cudaChannelFormatDesc *ret_desc);
/* Bytes of one element of an array.  Precondition: entered. */
cudaError_t ckt_rt_array_element(cudaArray_const_t array, size_t *ret_bytes);
