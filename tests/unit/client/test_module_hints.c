/* SPDX-License-Identifier: Apache-2.0 */
/* client/conn/module_hints.c (client/conn/module_hints.h): what a server says it keeps. */
#include "client/conn/module_hints.h"

#include <string.h>

#include "conn_parts.h"
#include "tests/unit/suite.h"

static void take(bool complete, unsigned count)
{
	uint32_t words[CKT_MODULES_MAX];
	for (unsigned i = 0; i < count; i++)
		words[i] = 0x01020304 + i;
	ckt_module_hints_take(&ckt_conn.module_hints,
		&(struct ckt_modules_args){.complete = complete,
			.hashes = {.hashes_len = count, .hashes_val = count ? words : NULL}});
}

static enum ckt_module_hint look(uint8_t last)
{
	uint8_t hash[32] = {1, 2, 3, last, 99};
	return ckt_call_module_hint(hash);
}

static void test_hints(void)
{
	int peer = parts_open();
	IS(look(4), CKT_MODULE_UNKNOWN);
	take(false, 2);
	IS(look(4), CKT_MODULE_KEPT);
	IS(look(5), CKT_MODULE_KEPT);
	IS(look(6), CKT_MODULE_UNKNOWN);
	take(true, 1);
	IS(look(4), CKT_MODULE_KEPT);
	IS(look(5), CKT_MODULE_NOT_KEPT);
	take(true, 0);
	IS(look(4), CKT_MODULE_NOT_KEPT);
	take(true, CKT_MODULES_MAX);
	IS(look(255), CKT_MODULE_KEPT);
	/* The next server has told nothing. */
	ckt_module_hints_forget(&ckt_conn.module_hints);
	IS(look(4), CKT_MODULE_UNKNOWN);
	parts_close(peer);
}

UNIT_SUITE(module_hints, {"hints", test_hints})
