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
