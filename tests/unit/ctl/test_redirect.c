/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/redirect.c: cricketctl redirect: a whole id and an address that a client can use, or nothing
 * is written.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"

static void test_redirect(void)
{
	static const struct {
		const char *session, *to;
		int status;
	} cases[] = {
		{"0123456789ab", "host:7350", 0},
		{"0123456789ab", "unix:/s", 0},
		{"0123456789ab", NULL, 2},
		{"0123456789ab", "host:99999", 2},
		{"0123456789ab", "file:/x", 2},
		{"0123", "host", 4},
		{"0123456789AB", "host", 4},
		{"../../../x", "host", 4},
	};
	setenv("CRICKET_STATE_DIR", path_in("redirect"), 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		begin();
		IS(run(ckt_ctl_redirect, (struct ckt_ctl_args){.to = cases[i].to}, cases[i].session,
			   NULL),
			cases[i].status);
		IS(seen_count, 0); /* no server is needed */
		if (!cases[i].status)
			HAS(read_file(path_in("redirect/0123456789ab")), cases[i].to);
		else
			YES(*err);
	}
	TEXT(read_file(path_in("redirect/0123456789ab")), "unix:/s\n");
	IS(run(ckt_ctl_redirect, (struct ckt_ctl_args){.to = "h:1", .json = true}, "0123456789ab",
		   NULL),
		CKT_EXIT_DONE);
	HAS(out, "\"address\": \"h:1\"");
	write_file(path_in("notdir"), "x");
	setenv("CRICKET_STATE_DIR", path_in("notdir/x"), 1);
	IS(run(ckt_ctl_redirect, (struct ckt_ctl_args){.to = "h:1"}, "0123456789ab", NULL),
		CKT_EXIT_REFUSED);
	unsetenv("CRICKET_STATE_DIR");
}

UNIT_SUITE(redirect, {"redirect", test_redirect})
