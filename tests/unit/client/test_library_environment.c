/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/library_environment.c: what of the program's environment is sent, once, to every
 * server; the connection is the test's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/conn/conn.h"
#include "client/conn/library_environment.h"
#include "rpc/net.h"
#include "tests/unit/suite.h"

static struct ckt_conn servers[2];
struct ckt_conn *ckt_conns[CKT_SERVERS_MAX] = {&servers[0], &servers[1]};
unsigned ckt_conn_count = 2;

static unsigned sent, values;
static char got[4][80];
static int status;

CUresult ckt_conn_session_ask(struct ckt_conn *conn, uint32_t proc, xdrproc_t xdr_args,
	void *opaque, struct ckt_reply *ret_reply)
{
	const ckt_environment_args *args = opaque;
	static uint8_t answer[4];
	IS(proc, CKT_SESSION_ENVIRONMENT);
	YES(conn == &servers[sent % 2]);
	YES(xdr_args == (xdrproc_t)xdr_ckt_environment_args);
	values = args->settings.settings_len;
	for (unsigned i = 0; i < values && i < 4; i++)
		snprintf(got[i], sizeof got[i], "%s=%s", args->settings.settings_val[i].name,
			args->settings.settings_val[i].value);
	sent++;
	ckt_put_u32(answer, (uint32_t)status);
	ret_reply->results = (struct ckt_cursor){.p = answer, .end = answer + sizeof answer};
	return CUDA_SUCCESS;
}

void ckt_call_reply_release(struct ckt_reply *reply)
{
	(void)reply;
}

static void test_sent(void)
{
	setenv("LD_PRELOAD_OF_MINE", "x", 1);
	setenv("CUBLAS_LOGDEST_DBG", "/tmp/log", 1);
	setenv("NCCL_NET_PLUGIN", "evil", 1);
	setenv("NCCL_ALGO", "/no/word", 1);
	setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
	setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
	status = -EBUSY;
	ckt_conn_environment_send();
	IS(sent, 2);
	IS(values, 2);
	TEXT(got[0], "CUBLAS_WORKSPACE_CONFIG=:4096:8");
	TEXT(got[1], "NVIDIA_TF32_OVERRIDE=0");
	/* Once a process. */
	setenv("NCCL_PROTO", "LL", 1);
	ckt_conn_environment_send();
	IS(sent, 2);
}

UNIT_SUITE(environment, {"sent", test_sent})
