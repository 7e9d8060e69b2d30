/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/listing.c: pages of one procedure, a session's entries in them, and a server that never ends or hangs up. */
#include <stdbool.h>
#include <string.h>

#include "ctl/listing.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"

static const struct ckt_ctl_listing_kind kind =
	CKT_CTL_LISTING_KIND(CKT_CONTROL_TURNS, ckt_control_turns_res, turns);
static ckt_control_turn turns[] = {
	{.session = (char *)"0123456789ab", .gpu = 1},
	{.session = (char *)"0123456789ab", .gpu = 2},
	{.session = (char *)"456789abcdef", .gpu = 3},
	{.session = (char *)"fffffffffff0", .gpu = 4},
};
static bool endless;

/* Two entries, then one and one; or the first two for ever. */
static bool list(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_turns_res res;
	ckt_control_list_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_list_args, &asked) == 0);
	res = (ckt_control_turns_res){.turns = {2, turns}, .more = true};
	if (*asked.after && !endless) {
		bool second = strcmp(asked.after, turns[1].session) == 0;
		res.turns.turns_val = &turns[second ? 2 : 3];
		res.turns.turns_len = 1;
		res.more = second;
	}
	xdr_free((xdrproc_t)xdr_ckt_control_list_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_turns_res;
	*ret_res = &res;
	return true;
}

/* The second page does not come. */
static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	return seen_count == 1 && list(args, fd, ret_xdr, ret_res);
}

/* A session's entries are those of these GPUs. */
static void gpus_are(
	const struct ckt_ctl_listing *listing, const char *session, const u_int *gpus, int count)
{
	const ckt_control_turn *turn = NULL;
	for (int i = 0; i < count; i++) {
		turn = ckt_ctl_listing_next(listing, session, turn);
		CU_ASSERT_PTR_NOT_NULL_FATAL(turn);
		IS(turn->gpu, gpus[i]);
	}
	CU_ASSERT_PTR_NULL(ckt_ctl_listing_next(listing, session, turn));
}

static void test_pages(void)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_listing listing;
	begin();
	endless = false;
	replies[CKT_CONTROL_TURNS].answer = list;
	ckt_ctl_listing_read(&args, &kind, &listing);
	IS(seen_count, 3);
	IS(listing.count, 3);
	gpus_are(&listing, "0123456789ab", (const u_int[]){1, 2}, 2);
	gpus_are(&listing, "456789abcdef", (const u_int[]){3}, 1);
	gpus_are(&listing, "fffffffffff0", (const u_int[]){4}, 1);
	CU_ASSERT_PTR_NULL(ckt_ctl_listing_next(&listing, "0123456789a", NULL));
	ckt_ctl_listing_free(&listing);
	IS(listing.count, 0);
}

static void test_broken(void)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_listing listing;
	begin();
	endless = true;
	replies[CKT_CONTROL_TURNS].answer = list;
	ckt_ctl_listing_read(&args, &kind, &listing);
	/* The same again: it is asked no more. */
	IS(seen_count, 2);
	ckt_ctl_listing_free(&listing);
	/* What has come is kept. */
	begin();
	replies[CKT_CONTROL_TURNS].answer = hang_up;
	ckt_ctl_listing_read(&args, &kind, &listing);
	IS(listing.count, 1);
	gpus_are(&listing, "0123456789ab", (const u_int[]){1, 2}, 2);
	ckt_ctl_listing_free(&listing);
	ckt_ctl_listing_read(&args, &kind, &listing);
	IS(listing.count, 0);
	CU_ASSERT_PTR_NULL(ckt_ctl_listing_next(&listing, "0123456789ab", NULL));
	ckt_ctl_listing_free(&listing);
}

UNIT_SUITE(listing, {"pages", test_pages}, {"broken", test_broken})
