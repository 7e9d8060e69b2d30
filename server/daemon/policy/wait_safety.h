/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether sessions that wait for memory can all finish: the banker's algorithm over each GPU's budget.
 *
 * A state is safe if there is an order in which every session gets the most that it may still ask
 * for, and then gives back all that it has.  The most is known of a session with a declared limit
 * (a rule with memory=, --session-memory, session-memory of its token): the limit, less what its
 * owner has by then.  Of other sessions only what they wait for is known; one that does not wait is
 * taken to finish with what it has.  So a program without a declared limit can be stuck after all,
 * and ckt_wait_model_stuck finds that out.
 *
 * A session that is swapped out when others need its memory can always finish.
 *
 * A declared limit counts on the GPUs that the session has a context on or asks for.
 *
 * Threading: the caller's.  A model is a copy: it holds while the ledger does not change, except by
 * ckt_wait_model_grant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/daemon/policy/ledger.h"

struct ckt_wait_party;

struct ckt_wait_model {
	const struct ckt_ledger *ledger;
	unsigned gpus[CKT_DEVICES_MAX], gpu_count; /* with a budget, and in use */
	struct ckt_wait_party *parties;
	size_t count;
	struct ckt_wait_owners {
		const struct ckt_limit_rule *rule;
		uint32_t owner;
		uint64_t used[CKT_DEVICES_MAX]; /* as gpus */
	} * owners;
	size_t owner_count, owner_room;
};

/* 0 or -ENOMEM.  In every case to be freed. */
int ckt_wait_model_make(struct ckt_wait_model *model, const struct ckt_ledger *ledger);
void ckt_wait_model_free(struct ckt_wait_model *model);
/* The holder waits for so many bytes more.  Beyond 64 bits: as many as there are. */
void ckt_wait_model_want(struct ckt_wait_model *model, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes);
/* Whether the state is safe once the holder has so many bytes more, of which it waited for waited. */
bool ckt_wait_model_is_safe(struct ckt_wait_model *model, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes, uint64_t waited);
/*
 * Whether the sessions can finish beside one more context on the GPU, or could not before: that one
 * can then finish last.
 */
bool ckt_wait_model_admits(struct ckt_wait_model *model, unsigned gpu);
/* The holder has them now, as in the ledger. */
void ckt_wait_model_grant(struct ckt_wait_model *model, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes, uint64_t waited);
/*
 * Whether the holder cannot go on, whatever those do that can.  Of all that are stuck, the others
 * wait for each other as well.  Precondition: ckt_wait_model_find_stuck.
 */
bool ckt_wait_model_is_stuck(
	const struct ckt_wait_model *model, const struct ckt_ledger_holder *holder);
/* How many cannot. */
size_t ckt_wait_model_find_stuck(struct ckt_wait_model *model);
/* Whether a limit says the most that the session may have of each GPU; *ret_bytes. */
bool ckt_wait_declared(const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder,
	uint64_t *ret_bytes);
