/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/audit/audit_sources.c: lines that a flood may cause, and the counts of the rest. */
#include <string.h>

#include "inside.h"
#include "server/daemon/audit/audit_sources.h"

static struct ckt_audit_sources sources;
static const struct ckt_audit_record refused = {
	.event = "refused", .peer = "local", .owner = "uid:7", .call = "hello", .reason = "no"};

static struct ckt_identity user(uint32_t uid)
{
	return (struct ckt_identity){.kind = CKT_IDENTITY_USER, .uid = uid};
}

static void test_burst(void)
{
	struct ckt_identity seven = user(7), eight = user(8);
	struct ckt_audit_record due;
	memset(&sources, 0, sizeof sources);
	YES(ckt_audit_sources_take(&sources, &seven, 2, &refused, 1000));
	YES(ckt_audit_sources_take(&sources, &seven, 2, &refused, 1100));
	for (int i = 0; i < 500; i++)
		NO(ckt_audit_sources_take(&sources, &seven, 2, &refused, 1200));
	/* Another source is another matter. */
	YES(ckt_audit_sources_take(&sources, &eight, 2, &refused, 1200));
	NO(ckt_audit_sources_due(&sources, 1999, &due));
	/* Its second is over, and the line that says so is still to come. */
	NO(ckt_audit_sources_take(&sources, &seven, 2, &refused, 2000));
	YES(ckt_audit_sources_due(&sources, 2000, &due));
	IS(due.count, 501);
	TEXT(due.event, "refused");
	TEXT(due.peer, "local");
	TEXT(due.owner, "uid:7");
	TEXT(due.call, "hello");
	TEXT(due.result, "refused");
	TEXT(due.reason, "no");
	NO(ckt_audit_sources_due(&sources, 2000, &due));
	/* That line was the first of the next second. */
	YES(ckt_audit_sources_take(&sources, &seven, 2, &refused, 2001));
	NO(ckt_audit_sources_take(&sources, &seven, 2, &refused, 2002));
	YES(ckt_audit_sources_due(&sources, 3000, &due));
	IS(due.count, 1);
	/* Later it starts anew. */
	YES(ckt_audit_sources_take(&sources, &seven, 2, &refused, 9000));
	YES(ckt_audit_sources_take(&sources, &seven, 2, &refused, 9000));
}

/* More sources than places: they share one, so that many addresses fill no disk either. */
static void test_shared(void)
{
	struct ckt_audit_record due;
	uint64_t written = 0, counted = 0;
	memset(&sources, 0, sizeof sources);
	for (uint32_t uid = 1; uid <= 1000; uid++) {
		struct ckt_identity one = user(uid);
		written += ckt_audit_sources_take(&sources, &one, 1, &refused, 5000);
	}
	IS(written, CKT_AUDIT_SOURCES + 1);
	while (ckt_audit_sources_due(&sources, 6000, &due)) {
		counted += due.count;
		TEXT(due.peer, "several");
		TEXT(due.owner, "");
	}
	IS(counted, 1000 - CKT_AUDIT_SOURCES - 1);
	/* Places whose second is over are free again. */
	struct ckt_identity late = user(5000);
	YES(ckt_audit_sources_take(&sources, &late, 1, &refused, 7000));
	NO(ckt_audit_sources_take(&sources, &late, 1, &refused, 7000));
	YES(ckt_audit_sources_due(&sources, 8000, &due));
	TEXT(due.owner, "uid:7");
}

static void test_owner(void)
{
	char text[CKT_AUDIT_OWNER_TEXT];
	struct ckt_identity identity = {.kind = CKT_IDENTITY_ADDRESS,
		.network = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7}};
	ckt_audit_source_owner(&server, &identity, text);
	TEXT(text, "host:10.0.0.7");
	identity = (struct ckt_identity){
		.kind = CKT_IDENTITY_ADDRESS, .network = {0x20, 0x01, 0x0d, 0xb8}};
	ckt_audit_source_owner(&server, &identity, text);
	TEXT(text, "host:2001:db8::/64");
	identity = user(1000);
	ckt_audit_source_owner(&server, &identity, text);
	TEXT(text, "uid:1000");
	server.token = (struct ckt_token){.bytes = "right", .size_bytes = 5};
	identity = ckt_identity_of_owner(ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME));
	ckt_audit_source_owner(&server, &identity, text);
	TEXT(text, "token:token");
	server.token.size_bytes = 0;
	identity = (struct ckt_identity){.kind = CKT_IDENTITY_NONE};
	ckt_audit_source_owner(&server, &identity, text);
	TEXT(text, "");
}

UNIT_SUITE(audit_sources, {"burst", test_burst}, {"shared", test_shared}, {"owner", test_owner})
