/* Looking kinds of objects up; see object_kind.h. */
#include "checkpoint/object_kind.h"

const struct ckt_object_kind *ckt_object_kind_of(unsigned handle_kind)
{
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind; kind++)
		if ((*kind)->handles >> handle_kind & 1)
			return *kind;
	return NULL;
}

const struct ckt_journal_step *ckt_journal_step_of(unsigned wanted)
{
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind; kind++)
		for (const struct ckt_journal_step *step = (*kind)->steps; step && step->replay;
			step++)
			if (step->kind == wanted)
				return step;
	return NULL;
}
