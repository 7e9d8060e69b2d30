/* SPDX-License-Identifier: Apache-2.0 */
/* The journal; see journal.h. */
#include "checkpoint/journal.h"

#include <stdlib.h>

#include "base/grow.h"
#include "checkpoint/object_kind.h"
#include "rpc/gen/cuda_driver.h"

enum { JOURNAL_MAX = 100000 };

/* Whether the entry only repeats the last one, or replaces it. */
static bool merge(struct ckt_journal *journal, const struct ckt_journal_entry *entry)
{
	struct ckt_journal_entry *last = journal->count ? &journal->list[journal->count - 1] : NULL;
	if (!last || last->kind != entry->kind || last->context != entry->context ||
		last->flags != entry->flags || last->device != entry->device)
		return false;
	const struct ckt_journal_step *step = ckt_journal_step_of(entry->kind);
	if (!step || step->merge == CKT_JOURNAL_APART)
		return false;
	last->id = entry->id + (step->merge == CKT_JOURNAL_ADDS ? last->id : 0);
	return true;
}

bool ckt_journal_add(struct ckt_journal *journal, struct ckt_journal_entry entry)
{
	if (merge(journal, &entry))
		return true;
	if (journal->count == journal->room) {
		size_t room = journal->room ? journal->room * 2 : 64;
		struct ckt_journal_entry *list =
			room > JOURNAL_MAX ? NULL : realloc(journal->list, room * sizeof *list);
		/*
		 * A restore then loads only the live modules, and checks their addresses as always.
		 */
		if (!list)
			return false;
		journal->list = list;
		journal->room = room;
	}
	journal->list[journal->count++] = entry;
	return true;
}

void ckt_journal_array_ended(struct ckt_journal *journal, uint64_t id)
{
	for (size_t i = journal->count; i-- > journal->saved;) {
		struct ckt_journal_entry *entry = &journal->list[i];
		if (entry->kind == CKT_JOURNAL_MODULE_LOAD ||
			entry->kind == CKT_JOURNAL_CONTEXT_CREATE ||
			entry->kind == CKT_JOURNAL_DIGEST)
			break;
		if (entry->kind != CKT_JOURNAL_ARRAY_CREATE || entry->id != id)
			continue;
		for (; i + 1 < journal->count; i++)
			journal->list[i] = journal->list[i + 1];
		journal->count--;
		return;
	}
	ckt_journal_add(
		journal, (struct ckt_journal_entry){.kind = CKT_JOURNAL_ARRAY_DESTROY, .id = id});
}
