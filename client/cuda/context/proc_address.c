/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points by name and version.  The program gets the newest version of a function that is not
 * newer than the CUDA version it asks for.  Undocumented export tables are refused, because their
 * users cannot work over a network.  CUPTI's first table is an exception: it is empty.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "client/cuda/call.h"
#include "client/cuda/context/device.h"
#include "cudacommon/interface.h"
#include <cudaProfiler.h>

struct entry {
	const char *name;
	int version;
	void *legacy, *per_thread;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
/*
 * Only the addresses matter here.  No mode of cuda.h declares all old versions, so this file
 * declares them by symbol.
 */
#define CKT_ENTRY_POINT(name, version, legacy, per_thread)                 \
	extern void ckt_entry_##legacy##_##version(void) __asm__(#legacy); \
	extern void ckt_entry_pt_##per_thread##_##version(void) __asm__(#per_thread);
#include "rpc/gen/cuda_entry_points.inc"
#undef CKT_ENTRY_POINT

static const struct entry entries[] = {
#define CKT_ENTRY_POINT(name, version, legacy, per_thread)       \
	{#name, version, (void *)ckt_entry_##legacy##_##version, \
		(void *)ckt_entry_pt_##per_thread##_##version},
#include "rpc/gen/cuda_entry_points.inc"
#undef CKT_ENTRY_POINT
};
#pragma GCC diagnostic pop

/*
 * Finds the first entry of the name; NULL if there is none.  Entries with one name are adjacent,
 * oldest first.
 */
static const struct entry *find(const char *name)
{
	size_t low = 0, count = sizeof entries / sizeof *entries, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(entries[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && strcmp(entries[low].name, name) == 0 ? &entries[low] : NULL;
}

CKT_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	const struct entry *end = entries + sizeof entries / sizeof *entries;
	if (!symbol || !address ||
		flags &
			~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
		return CUDA_ERROR_INVALID_VALUE;
	const struct entry *best = NULL, *entry = find(symbol);
	*address = NULL;
	if (status)
		*status = entry ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	for (const struct entry *e = entry; e && e < end && strcmp(e->name, symbol) == 0; e++)
		if (e->version <= version)
			best = e;
	if (!best)
		ckt_debug("cuGetProcAddress: %s: %s", symbol,
			entry ? "newer than the requested version" : "unknown function");
	/*
	 * This is no error, even if status is NULL (measured with CUDA 13.0): the address is NULL.
	 */
	if (!best)
		return CUDA_SUCCESS;
	*address = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? best->per_thread
									 : best->legacy;
	if (status)
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuGetProcAddress(
	const char *symbol, void **address, int version, cuuint64_t flags)
{
	void *found = NULL;
	CUresult result =
		cuGetProcAddress_v2(symbol, address ? &found : NULL, version, flags, NULL);
	if (result)
		return result;
	/* If there is no such function, the program's variable keeps its value. */
	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	*address = found;
	return CUDA_SUCCESS;
}

/*
 * CUPTI of CUDA 13.2 and later asks for one table at its first call.  Without this table,
 * cuptiGetVersion fails and JAX computes on the CPU. CUPTI checks only the size, the table's first
 * word, and accepts a table without functions.  Zeros follow, in case a tool reads further.
 */
static const uint8_t cupti_id[16] = {0x7c, 0xb6, 0x3f, 0x9b, 0x9c, 0xa4, 0x8e, 0x42, 0xa4, 0x84,
	0xbe, 0xb6, 0x6e, 0x6a, 0xed, 0x7f};
enum { CUPTI_TABLE_WORDS = 512 };
static const uint64_t cupti_table[CUPTI_TABLE_WORDS] = {sizeof *cupti_table};

CKT_EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	if (table)
		*table = NULL;
	if (table && id && !memcmp(id->bytes, cupti_id, sizeof cupti_id)) {
		*table = cupti_table;
		return CUDA_SUCCESS;
	}
	/*
	 * Every library of NVIDIA asks for such tables, some for dozens, and works without them.
	 * So the debug log has this line only once.
	 */
	static atomic_bool said;
	if (!atomic_exchange(&said, true))
		ckt_debug("cuGetExportTable: there are no undocumented tables");
	return CKT_AS_CUDA_NOT_SUPPORTED;
}

static CUresult profiler(unsigned on)
{
	return ckt_client_device_count()
		? CKT_WAITED(profiler, PROFILER, CKT_CALL_F_NUMBERED, NULL, .on = on)
		: CUDA_ERROR_NOT_INITIALIZED;
}

/* A profiler must observe the worker, so configure it there. */
CKT_EXPORT CUresult cuProfilerInitialize(const char *config, const char *output, CUoutput_mode mode)
{
	return CKT_AS_CUDA_NOT_SUPPORTED;
}

CKT_EXPORT CUresult cuProfilerStart(void)
{
	return profiler(1);
}

CKT_EXPORT CUresult cuProfilerStop(void)
{
	return profiler(0);
}
