/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs the worker serves; see libs.h. */
#include <string.h>

#include "rpc/gen/libraries.h"
#include "server/worker/libs/libs.h"
#include "server/worker/worker.h"

static const struct ckt_library cuda = {.name = "cuda",
	.lib = CKT_LIB_CUDA,
	.procs = ckt_cuda_procs,
	.proc_count = &ckt_cuda_proc_count};

#define CKT_LIBRARY(NAME, name) extern const struct ckt_library ckt_library_##name;
CKT_LIBRARIES
#undef CKT_LIBRARY

/* By enum ckt_lib; NULL: not in this build. */
static const struct ckt_library *const libraries[CKT_LIB_COUNT] = {[CKT_LIB_CUDA] = &cuda,
#define CKT_LIBRARY(NAME, name) [CKT_LIB_##NAME] = &ckt_library_##name,
	CKT_LIBRARIES
#undef CKT_LIBRARY
};

const struct ckt_library *ckt_library_toy;

const struct ckt_library *ckt_library_of(enum ckt_lib lib)
{
	if (__builtin_expect(ckt_library_toy != NULL, 0) && ckt_library_toy->lib == lib)
		return ckt_library_toy;
	return lib < CKT_LIB_COUNT ? libraries[lib] : NULL;
}

const struct ckt_library *ckt_library_of_prog(uint32_t prog)
{
	return ckt_library_of(ckt_lib_of_prog(prog));
}

const struct ckt_library *ckt_library_named(const char *name)
{
	if (ckt_library_toy && !strcmp(ckt_library_toy->name, name))
		return ckt_library_toy;
	for (unsigned i = 0; i < CKT_LIB_COUNT; i++)
		if (libraries[i] && !strcmp(libraries[i]->name, name))
			return libraries[i];
	return NULL;
}

uint32_t ckt_stat_index(uint32_t prog, uint32_t proc)
{
	if (prog == CRICKET_SESSION_PROG)
		return proc < CKT_STAT_LIBRARIES - CKT_STAT_SESSION ? CKT_STAT_SESSION + proc
								    : (uint32_t)CKT_STATS;
	enum ckt_lib lib = ckt_lib_of_prog(prog);
	if (lib == CKT_LIB_CUDA)
		return proc < CKT_STAT_SESSION ? proc : (uint32_t)CKT_STATS;
	if (lib >= CKT_LIB_COUNT || proc > CKT_LIB_PROC_MAX)
		return CKT_STATS;
	return CKT_STAT_LIBRARIES + ((uint32_t)lib - 1) * (CKT_LIB_PROC_MAX + 1) + proc;
}

static const char *proc_name(const struct ckt_library *library, uint32_t proc)
{
	return library && proc < *library->proc_count ? library->procs[proc].name : NULL;
}

const char *ckt_stat_name(uint32_t index)
{
	static const char *const session[] = {"SESSION_NULL", "SESSION_HELLO", "SESSION_DEVICES",
		"SESSION_BYE", "SESSION_ACK", "SESSION_HOST_FILL", "SESSION_WINDOW",
		"SESSION_ENVIRONMENT", "SESSION_GPU_TRACE"};
	if (index < CKT_STAT_SESSION)
		return proc_name(&cuda, index);
	if (index < CKT_STAT_LIBRARIES)
		return index - CKT_STAT_SESSION < sizeof session / sizeof *session
			? session[index - CKT_STAT_SESSION]
			: NULL;
	index -= CKT_STAT_LIBRARIES;
	return proc_name(ckt_library_of((enum ckt_lib)(1 + index / (CKT_LIB_PROC_MAX + 1))),
		index % (CKT_LIB_PROC_MAX + 1));
}
