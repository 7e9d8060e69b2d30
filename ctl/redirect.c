/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl redirect SESSION --to ADDRESS: tells the client on this host where its session lives
 * now.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ctl/client_address.h"
#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/session.h"

int ckt_ctl_redirect(const struct ckt_ctl_args *args)
{
	struct ckt_address address;
	char message[1200] = "write host, host:port or unix:/path";
	const char *session = args->words[0];
	if (!args->to || ckt_address_parse(args->to, &address, message, sizeof message) ||
		address.type == CKT_ADDRESS_FILE) {
		fprintf(stderr, "cricketctl: --to: '%s' is not valid: %s\n",
			args->to ? args->to : "", message);
		return CKT_EXIT_USAGE;
	}
	/*
	 * A file of another name would be read by nobody: the id is needed whole, and there is no
	 * server to ask for the rest.
	 */
	if (ckt_ctl_check_session(session) != CKT_EXIT_DONE)
		return CKT_EXIT_NO_SESSION;
	if (strlen(session) != CKT_SESSION_ID_SIZE) {
		fprintf(stderr,
			"cricketctl: '%s' is not a complete session ID: write all %d digits\n",
			session, CKT_SESSION_ID_SIZE);
		return CKT_EXIT_NO_SESSION;
	}
	if (ckt_ctl_state_write(session, args->to, message, sizeof message)) {
		fprintf(stderr, "cricketctl: %s\n", message);
		return CKT_EXIT_REFUSED;
	}
	if (args->json)
		return ckt_ctl_json_print(
			json_pack("{s:s, s:s}", "session", session, "address", args->to));
	return CKT_EXIT_DONE;
}
