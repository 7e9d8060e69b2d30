/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of the pass-through libcuda.so.1, and its cuGetProcAddress; see passthrough.h. */
#include "server/worker/libs/inside/passthrough.h"

#include <cuda.h>
#include <stdbool.h>
#include <string.h>

#include "server/worker/libs/inside/table.h"

/* More than any toolkit exports; the build checks it. */
enum { NAMES_MAX = 1024 };
static bool hooked[NAMES_MAX];
static void (*tell_unknown)(const char *name, int version);
static CUresult(CUDAAPI *real_address)(
	const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static CUresult CUDAAPI not_initialized(void)
{
	return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult CUDAAPI not_supported(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* A caller that opens the library before its slots are set gets an error instead of a crash. */
__attribute__((constructor)) static void fill(void)
{
	for (unsigned i = 0; i < ckt_inside_name_count && i < NAMES_MAX; i++)
		ckt_inside_slots[i] = (void *)not_initialized;
}

static int number_of(const char *name)
{
	unsigned low = 0, high = ckt_inside_name_count;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		int order = strcmp(ckt_inside_names[middle].name, name);
		if (order == 0)
			return (int)middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

/* The newest version of a function up to the requested one; NULL if the table has none. */
static const struct ckt_inside_entry *entry_of(const char *symbol, int version, bool *ret_last)
{
	const struct ckt_inside_entry *best = NULL;
	*ret_last = false;
	for (unsigned i = 0; i < ckt_inside_entry_count; i++) {
		const struct ckt_inside_entry *entry = &ckt_inside_entries[i];
		if (strcmp(entry->name, symbol) || entry->version > version)
			continue;
		best = entry;
		*ret_last = i + 1 == ckt_inside_entry_count ||
			strcmp(ckt_inside_entries[i + 1].name, symbol);
	}
	return best;
}

/* Per-thread default streams exist since CUDA 7.0, also for older functions. */
enum { PER_THREAD_SINCE = 7000 };

/*
 * The driver's answer, or our entry for it.  A driver newer than the table may have a newer version
 * of a hooked function.  It has one if its answer to this request differs from its answer to a
 * request for the table's last version.
 */
static void *replace(
	const char *symbol, int version, cuuint64_t flags, void *answer, bool *ret_unknown)
{
	bool last;
	const struct ckt_inside_entry *entry = entry_of(symbol, version, &last);
	*ret_unknown = false;
	if (!entry)
		return answer;
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM &&
		version >= PER_THREAD_SINCE;
	unsigned number = per_thread ? entry->per_thread : entry->legacy;
	if (!hooked[number])
		return answer;
	void *known = NULL;
	int since =
		per_thread && entry->version < PER_THREAD_SINCE ? PER_THREAD_SINCE : entry->version;
	if (last && version > since &&
		(real_address(symbol, &known, since, flags, NULL) || known != answer)) {
		*ret_unknown = true;
		return NULL;
	}
	return ckt_inside_names[number].stub;
}

static CUresult CUDAAPI get_address_v2(const char *symbol, void **address, int version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUresult result = real_address(symbol, address, version, flags, status);
	if (result || !symbol || !address || !*address)
		return result;
	bool unknown;
	*address = replace(symbol, version, flags, *address, &unknown);
	if (unknown) {
		tell_unknown(symbol, version);
		if (status)
			*status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	}
	return CUDA_SUCCESS;
}

/* The form of CUDA 11.3: without the status, and a missing function is an error. */
static CUresult CUDAAPI get_address(
	const char *symbol, void **address, int version, cuuint64_t flags)
{
	void *found = NULL;
	CUresult result = get_address_v2(symbol, address ? &found : NULL, version, flags, NULL);
	if (!result && !found)
		result = CUDA_ERROR_NOT_FOUND;
	if (!result)
		*address = found;
	return result;
}

static int set_hook(const char *name, void *function)
{
	int number = number_of(name);
	if (number < 0)
		return -1;
	ckt_inside_slots[number] = function;
	hooked[number] = true;
	return 0;
}

__attribute__((visibility("default"))) int ckt_inside_set(void *(*symbol)(const char *name),
	const struct ckt_inside_hook *hooks, size_t hook_count,
	void (*unknown)(const char *name, int version), const char **ret_wrong)
{
	*ret_wrong = "the number of names";
	if (ckt_inside_name_count > NAMES_MAX)
		return -1;
	tell_unknown = unknown;
	for (unsigned i = 0; i < ckt_inside_name_count; i++) {
		void *real = symbol(ckt_inside_names[i].name);
		ckt_inside_slots[i] = real ? real : (void *)not_supported;
	}
	/* Drivers before CUDA 12 lack the function; this library serves only newer ones. */
	*(void **)&real_address = symbol("cuGetProcAddress_v2");
	*ret_wrong = "cuGetProcAddress_v2";
	if (!real_address)
		return -1;
	for (size_t i = 0; i < hook_count; i++) {
		*ret_wrong = hooks[i].name;
		if (set_hook(hooks[i].name, hooks[i].function))
			return -1;
	}
	*ret_wrong = "cuGetProcAddress";
	return set_hook("cuGetProcAddress", (void *)get_address) ||
			set_hook("cuGetProcAddress_v2", (void *)get_address_v2)
		? -1
		: 0;
}
