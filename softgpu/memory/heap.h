/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and free of kernels. */
#pragma once

#include <stdint.h>

struct ckt_soft_context;

void *ckt_soft_heap_alloc(struct ckt_soft_context *context, uint64_t size_bytes);
void ckt_soft_heap_free(struct ckt_soft_context *context, void *address);
void ckt_soft_heap_fini(struct ckt_soft_context *context);
