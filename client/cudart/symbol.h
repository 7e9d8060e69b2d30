/* SPDX-License-Identifier: Apache-2.0 */
/* The program's variables on the device. */
#pragma once

#include <stddef.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

/* The address of symbol + offset, if count bytes fit there.  Enters. */
cudaError_t ckt_rt_symbol(
	const void *symbol, size_t offset, size_t count, CUdeviceptr *ret_address);
