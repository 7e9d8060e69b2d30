/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of the session and their functions; a restore uses them, too.
 *
 * Threading: the executor, or the restoring thread before the executor starts.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

struct ckt_object;
struct ckt_worker;

CUresult ckt_module_load(struct ckt_worker *worker, uint64_t id, const uint8_t hash[32],
	const uint32_t *keys, const uint64_t *values, uint32_t count,
	struct ckt_object **ret_object);
void ckt_module_unload(struct ckt_worker *worker, struct ckt_object *module);
/* Notes that the client knows the variable's address.  0 or -ENOMEM. */
int ckt_module_note_seen(struct ckt_object *module, const char *name);
CUresult ckt_function_get(struct ckt_worker *worker, struct ckt_object *module, uint64_t id,
	const char *name, struct ckt_object **ret_object);
CUresult ckt_function_set(struct ckt_object *function, uint32_t attribute, int32_t value);
