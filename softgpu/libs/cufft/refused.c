/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the soft GPU's cuFFT does not support.  Callbacks are device code inside the
 * transform.  The factors of a transform over several GPUs are for an order that is not used here.
 */
#include <cufft.h>
#include <cufftXt.h>

#include "softgpu/libs/common/driver.h"

#define REFUSED(name, parameters)               \
	cufftResult name parameters             \
	{                                       \
		ckt_softlib_unsupported(#name); \
		return CUFFT_NOT_SUPPORTED;     \
	}

/* NVIDIA's library exports this function, but no header declares it. */
CUFFTAPI cufftResult cufftDebug(void);

REFUSED(cufftDebug, (void))
REFUSED(cufftXtQueryPlan, (cufftHandle plan, void *queryStruct, cufftXtQueryType queryType))
REFUSED(cufftXtSetCallback,
	(cufftHandle plan, void **callback_routine, cufftXtCallbackType cbType, void **caller_info))
REFUSED(cufftXtClearCallback, (cufftHandle plan, cufftXtCallbackType cbType))
REFUSED(cufftXtSetCallbackSharedSize,
	(cufftHandle plan, cufftXtCallbackType cbType, size_t sharedSize))
REFUSED(cufftXtSetJITCallback,
	(cufftHandle plan, const char *lto_callback_symbol_name, const void *lto_callback_fatbin,
		size_t lto_callback_fatbin_size, cufftXtCallbackType type, void **caller_info))
