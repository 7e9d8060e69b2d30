/* SPDX-License-Identifier: Apache-2.0 */
/* The journal is short: what repeats is one entry. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/journal.h"
#include "tests/unit/worker/inside.h"

static struct ckt_journal_entry *last(void)
{
	return &ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1];
}

static void test_merge(void)
{
	static const struct {
		struct ckt_journal_entry entry;
		bool added;
		uint64_t id; /* of the last entry then */
	} steps[] = {
		{{.kind = CKT_JOURNAL_MODULE_LOAD, .id = 1}, true, 1},
		{{.kind = CKT_JOURNAL_MODULE_LOAD, .id = 1}, true,
			1}, /* loads never count as one */
		{{.kind = CKT_JOURNAL_STREAMS, .id = 2, .context = 5}, true, 2},
		{{.kind = CKT_JOURNAL_STREAMS, .id = 3, .context = 5}, false, 5}, /* they add up */
		{{.kind = CKT_JOURNAL_STREAMS, .id = 1, .context = 6}, true, 1},
		{{.kind = CKT_JOURNAL_STREAMS, .id = 1, .context = 6, .flags = 1}, true, 1},
		{{.kind = CKT_JOURNAL_STREAMS, .id = 1, .context = 6, .flags = 1, .device = 1},
			true, 1},
		{{.kind = CKT_JOURNAL_EVENTS, .id = 1, .context = 6, .flags = 1, .device = 1}, true,
			1},
		{{.kind = CKT_JOURNAL_EVENTS, .id = 9, .context = 6, .flags = 1, .device = 1},
			false, 10},
		{{.kind = CKT_JOURNAL_LIMIT, .id = 1024, .context = 6, .flags = 0}, true, 1024},
		{{.kind = CKT_JOURNAL_LIMIT, .id = 512, .context = 6, .flags = 0}, false,
			512}, /* the last one holds */
		{{.kind = CKT_JOURNAL_LIMIT, .id = 512, .context = 6, .flags = 2}, true, 512},
		{{.kind = CKT_JOURNAL_ARRAY_DESTROY, .id = 7}, true, 7},
		{{.kind = CKT_JOURNAL_ARRAY_DESTROY, .id = 7}, true, 7},
	};
	size_t before = ckt_worker.checkpoint.journal.count;
	for (size_t i = 0; i < COUNT(steps); i++) {
		size_t count = ckt_worker.checkpoint.journal.count;
		ckt_journal_add(&ckt_worker.checkpoint.journal, steps[i].entry);
		IS(ckt_worker.checkpoint.journal.count - count, steps[i].added);
		IS(last()->id, steps[i].id);
	}
	for (unsigned i = 0; i < 1000; i++)
		ckt_journal_add(&ckt_worker.checkpoint.journal,
			(struct ckt_journal_entry){.kind = CKT_JOURNAL_MODULE_UNLOAD, .id = i});
	IS(last()->id, 999);
	ckt_worker.checkpoint.journal.count = before;
}

static void add(struct ckt_journal *journal, enum ckt_journal_kind kind, uint64_t id)
{
	YES(ckt_journal_add(journal, (struct ckt_journal_entry){.kind = kind, .id = id}));
}

/* The others keep their order, and what stands in an image stays. */
static void test_array(void)
{
	struct ckt_journal journal = {0};
	add(&journal, CKT_JOURNAL_MODULE_LOAD, 1);
	for (uint64_t id = 2; id < 6; id++)
		add(&journal, CKT_JOURNAL_ARRAY_CREATE, id);
	ckt_journal_array_ended(&journal, 3);
	MUST(journal.count, 4);
	IS(journal.list[1].id, 2);
	IS(journal.list[2].id, 4);
	IS(journal.list[3].id, 5);
	/* A module has come after it. */
	add(&journal, CKT_JOURNAL_MODULE_LOAD, 6);
	ckt_journal_array_ended(&journal, 4);
	MUST(journal.count, 6);
	IS(journal.list[5].kind, CKT_JOURNAL_ARRAY_DESTROY);
	IS(journal.list[5].id, 4);
	/* An image that others build on has it. */
	add(&journal, CKT_JOURNAL_ARRAY_CREATE, 7);
	journal.saved = journal.count;
	ckt_journal_array_ended(&journal, 7);
	IS(journal.count, 8);
	IS(journal.list[7].kind, CKT_JOURNAL_ARRAY_DESTROY);
	free(journal.list);
}

UNIT_SUITE(journal, {"merge", test_merge}, {"array", test_array})
