/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program advised about ranges of managed memory; any thread.  For managed_hint.c,
 * managed_range.c and allocators of such memory.
 */
#pragma once

#include "cudacommon/interface.h"

struct ckt_advice {
	bool read_mostly;
	bool by_host;
	uint64_t by_devices; /* a bit a device */
	CUmemLocation preferred, fetched;
};

/* Changes what holds in [begin, begin + size). */
CUresult ckt_advice_change(uint64_t begin, uint64_t size,
	void (*change)(struct ckt_advice *advice, const void *data), const void *data);
/* The addresses were reused: forgets their advice. */
void ckt_advice_forget(uint64_t begin, uint64_t size);
/* Whether all of it is managed memory of one allocation. */
CUresult ckt_managed_check(CUdeviceptr address, size_t size);
