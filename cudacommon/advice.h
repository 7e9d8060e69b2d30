/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's advice about ranges of managed memory; any thread.  For managed_hint.c,
 * managed_range.c and allocators of managed memory.
 */
#pragma once

#include "cudacommon/interface.h"

struct ckt_advice {
	bool read_mostly;
	bool by_host;
	uint64_t by_devices; /* one bit for each device */
	CUmemLocation preferred, fetched;
};

/* Changes the advice for [begin, begin + size). */
CUresult ckt_advice_change(uint64_t begin, uint64_t size,
	void (*change)(struct ckt_advice *advice, const void *data), const void *data);
/* Forgets the advice for addresses that are reused. */
void ckt_advice_forget(uint64_t begin, uint64_t size);
/* Whether the whole range is managed memory of one allocation. */
CUresult ckt_managed_check(CUdeviceptr address, size_t size);
