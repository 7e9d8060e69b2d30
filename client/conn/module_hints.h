/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which modules the server of a connection keeps for this owner, as it told behind the hello
 * (CKT_CALLBACK_MODULES).  Only a hint: a wrong one costs a round trip, or bytes.  Threading: any.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"

struct ckt_module_hints {
	pthread_mutex_t lock;
	unsigned count;
	bool complete; /* the server keeps no others */
	uint32_t hashes[CKT_MODULES_MAX];
};

enum ckt_module_hint {
	CKT_MODULE_UNKNOWN, /* the server did not tell */
	CKT_MODULE_KEPT,
	CKT_MODULE_NOT_KEPT,
};

void ckt_module_hints_init(struct ckt_module_hints *hints);
/* Another connection: the server has told nothing yet. */
void ckt_module_hints_forget(struct ckt_module_hints *hints);
void ckt_module_hints_take(struct ckt_module_hints *hints, const struct ckt_modules_args *args);
enum ckt_module_hint ckt_module_hints_look(struct ckt_module_hints *hints, const uint8_t hash[32]);
/* Of the calling thread's connection. */
enum ckt_module_hint ckt_call_module_hint(const uint8_t hash[32]);
