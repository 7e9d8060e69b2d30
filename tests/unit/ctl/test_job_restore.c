/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/job/job_restore.c: every session to its server and GPU, all or none. */
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/command.h"
#include "ctl/job/job.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/wire.h"

static ckt_control_restore_res restored;
static unsigned restores, kills, gpus[8];

static bool restore(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	ckt_control_restore2_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_restore2_args, &asked) == 0);
	gpus[restores % 8] = (unsigned)asked.gpu;
	xdr_free((xdrproc_t)xdr_ckt_control_restore2_args, (char *)&asked);
	/* The second one fails where the test says so. */
	bool bad = restored.result.status && restores == 1;
	static ckt_control_restore_res good;
	good = (ckt_control_restore_res){
		.result = {CKT_CONTROL_OK, (char *)""}, .session = (char *)"0123456789ab"};
	restores++;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_restore_res;
	*ret_res = bad ? &restored : &good;
	return true;
}

static bool end_one(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_result good = {CKT_CONTROL_OK, (char *)""};
	(void)args, (void)fd;
	kills++;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_result;
	*ret_res = &good;
	return true;
}

static void start(void)
{
	begin();
	mkdir(path_in("job"), 0700);
	write_file(path_in("job/job.json"),
		"{\"format\":1,\"job\":\"mine\",\"sessions\":[{\"session\":\"0123456789ab\",\"server\":0,\"gpu\":4},"
		"{\"session\":\"ba9876543210\",\"server\":3,\"gpu\":4}]}");
	if (!exists(path_in("job/0123456789ab"))) {
		image_make(path_in("job/0123456789ab"), 1, "");
		image_make(path_in("job/ba9876543210"), 2, "");
	}
	restored = (ckt_control_restore_res){.session = (char *)""};
	restores = kills = 0;
	replies[CKT_CONTROL_RESTORE2].answer = restore;
	replies[CKT_CONTROL_KILL].answer = end_one;
}

static void test_all(void)
{
	char path[128];
	start();
	snprintf(path, sizeof path, "%s", path_in("job"));
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path}, NULL), CKT_EXIT_DONE);
	HAS(out, "job mine: 2 sessions restored from");
	IS(restores, 2);
	IS(gpus[0] + gpus[1], 8);
	start();
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path, .gpu = "1,0", .json = true},
		   NULL),
		CKT_EXIT_DONE);
	IS(gpus[0] + gpus[1], 1);
	HAS(out, "\"job\": \"mine\"");
}

static void test_none(void)
{
	char path[128];
	start();
	snprintf(path, sizeof path, "%s", path_in("job"));
	restored.result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)"no such GPU"};
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "no such GPU");
	HAS(err, "job mine: 1 of 2 sessions could not be restored, so none was");
	IS(kills, 1);
	YES(exists(path_in("job/job.json")));
	/* Nothing is asked where that is no job, or the line is wrong. */
	start();
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = directory}, NULL), CKT_EXIT_REFUSED);
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path, .gpu = "1,x"}, NULL),
		CKT_EXIT_USAGE);
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path, .with_client = true}, NULL),
		CKT_EXIT_USAGE);
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path, .gpu = "1,"}, NULL),
		CKT_EXIT_USAGE);
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path, .place = "0"}, NULL),
		CKT_EXIT_USAGE);
	HAS(err, "--place counts the servers of --server, but no --server is given");
	IS(run(ckt_ctl_restore,
		   (struct ckt_ctl_args){
			   .job = path, .place = "0,1", .servers = {address}, .server_count = 1},
		   NULL),
		CKT_EXIT_USAGE);
	HAS(err, "--place: '0,1' is not valid: write numbers from 0 to 0");
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.place = "0"}, path, NULL), CKT_EXIT_USAGE);
	IS(restores, 0);
}

/* One server that is there, and one that is not: whoever is to go there says so. */
static void test_place(void)
{
	static char nowhere[] = "unix:/tmp/ckt-there-is-no-such-server";
	char path[128];
	const struct {
		const char *place, *servers[3];
		unsigned count, restored;
	} rows[] = {
		/* As they were: number 0 and number 3, counted round. */
		{NULL, {address, nowhere}, 2, 1},
		{NULL, {address}, 1, 2},
		{NULL, {address, nowhere, nowhere}, 3, 2},
		{"0", {address, nowhere}, 2, 2},
		{"1", {nowhere, address}, 2, 2},
		{"0,1", {address, nowhere}, 2, 1},
		{"2,2", {nowhere, nowhere, address}, 3, 2},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		start();
		snprintf(path, sizeof path, "%s", path_in("job"));
		struct ckt_ctl_args args = {
			.job = path, .place = rows[i].place, .server_count = rows[i].count};
		memcpy(args.servers, rows[i].servers, sizeof rows[i].servers);
		IS(run(ckt_ctl_restore, args, NULL),
			rows[i].restored == 2 ? CKT_EXIT_DONE : CKT_EXIT_NO_SERVER);
		IS(restores, rows[i].restored);
	}
	/*
	 * More servers than there were, which is four: spread over them in their order, the first
	 * at the first, the second in the middle.
	 */
	start();
	struct ckt_ctl_args args = {.job = path,
		.server_count = 5,
		.servers = {address, nowhere, address, nowhere, nowhere}};
	IS(run(ckt_ctl_restore, args, NULL), CKT_EXIT_DONE);
	IS(restores, 2);
}

UNIT_SUITE(job_restore, {"all", test_all}, {"none", test_none}, {"where", test_place})
