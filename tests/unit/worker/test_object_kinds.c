/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/object_kinds.c: every kind of object that the worker can have, and every
 * step that a journal can hold, has its place in one table, and in one only.  The kinds are read
 * from the headers that number them, so that a new one without a table is found here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/handle.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/suite.h"

/* The numbers of `PREFIX_... = number` in a header of the source tree, up to a line with `end`. */
static unsigned numbers(
	const char *header, const char *prefix, const char *end, unsigned *ret_list, unsigned room)
{
	char path[4096], line[256];
	unsigned count = 0;
	snprintf(path, sizeof path, "%s/%s", SOURCE_DIR, header);
	FILE *file = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (fgets(line, sizeof line, file) && !strstr(line, end)) {
		char *at = line + strspn(line, "\t ");
		char *equals = strncmp(at, prefix, strlen(prefix)) ? NULL : strstr(at, " = ");
		unsigned number = equals ? (unsigned)strtoul(equals + 3, NULL, 10) : 0;
		if (number && count < room)
			ret_list[count++] = number;
	}
	fclose(file);
	return count;
}

static void test_handles(void)
{
	unsigned list[64];
	unsigned count =
		numbers("rpc/handle.h", "CKT_KIND_", "only the client knows", list, COUNT(list));
	YES(count >= 15);
	for (unsigned i = 0; i < count; i++) {
		unsigned tables = 0;
		for (size_t k = 0; ckt_object_kinds[k]; k++)
			tables += ckt_object_kinds[k]->handles >> list[i] & 1;
		if (tables != 1)
			printf("kind %u of rpc/handle.h has %u tables of operations, not one\n",
				list[i], tables);
		IS(tables, 1);
		CU_ASSERT_PTR_NOT_NULL(ckt_object_kind_of(list[i]));
	}
	CU_ASSERT_PTR_NULL(ckt_object_kind_of(CKT_KIND_USER_OBJECT));
	CU_ASSERT_PTR_NULL(ckt_object_kind_of(CKT_KIND_NONE));
}

static void test_steps(void)
{
	unsigned list[64];
	unsigned count = numbers("checkpoint/journal.h", "CKT_JOURNAL_", "};", list, COUNT(list));
	YES(count >= 13);
	for (unsigned i = 0; i < count; i++) {
		unsigned tables = 0;
		for (size_t k = 0; ckt_object_kinds[k]; k++)
			for (const struct ckt_journal_step *step = ckt_object_kinds[k]->steps;
				step && step->replay; step++)
				tables += step->kind == list[i];
		if (tables != 1)
			printf("step %u of checkpoint/journal.h is in %u tables, not one\n",
				list[i], tables);
		IS(tables, 1);
		const struct ckt_journal_step *step = ckt_journal_step_of(list[i]);
		YES(step && step->kind == list[i]);
	}
	CU_ASSERT_PTR_NULL(ckt_journal_step_of(0));
	CU_ASSERT_PTR_NULL(ckt_journal_step_of(63));
}

/* An object that is saved is made again: by the table, by a step, or with a list of its own. */
static void test_whole(void)
{
	for (size_t k = 0; ckt_object_kinds[k]; k++) {
		const struct ckt_object_kind *kind = ckt_object_kinds[k];
		CU_ASSERT_PTR_NOT_NULL_FATAL(kind->name);
		bool made = kind->load || kind->load_rest || kind->steps;
		bool saved = kind->save || kind->save_rest;
		YES(made);
		if (kind->handles)
			YES(saved);
		if (kind->load)
			YES(kind->list != 0);
	}
}

UNIT_SUITE(object_kinds, {"handles", test_handles}, {"steps", test_steps}, {"whole", test_whole})
