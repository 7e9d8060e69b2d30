/* SPDX-License-Identifier: Apache-2.0 */
/* The table of our libcuda.so.1, and opening of a library; see libs.h. */
#include "client/libs/libs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/fork.h"
#include "base/log.h"

const struct ckt_client_table *_Atomic ckt_client_found;

/* One lock is enough: a shim contains one library. */
static CKT_LOCK(opening);

/* The table that the library exports, if it is Cricket's and has this version. */
static const struct ckt_client_table *table_of(void *library)
{
	const struct ckt_client_table *table =
		library ? dlsym(library, CKT_CLIENT_TABLE_SYMBOL) : NULL;
	return table && table->version == CKT_CLIENT_TABLE_VERSION && table->size >= sizeof *table
		? table
		: NULL;
}

/*
 * dlsym finds the table however the library was opened.  The handle stays open, because the library
 * also stays loaded.
 */
static const struct ckt_client_table *search(void)
{
	Dl_info here;
	char path[4096];
	const struct ckt_client_table *table =
		table_of(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
	if (table || !dladdr((const void *)ckt_lib_client_find, &here) || !here.dli_fname)
		return table;
	const char *slash = strrchr(here.dli_fname, '/');
	int length = slash ? (int)(slash - here.dli_fname) : 1;
	if (snprintf(path, sizeof path, "%.*s/libcuda.so.1", length, slash ? here.dli_fname : ".") <
		(int)sizeof path)
		table = table_of(dlopen(path, RTLD_NOW));
	return table ? table : table_of(dlopen("libcuda.so.1", RTLD_NOW));
}

const struct ckt_client_table *ckt_lib_client_find(void)
{
	static CKT_LOCK(lock);
	static bool said;
	static _Atomic bool survives;
	/*
	 * Every shim has its own locks.  The fork handler is registered at the first call, because
	 * a program may load a shim and never call it.
	 */
	if (!atomic_exchange(&survives, true))
		pthread_atfork(NULL, NULL, ckt_fork_renew);
	pthread_mutex_lock(&lock);
	const struct ckt_client_table *table = ckt_client_found;
	if (!table) {
		table = search();
		ckt_client_found = table;
	}
	bool say = !table && !said;
	said |= say;
	pthread_mutex_unlock(&lock);
	if (say)
		ckt_log_user("a library of Cricket's finds no libcuda.so.1 of the same "
			     "version: start the program with cricket-run");
	return table;
}

/* Returns the result of a procedure NAME_open: the library's version. */
static CUresult ask(const struct ckt_client_table *client, uint32_t proc, uint32_t version,
	uint32_t *ret_version)
{
	struct ckt_call call;
	struct ckt_reply reply;
	CUresult result = client->begin(&call, proc, 4, 0);
	if (result)
		return result;
	call.p = ckt_put_u32(call.p, version);
	result = client->wait(&call, &reply);
	if (result)
		return result;
	*ret_version = ckt_get_u32(&reply.results);
	result = ckt_cursor_done(&reply.results) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
	client->release(&reply);
	return result;
}

bool ckt_lib_scalar(
	uint8_t *field, size_t room, uint32_t pointer_mode, const void *value, size_t bytes)
{
	uint64_t address = (uintptr_t)value;
	if (!value || !bytes || bytes > room)
		return false;
	if (pointer_mode)
		memcpy(field, &address, sizeof address);
	else
		memcpy(field, value, bytes);
	return true;
}

bool ckt_lib_scalar_or_zero(
	uint8_t *field, size_t room, uint32_t pointer_mode, const void *value, size_t bytes)
{
	if (value)
		return ckt_lib_scalar(field, room, pointer_mode, value, bytes);
	memset(field, 0, room);
	return true;
}

CUresult ckt_lib_wait_values(const struct ckt_client_table *client, struct ckt_call *call,
	const struct ckt_lib_value *values, unsigned count, int *ret_status)
{
	struct ckt_reply reply;
	uint32_t size;
	int32_t status = 0;
	CUresult result = client->wait(call, &reply);
	if (result)
		return result;
	const uint8_t *data = ckt_get_opaque(&reply.results, CKT_DATA_MAX, &size);
	bool whole = data && ckt_cursor_done(&reply.results) && size >= sizeof status;
	if (whole)
		memcpy(&status, data, sizeof status);
	for (unsigned i = 0; whole && !status && i < count; i++) {
		whole = values[i].place + values[i].bytes <= size;
		if (whole)
			memcpy(values[i].value, data + values[i].place, values[i].bytes);
	}
	client->release(&reply);
	*ret_status = status;
	/* A shorter reply is an error: a worker of the same protocol sends all values. */
	return whole ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CUresult ckt_lib_open(
	struct ckt_lib_opened *opened, const char *name, uint32_t proc, uint32_t version)
{
	const struct ckt_client_table *client = ckt_client();
	CUresult result = client ? client->enter() : CUDA_ERROR_NOT_INITIALIZED;
	if (result || atomic_load_explicit(&opened->open, memory_order_acquire))
		return result;
	pthread_mutex_lock(&opening);
	if (!opened->open) {
		result = ask(client, proc, version, &opened->version);
		atomic_store_explicit(&opened->open, !result, memory_order_release);
	}
	pthread_mutex_unlock(&opening);
	if (result)
		ckt_debug("%s: the server does not have the library: %d", name, (int)result);
	return result;
}
