/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/decide.c: cricketctl decide: what is a decision, and what the server answers. */
#include <rpc/rpc.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_control_decide_res res;

static void answer(ckt_control_status status, const char *message)
{
	begin();
	res = (ckt_control_decide_res){{status, (char *)message}, (char *)""};
	replies[CKT_CONTROL_DECIDE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_decide_res, &res, NULL};
}

static ckt_control_decide_args asked(unsigned call)
{
	static ckt_control_decide_args args;
	xdr_free((xdrproc_t)xdr_ckt_control_decide_args, (char *)&args);
	memset(&args, 0, sizeof args);
	YES(decode(call, (xdrproc_t)xdr_ckt_control_decide_args, &args));
	return args;
}

static void test_words(void)
{
	answer(CKT_CONTROL_OK, "");
	IS(run(ckt_ctl_decide, (struct ckt_ctl_args){0}, "57", "grant", "3", NULL), CKT_EXIT_DONE);
	IS(asked(0).event, 57);
	IS(asked(0).request, 3);
	IS(asked(0).action, CKT_CONTROL_GRANT);
	IS(run(ckt_ctl_decide, (struct ckt_ctl_args){0}, "57", "wait", NULL), CKT_EXIT_DONE);
	IS(asked(1).action, CKT_CONTROL_WAIT);
	IS(run(ckt_ctl_decide, (struct ckt_ctl_args){0}, "session=0123", "swap-out", NULL),
		CKT_EXIT_DONE);
	TEXT(asked(2).session, "0123");
	IS(asked(2).event, 0);
	IS(asked(2).action, CKT_CONTROL_MOVE_OUT);
	IS(run(ckt_ctl_decide, (struct ckt_ctl_args){0}, "session=0123", "end-turn", NULL),
		CKT_EXIT_DONE);
	IS(asked(3).action, CKT_CONTROL_END_TURN);
	answer(CKT_CONTROL_REFUSED, "event 57 is decided");
	IS(run(ckt_ctl_decide, (struct ckt_ctl_args){0}, "57", "refuse", "3", NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "event 57 is decided");
	asked(0);
}

static void test_wrong(void)
{
	static const char *const wrong[][3] = {{"57", "grant", NULL}, {"57", "keep", "3"},
		{"0", "grant", "3"}, {"57", "grant", "0"}, {"57", "wait", "3"},
		{"99999999999999999999", "wait", NULL}, {"session=", "grant", NULL},
		{"session=0123", "grant", "3"}, {"session=0123456789abc", "grant", NULL},
		{"0123", NULL, NULL}, {"x", "wait", NULL}};
	answer(CKT_CONTROL_OK, "");
	for (size_t i = 0; i < COUNT(wrong); i++) {
		IS(run(ckt_ctl_decide, (struct ckt_ctl_args){0}, wrong[i][0], wrong[i][1],
			   wrong[i][2], NULL),
			CKT_EXIT_USAGE);
		HAS(err, "this is no decision");
	}
	IS(seen_count, 0);
}

/* A decision a line; one that is none does not end it. */
static void test_lines(void)
{
	int old = dup(STDIN_FILENO);
	answer(CKT_CONTROL_OK, "");
	write_file(path_in("decisions"), "57 grant 3\nnonsense\n\n58 wait\na b c d e f\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(freopen(path_in("decisions"), "r", stdin));
	IS(run(ckt_ctl_decide, (struct ckt_ctl_args){0}, "-", NULL), CKT_EXIT_DONE);
	TEXT(out, "done\nrefused\nrefused\ndone\nrefused\n");
	IS(seen_count, 2);
	IS(asked(1).event, 58);
	clearerr(stdin);
	dup2(old, STDIN_FILENO);
	close(old);
}

UNIT_SUITE(decide, {"words", test_words}, {"wrong", test_wrong}, {"lines", test_lines})
