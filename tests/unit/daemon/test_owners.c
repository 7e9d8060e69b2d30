/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/metrics/owners.c: the first owners have sums of their own, the others share some. */
#include <stdio.h>

#include "inside.h"
#include "server/daemon/metrics/owners.h"

static void test_owners(void)
{
	char name[32];
	ckt_metrics_owners_fini();
	IS(ckt_metrics_owner_count(), 1);
	TEXT(ckt_metrics_owner_name(0), "other");
	for (unsigned uid = 0; uid < CKT_METRICS_OWNERS; uid++)
		IS(ckt_metrics_owner_index(&server, 5000 + uid), uid);
	IS(ckt_metrics_owner_count(), CKT_METRICS_OWNERS + 1);
	for (unsigned uid = 0; uid < CKT_METRICS_OWNERS; uid++) {
		snprintf(name, sizeof name, "uid:%u", 5000 + uid);
		IS(ckt_metrics_owner_index(&server, 5000 + uid), uid);
		TEXT(ckt_metrics_owner_name(uid), name);
	}
	/* No room for more. */
	IS(ckt_metrics_owner_index(&server, 1), CKT_METRICS_OWNERS);
	IS(ckt_metrics_owner_index(&server, CKT_UID_UNKNOWN), CKT_METRICS_OWNERS);
	CU_ASSERT_PTR_EQUAL(ckt_metrics_owner_sums(&server, 1), ckt_metrics_owner_sums(&server, 2));
	CU_ASSERT_PTR_NOT_EQUAL(
		ckt_metrics_owner_sums(&server, 1), ckt_metrics_owner_sums(&server, 5000));
	ckt_metrics_owners_fini();
	IS(ckt_metrics_owner_index(&server, CKT_UID_UNKNOWN), 0);
	TEXT(ckt_metrics_owner_name(0), "nobody");
	/* Two tokens that the file no longer has: one name, and so one place. */
	IS(ckt_metrics_owner_index(&server, 0x80000001), 1);
	IS(ckt_metrics_owner_index(&server, 0x80000002), 1);
	IS(ckt_metrics_owner_count(), 3);
	ckt_metrics_owners_fini();
}

UNIT_SUITE(owners, {"owners", test_owners})
