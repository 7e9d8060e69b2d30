/* SPDX-License-Identifier: Apache-2.0 */
/* Which modules a server keeps; see module_hints.h. */
#include "client/conn/module_hints.h"

#include <string.h>

#include "client/conn/call.h"
#include "client/conn/conn.h"
#include "rpc/module_cache.h"

void ckt_module_hints_init(struct ckt_module_hints *hints)
{
	pthread_mutex_init(&hints->lock, NULL);
}

void ckt_module_hints_forget(struct ckt_module_hints *hints)
{
	pthread_mutex_lock(&hints->lock);
	hints->count = 0;
	hints->complete = false;
	pthread_mutex_unlock(&hints->lock);
}

void ckt_module_hints_take(struct ckt_module_hints *hints, const struct ckt_modules_args *args)
{
	pthread_mutex_lock(&hints->lock);
	hints->count = args->hashes.hashes_len;
	hints->complete = args->complete;
	if (hints->count)
		memcpy(hints->hashes, args->hashes.hashes_val,
			hints->count * sizeof *hints->hashes);
	pthread_mutex_unlock(&hints->lock);
}

enum ckt_module_hint ckt_module_hints_look(struct ckt_module_hints *hints, const uint8_t hash[32])
{
	enum ckt_module_hint hint = CKT_MODULE_UNKNOWN;
	uint32_t word = ckt_module_cache_word(hash);
	pthread_mutex_lock(&hints->lock);
	if (hints->complete)
		hint = CKT_MODULE_NOT_KEPT;
	for (unsigned i = 0; i < hints->count && hint != CKT_MODULE_KEPT; i++)
		if (hints->hashes[i] == word)
			hint = CKT_MODULE_KEPT;
	pthread_mutex_unlock(&hints->lock);
	return hint;
}

enum ckt_module_hint ckt_call_module_hint(const uint8_t hash[32])
{
	return ckt_module_hints_look(&ckt_call_conn->module_hints, hash);
}
