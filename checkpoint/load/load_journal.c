/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays the journal of a session: modules, contexts, arrays and everything else that moves the
 * addresses of later objects.
 */
#include <errno.h>

#include "base/log.h"
#include "checkpoint/fault.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/object_kind.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"

/* For tests: another module takes the addresses of the next variables. */
static void take_place(struct ckt_loading *l)
{
	static const char ptx[] =
		".version 6.4\n.target sm_70\n.address_size 64\n.visible .global .align 8 .b8 place[65536];\n";
	CUmodule module;
	if (!ckt_fault_fails(CKT_FAULT_RESTORE_MOVED) ||
		ckt_session_operations.use_primary(l->worker, 0))
		return;
	if (ckt_driver.cuModuleLoadDataEx(&module, ptx, 0, NULL, NULL))
		ckt_warning("CRICKET_FAULT names a failure that cannot be made here");
}

static int replay(struct ckt_loading *l, const ckt_image_journal *entry)
{
	const struct ckt_journal_step *step = ckt_journal_step_of(entry->kind);
	return step ? step->replay(l, entry)
		    : ckt_load_refuse(l, -EPROTONOSUPPORT,
			      "the image holds a journal entry (%u) that this Cricket "
			      "does not know",
			      entry->kind);
}

int ckt_load_journal(struct ckt_loading *l)
{
	ckt_image_journal part;
	int first = ckt_preload_replayed(&l->image, &part), error = 0;
	if (first < 0)
		return ckt_load_refuse(l, first,
			"the session's module history does not match the preloaded "
			"image");
	if (!ckt_preload_active())
		take_place(l);
	for (unsigned i = (unsigned)first; i < l->image.journal.journal_len && !error; i++)
		error = replay(l, i == (unsigned)first ? &part : &l->image.journal.journal_val[i]);
	return error;
}
