/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl kill SESSION */

#include <jansson.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"

enum { TIMEOUT_MS = 30000 };

int ckt_ctl_kill(const struct ckt_ctl_args *args)
{
	ckt_control_session_args session = {.session = args->words[0]};
	ckt_control_result result = {0};
	int status = ckt_ctl_ask(args, args->words[0], CKT_CONTROL_KILL,
		(xdrproc_t)xdr_ckt_control_session_args, &session,
		(xdrproc_t)xdr_ckt_control_result, &result, TIMEOUT_MS);
	if (status != CKT_EXIT_DONE)
		return status;
	status = ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	if (status == CKT_EXIT_DONE && args->json)
		status = ckt_ctl_json_print(
			json_pack("{s:o}", "killed", ckt_ctl_json_text(args->words[0])));
	return status;
}
