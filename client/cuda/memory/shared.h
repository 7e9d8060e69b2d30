/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory of which the worker, on this host, has the very pages. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_context;

/* size: whole chunks (CKT_HOST_GRAIN).  False where it cannot be had. */
bool ckt_shared_alloc(const struct ckt_context *context, uint64_t size, uint64_t *ret_address);
/* False where no such allocation begins at the address.  Precondition: the GPU is done with it. */
bool ckt_shared_free(uint64_t address);
/* Whether the allocation that begins there is still the worker's memory as well. */
bool ckt_shared_now(uint64_t address);
