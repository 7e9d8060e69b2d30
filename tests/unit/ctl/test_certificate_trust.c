/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/certificate/certificate_trust.c: a server that is asked for its key; the rest is in
 * tests/server/test_certificate.py.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/certificate/certificate_trust.h"
#include "ctl/subcommands.h"
#include "inside.h"

static char asked[128];
static int answer;

static int ask(const char *of, uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE], char *ret_message,
	size_t message_size)
{
	snprintf(asked, sizeof asked, "%s", of);
	memset(ret_fingerprint, 1, CKT_FINGERPRINT_SIZE);
	if (answer)
		snprintf(ret_message, message_size, "cannot connect");
	return answer;
}

static void test_network(void)
{
	struct ckt_ctl_args args = {0};
	begin();
	setenv("XDG_CONFIG_HOME", directory, 1);
	setenv("CRICKET_TLS_FIRST", "refuse", 1);
	IS(run(ckt_ctl_certificate, args, "trust", "node:7351", NULL), CKT_EXIT_REFUSED);
	HAS(err, "node: this program cannot ask it for its key");
	ckt_ctl_ask_fingerprint = ask;
	IS(run(ckt_ctl_certificate, args, "trust", "node:7351", NULL), CKT_EXIT_REFUSED);
	TEXT(asked, "node:7351");
	HAS(err, "run cricketctl certificate trust node --fingerprint SHA256:AQEB");
	setenv("CRICKET_TLS_FIRST", "accept", 1);
	answer = -ECONNREFUSED;
	IS(run(ckt_ctl_certificate, args, "trust", "node:7351", NULL), CKT_EXIT_REFUSED);
	HAS(err, "cannot connect");
	answer = 0;
	IS(run(ckt_ctl_certificate, args, "trust", "[fd00::7]:7351", NULL), CKT_EXIT_DONE);
	HAS(err, "server 'fd00::7' is trusted from now on by its key SHA256:AQEB");
	HAS(read_file(path_in("cricket/known_servers")), "fd00::7 SHA256:AQEB");
	ckt_ctl_ask_fingerprint = NULL;
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("CRICKET_TLS_FIRST");
	IS(seen_count, 0);
}

UNIT_SUITE(certificate_trust, {"network", test_network})
