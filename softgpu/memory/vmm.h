/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that the program reserves, and their mappings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_soft_physical;

/* Whether cuMemAddressReserve returned a range with the address. */
bool ckt_soft_vmm_reserved(uint64_t address);
/* Drops a mapping's reference to its physical memory. */
void ckt_soft_physical_put(struct ckt_soft_physical *physical);
