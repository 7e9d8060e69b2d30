/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libcudart and the shims: finds the table of our libcuda.so.1 when the library is loaded.
 * Nothing is searched unless one of the two variables is set.  NVIDIA's libcuda.so.1 has no table:
 * nothing is recorded then.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "client/trace/trace.h"

const struct ckt_trace_table *ckt_trace_on;

__attribute__((constructor)) static void find(void)
{
	if (!getenv("CRICKET_TRACE") && !getenv("CRICKET_STATS"))
		return;
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	const struct ckt_trace_table *const *table =
		library ? dlsym(library, CKT_TRACE_TABLE_SYMBOL) : NULL;
	if (table && *table && (*table)->version == CKT_TRACE_TABLE_VERSION)
		__atomic_store_n(&ckt_trace_on, *table, __ATOMIC_RELAXED);
}
