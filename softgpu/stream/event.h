/* SPDX-License-Identifier: Apache-2.0 */
/* Events, as the other files use them. */
#pragma once

#include <stddef.h>

#include "softgpu/cuda_api.h"
#include "softgpu/stream/stream.h"

struct ckt_soft_context;

/* Work behind all that the context's streams have been given so far, and ahead of nothing. */
CUresult ckt_soft_context_behind(struct ckt_soft_context *context, ckt_soft_work run,
	const void *payload, size_t payload_bytes);
