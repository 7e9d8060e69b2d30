/* SPDX-License-Identifier: Apache-2.0 */
/* Macros and inline functions for the bodies of exported functions. */
#pragma once

#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "client/cudart/error.h"
#include "client/cudart/init.h"

#define CKT_RT_API __attribute__((visibility("default")))

/* Enters; on an error, returns it from the calling function. */
#define CKT_RT_ENTER()                                        \
	do {                                                  \
		cudaError_t ckt_rt_entered = ckt_rt_enter();  \
		if (CKT_RT_UNLIKELY(ckt_rt_entered))          \
			return ckt_rt_return(ckt_rt_entered); \
	} while (0)
/* The same for functions that need the driver but no context. */
#define CKT_RT_DRIVER()                                       \
	do {                                                  \
		cudaError_t ckt_rt_entered = ckt_rt_driver(); \
		if (CKT_RT_UNLIKELY(ckt_rt_entered))          \
			return ckt_rt_return(ckt_rt_entered); \
	} while (0)
/* The body of a function that makes one call of the driver. */
#define CKT_RT_CALL(call)               \
	do {                            \
		CKT_RT_ENTER();         \
		return ckt_rt_cu(call); \
	} while (0)
#define CKT_RT_REQUIRE(condition, error)             \
	do {                                         \
		if (CKT_RT_UNLIKELY(!(condition)))   \
			return ckt_rt_return(error); \
	} while (0)

static inline CUdeviceptr ckt_rt_address(const void *pointer)
{
	return (CUdeviceptr)(uintptr_t)pointer;
}
