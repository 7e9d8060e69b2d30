/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/owners.c: names of owners, of a server that knows them and of one that does not. */
#include <stdbool.h>
#include <string.h>

#include "ctl/owners.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/identity.h"
#include "rpc/net.h"

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

static void test_names(void)
{
	static ckt_control_owner known[] = {{(char *)"uid:7", (char *)""},
		{(char *)"token:alice", (char *)"vision"}, {(char *)"", (char *)""}};
	static ckt_control_owners_res res = {.owners = {COUNT(known), known}};
	const uint32_t numbers[] = {7, 0x80000001, 0x80000002};
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_owners owners;
	ckt_control_owners_args asked = {0};
	begin();
	replies[CKT_CONTROL_OWNERS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_owners_res, &res, NULL};
	ckt_ctl_owners_read(&args, numbers, COUNT(numbers), &owners);
	MUST(decode(0, (xdrproc_t)xdr_ckt_control_owners_args, &asked), true);
	IS(asked.owners.owners_len, COUNT(numbers));
	IS(asked.owners.owners_val[1], 0x80000001);
	xdr_free((xdrproc_t)xdr_ckt_control_owners_args, (char *)&asked);
	TEXT(ckt_ctl_owner_name(&owners, 0, 7), "uid:7");
	TEXT(ckt_ctl_owner_name(&owners, 1, 0x80000001), "token:alice");
	TEXT(ckt_ctl_owner_project(&owners, 1), "vision");
	TEXT(ckt_ctl_owner_name(&owners, 2, 0x80000002), "-");
	ckt_ctl_owners_free(&owners);
	/* A server of an earlier version ends the connection. */
	replies[CKT_CONTROL_OWNERS].answer = hang_up;
	ckt_ctl_owners_read(&args, numbers, COUNT(numbers), &owners);
	TEXT(ckt_ctl_owner_name(&owners, 0, 7), "uid:7");
	TEXT(ckt_ctl_owner_name(&owners, 1, CKT_UID_UNKNOWN), "-");
	TEXT(ckt_ctl_owner_project(&owners, 0), "");
	ckt_ctl_owners_free(&owners);
	/* Nobody is asked about nobody. */
	unsigned calls = seen_count;
	ckt_ctl_owners_read(&args, numbers, 0, &owners);
	IS(seen_count, calls);
	ckt_ctl_owners_free(&owners);
}

UNIT_SUITE(owners, {"names", test_names})
