/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of the worker's own at an address that is the same in every worker, or elsewhere
 * where that one is taken.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Private memory, written and read; flags: more for mmap().  NULL with errno set.  For as long as
 * the process lives.
 */
void *ckt_fixed_address_map(uint64_t wish, size_t size_bytes, int flags);
