/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that the program reserves itself, and what it maps there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_soft_physical;

/* Whether cuMemAddressReserve gave the address out. */
bool ckt_soft_vmm_reserved(uint64_t address);
/* Drops a mapping's hold on its physical memory. */
void ckt_soft_physical_put(struct ckt_soft_physical *physical);
