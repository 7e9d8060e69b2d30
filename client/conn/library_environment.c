/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends variables of the program's environment to libraries that run in the worker
 * (rpc/library_environment.h).  Programs set them after their start (os.environ of Python), so the
 * client sends them before the first use of a library.  A program that sets none of them sends
 * nothing.
 */
#include "client/conn/library_environment.h"

#include <stdlib.h>

#include "client/conn/conn.h"
#include "base/fork.h"
#include "rpc/library_environment.h"
#include "base/log.h"
#include "rpc/net.h"

static void send_to(struct ckt_conn *conn, ckt_environment_args *args)
{
	struct ckt_reply reply;
	ckt_environment_res res = {0};
	CUresult result = ckt_conn_session_ask(
		conn, CKT_SESSION_ENVIRONMENT, (xdrproc_t)xdr_ckt_environment_args, args, &reply);
	if (!result) {
		if (ckt_net_decode(&reply.results, (xdrproc_t)xdr_ckt_environment_res, &res) ||
			res.status)
			result = CUDA_ERROR_INVALID_VALUE;
		ckt_call_reply_release(&reply);
	}
	/* A server that does not know this procedure has no libraries either. */
	if (result)
		ckt_warning("variables such as %s do not reach the libraries at %s (%d)",
			args->settings.settings_val[0].name, conn->address_text, res.status);
}

void ckt_conn_environment_send(void)
{
	static CKT_LOCK(lock);
	static bool sent;
	static ckt_setting settings[CKT_SETTINGS_MAX];
	ckt_environment_args args = {.settings = {0, settings}};
	const char *name;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; !sent && (name = ckt_library_environment_name(i)) &&
		args.settings.settings_len < CKT_SETTINGS_MAX;
		i++) {
		const char *value = getenv(name);
		if (!value)
			continue;
		if (ckt_library_environment_allows(name, value))
			settings[args.settings.settings_len++] =
				(ckt_setting){(char *)name, (char *)value};
		else
			ckt_log_user("%s: a value for the server's libraries holds only "
				     "letters, digits and .,:;=+^-, and at most %d of them: "
				     "ignoring it",
				name, CKT_LIBRARY_VALUE_MAX);
	}
	sent = true;
	for (unsigned i = 0; args.settings.settings_len && i < ckt_conn_count; i++)
		send_to(ckt_conns[i], &args);
	pthread_mutex_unlock(&lock);
}
