/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/kill.c: cricketctl kill: one call, and what the server answers is the exit code. */
#include <rpc/rpc.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static void test_kill(void)
{
	static const struct {
		ckt_control_status answer;
		int status;
	} cases[] = {{CKT_CONTROL_OK, 0}, {CKT_CONTROL_REFUSED, 1}, {CKT_CONTROL_NO_SESSION, 4},
		{CKT_CONTROL_AMBIGUOUS, 4}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		ckt_control_result result = {cases[i].answer, (char *)"that is why"};
		ckt_control_session_args asked = {0};
		begin();
		replies[CKT_CONTROL_KILL] =
			(struct reply){(xdrproc_t)xdr_ckt_control_result, &result, NULL};
		IS(run(ckt_ctl_kill, (struct ckt_ctl_args){0}, "01ab", NULL), cases[i].status);
		calls_are((uint32_t[]){CKT_CONTROL_KILL}, 1);
		YES(decode(0, (xdrproc_t)xdr_ckt_control_session_args, &asked));
		TEXT(asked.session, "01ab");
		xdr_free((xdrproc_t)xdr_ckt_control_session_args, (char *)&asked);
		TEXT(out, "");
		IS(strstr(err, "that is why") != NULL, cases[i].status != 0);
	}
	begin();
	IS(run(ckt_ctl_kill, (struct ckt_ctl_args){.json = true}, "01ab", NULL), CKT_EXIT_DONE);
	HAS(out, "\"killed\": \"01ab\"");
	begin();
	IS(run(ckt_ctl_kill, (struct ckt_ctl_args){0}, "nobody", NULL), CKT_EXIT_NO_SESSION);
	IS(seen_count, 0); /* it cannot be one: nobody is asked */
}

UNIT_SUITE(kill, {"kill", test_kill})
