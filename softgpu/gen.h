/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that softgpu/gen/gen_softgpu.py makes from the CUDA headers at build time. */
#pragma once

#include <stddef.h>

#include "softgpu/cuda_api.h"

struct ckt_soft_error_name {
	CUresult code;
	const char *name;
};
extern const struct ckt_soft_error_name ckt_soft_errors[];
extern const size_t ckt_soft_error_count;

/* One version of one function as cuGetProcAddress knows it; sorted by name, then by version. */
struct ckt_soft_entry {
	const char *name; /* without version: "cuMemAlloc" */
	int since;        /* CUDA version, 3020 */
	void *function;   /* the exported one */
	void *per_thread; /* its _ptsz or _ptds variant, or NULL */
};
extern const struct ckt_soft_entry ckt_soft_entries[];
extern const size_t ckt_soft_entry_count;
