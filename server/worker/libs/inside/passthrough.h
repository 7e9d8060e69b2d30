/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass-through libcuda.so.1, which forwarded libraries find in the worker instead of the
 * driver.
 *
 *	libcublas.so.13 -> its own CUDA runtime -> dlopen("libcuda.so.1") = this library
 *	                --slot--> a hook of the worker, or the driver
 *
 * The library exports every name that NVIDIA's exports (gen_inside.py).  It answers
 * cuGetProcAddress with its own entry for every function that the worker hooks.  Everything else
 * comes from the driver, including names that only a newer driver has and the undocumented tables
 * of cuGetExportTable.  The library calls nothing of libc but string functions, and keeps no state
 * besides the slots.
 */
#pragma once

#include <stddef.h>

struct ckt_inside_hook {
	const char *name; /* exported name: cuMemAlloc_v2, cuMemAllocAsync_ptsz */
	void *function;   /* has the same signature */
};

/*
 * Fills the slots, once and before any library is loaded.  symbol: returns the driver's function of
 * that name, or NULL if the driver lacks it; the function then returns NOT_SUPPORTED. unknown: gets
 * the name of a hooked function of which a library wants a version that the hooks do not know.  The
 * library does not get that version, because nothing would account for its memory.  0, or -1 with
 * the first name that the library does not export in *ret_wrong.
 */
typedef int ckt_inside_set_fn(void *(*symbol)(const char *name),
	const struct ckt_inside_hook *hooks, size_t hook_count,
	void (*unknown)(const char *name, int version), const char **ret_wrong);
#define CKT_INSIDE_SET "ckt_inside_set"
ckt_inside_set_fn ckt_inside_set;
