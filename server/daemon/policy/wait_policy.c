/* SPDX-License-Identifier: Apache-2.0 */
/* The table of policies; see wait_policy.h. */
#include "server/daemon/policy/wait_policy.h"

#include <stddef.h>
#include <string.h>

const struct ckt_wait_policy *const ckt_wait_policies[] = {
	&ckt_wait_fifo, &ckt_wait_best_fit, &ckt_wait_recent_use, &ckt_wait_random, NULL};

const struct ckt_wait_policy *ckt_wait_policy_find(const char *name)
{
	for (unsigned i = 0; ckt_wait_policies[i]; i++)
		if (strcmp(ckt_wait_policies[i]->name, name) == 0)
			return ckt_wait_policies[i];
	return NULL;
}

const char *ckt_memory_reason_text(enum ckt_memory_reason reason)
{
	static const char *const texts[CKT_MEMORY_REASONS] = {"the memory is there",
		"other sessions hold the memory",
		"sessions could wait for each other if it had the memory now",
		"an earlier request is first",
		"the GPU's budget or its owner's limit is too small for it",
		"no other session holds what is missing",
		"sessions wait for each other, and this one holds the most",
		"it waited for --wait-timeout", "an administrator or a scheduler decided so"};
	return reason < CKT_MEMORY_REASONS ? texts[reason] : "unknown";
}
