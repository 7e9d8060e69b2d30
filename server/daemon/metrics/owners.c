/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of owners; see owners.h. */
#include "server/daemon/metrics/owners.h"

#include <stdio.h>
#include <string.h>

#include "server/daemon/policy/tokens.h"
#include "server/daemon/server.h"

_Static_assert((int)CKT_METRICS_OWNER_NAME >= (int)CKT_OWNER_NAME_SIZE, "names fit");

static struct {
	uint32_t owner;
	char name[CKT_METRICS_OWNER_NAME];
	struct ckt_session_metrics sums;
	uint64_t turn_ns[CKT_DEVICES_MAX];
} owners[CKT_METRICS_OWNERS];
static unsigned count;
static struct ckt_session_metrics others;
static uint64_t others_turn_ns[CKT_DEVICES_MAX];

unsigned ckt_metrics_owner_count(void)
{
	return count + 1;
}

const char *ckt_metrics_owner_name(unsigned index)
{
	return index < count ? owners[index].name : "other";
}

struct ckt_session_metrics *ckt_metrics_owner_at(unsigned index)
{
	return index < count ? &owners[index].sums : &others;
}

uint64_t *ckt_metrics_owner_turns(unsigned index)
{
	return index < count ? owners[index].turn_ns : others_turn_ns;
}

unsigned ckt_metrics_owner_index(struct ckt_server *server, uint32_t owner)
{
	char name[CKT_OWNER_NAME_SIZE];
	unsigned index = 0;
	while (index < count && owners[index].owner != owner)
		index++;
	if (index < count || count == CKT_METRICS_OWNERS)
		return index;
	/* Tokens that are gone have one name: two samples with the same labels would be an error. */
	ckt_owner_text(server, owner, name);
	for (index = 0; index < count; index++)
		if (strcmp(owners[index].name, name) == 0)
			return index;
	owners[count].owner = owner;
	snprintf(owners[count].name, sizeof owners[count].name, "%s", name);
	return count++;
}

struct ckt_session_metrics *ckt_metrics_owner_sums(struct ckt_server *server, uint32_t owner)
{
	return ckt_metrics_owner_at(ckt_metrics_owner_index(server, owner));
}

void ckt_metrics_owners_fini(void)
{
	memset(owners, 0, sizeof owners);
	memset(&others, 0, sizeof others);
	memset(others_turn_ns, 0, sizeof others_turn_ns);
	count = 0;
}
