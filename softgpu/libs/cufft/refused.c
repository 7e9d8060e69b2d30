/*
 * What the soft GPU's cuFFT does not do: several GPUs, and callbacks, which are device code inside
 * the transform.
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

/* Exported by NVIDIA's library and in no header. */
CUFFTAPI cufftResult cufftDebug(void);

REFUSED(cufftDebug, (void))
#include "rpc/cufft_refused.inc"
