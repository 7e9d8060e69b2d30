/* SPDX-License-Identifier: Apache-2.0 */
/* Events. */
#pragma once

#include <stddef.h>

#include "softgpu/cuda_api.h"
#include "softgpu/stream/stream.h"

struct ckt_soft_context;

/*
 * Submits work that runs after all earlier work of the context's streams; no later work waits for
 * it.
 */
CUresult ckt_soft_context_behind(struct ckt_soft_context *context, ckt_soft_work run,
	const void *payload, size_t payload_bytes);
