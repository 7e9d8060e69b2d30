/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/place.c: which of several servers is chosen, of answers that the test gives one after another. */
#include <jansson.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"

#define GIB ((uint64_t)1 << 30)

/* All servers have one address here; each question for INFO is another's. */
static struct {
	unsigned sessions, max_sessions, gpus;
	uint64_t free[2];
	bool stopping, silent;
} servers[4];
static unsigned asked;
static ckt_control_gpu gpus[] = {{.ordinal = 0, .name = (char *)"a", .memory_bytes = 8 * GIB},
	{.ordinal = 1, .name = (char *)"b", .memory_bytes = 8 * GIB}};

static bool info(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_info_res res;
	(void)args, (void)fd;
	res = (ckt_control_info_res){.build = (char *)"1",
		.host = (char *)"h",
		.driver = (char *)"d",
		.socket = (char *)"s",
		.gpus = {servers[asked].gpus, gpus},
		.sessions = servers[asked].sessions,
		.max_sessions = servers[asked].max_sessions,
		.stopping = servers[asked].stopping};
	*ret_xdr = (xdrproc_t)xdr_ckt_control_info_res;
	*ret_res = &res;
	return !servers[asked++].silent;
}

static bool use(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_gpu_use_res res;
	ckt_control_gpu_args gpu = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_gpu_args, &gpu) == 0);
	res = (ckt_control_gpu_use_res){.free_bytes = servers[asked - 1].free[gpu.gpu & 1]};
	*ret_xdr = (xdrproc_t)xdr_ckt_control_gpu_use_res;
	*ret_res = &res;
	return true;
}

/* Sessions of the server that was chosen; -1: none, with the exit code in *ret_status. */
static int choose(const char *policy, unsigned count, int *ret_status)
{
	struct ckt_ctl_args args = {.json = true, .server_count = count};
	begin();
	asked = 0;
	replies[CKT_CONTROL_INFO].answer = info;
	replies[CKT_CONTROL_GPU_USE].answer = use;
	for (unsigned i = 0; i < count; i++)
		args.servers[i] = address;
	*ret_status = run(ckt_ctl_place, args, policy, NULL);
	json_t *json = json_loads(out, 0, NULL);
	int sessions = json ? (int)json_integer_value(json_object_get(json, "sessions")) : -1;
	json_decref(json);
	return sessions;
}

static void test_policies(void)
{
	int status;
	memset(servers, 0, sizeof servers);
	for (unsigned i = 0; i < 3; i++)
		servers[i].gpus = 1;
	servers[0].sessions = 5;
	servers[0].free[0] = 7 * GIB;
	servers[1].sessions = 4;
	servers[1].free[0] = 2 * GIB;
	servers[2].sessions = 6;
	servers[2].gpus = 2;
	servers[2].free[0] = GIB / 16;
	servers[2].free[1] = 3 * GIB;
	IS(choose("least-loaded", 3, &status), 5);
	IS(status, CKT_EXIT_DONE);
	IS(choose("pack", 3, &status), 4);
	/* Six on two GPUs are fewer for each than four on one. */
	IS(choose("spread", 3, &status), 6);
	/* Of full ones, the emptiest: pack goes to none that has no room if another has. */
	servers[1].free[0] = GIB / 2;
	IS(choose("pack", 3, &status), 6);
	servers[0].free[0] = servers[2].free[1] = GIB / 4;
	IS(choose("pack", 3, &status), 4);
}

static void test_left_out(void)
{
	int status;
	memset(servers, 0, sizeof servers);
	for (unsigned i = 0; i < 4; i++)
		servers[i].gpus = 1;
	servers[0].silent = true;
	servers[1].stopping = true;
	servers[2].sessions = servers[2].max_sessions = 3;
	servers[3].sessions = 9;
	IS(choose("spread", 4, &status), 9);
	HAS(err, "no answer; it is left out");
	HAS(err, "the server ends; it is left out");
	HAS(err, "it has no room for a session; it is left out");
	servers[3].gpus = 0;
	IS(choose("spread", 4, &status), -1);
	IS(status, CKT_EXIT_NO_SERVER);
	HAS(err, "it has no GPU; it is left out");
	HAS(err, "no server can take a program");
}

static void test_wrong(void)
{
	int status;
	IS(choose("best", 1, &status), -1);
	IS(status, CKT_EXIT_USAGE);
	HAS(err, "least-loaded, pack or spread");
	IS(choose("pack", 0, &status), -1);
	IS(status, CKT_EXIT_USAGE);
	HAS(err, "give each with --server");
}

UNIT_SUITE(place, {"policies", test_policies}, {"left out", test_left_out}, {"wrong", test_wrong})
