/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory whose pages the worker shares, because it runs on this host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_context;

/* size: a multiple of CKT_HOST_GRAIN.  Returns false if the memory cannot be shared. */
bool ckt_shared_alloc(const struct ckt_context *context, uint64_t size, uint64_t *ret_address);
/*
 * Returns false if no such allocation begins at the address.  Precondition: the GPU no longer uses
 * it.
 */
bool ckt_shared_free(uint64_t address);
/* Whether the worker still shares the pages of the allocation that begins at the address. */
bool ckt_shared_now(uint64_t address);
