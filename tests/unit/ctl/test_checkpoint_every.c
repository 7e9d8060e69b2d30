/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/checkpoint_every.c: cricketctl checkpoint --every: chains of --keep images, old chains go
 * whole, and the end of the session is the end of the work.
 */
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "rpc/wire.h"
#include "saves.h"

/* The session ends before the Nth image. */
static unsigned images_left;
static struct reply saving;

static bool save_some(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	if (!images_left)
		save_res.result = (ckt_control_result){
			CKT_CONTROL_NO_SESSION, (char *)"there is none any more"};
	else
		images_left--;
	return saving.answer(args, fd, ret_xdr, ret_res);
}

static void start(unsigned images)
{
	saves_begin();
	images_left = images;
	saving = replies[CKT_CONTROL_SAVE];
	replies[CKT_CONTROL_SAVE].answer = save_some;
}

static void test_series(void)
{
	char path[128];
	snprintf(path, sizeof path, "%s", path_in("every"));
	IS(mkdir(path, 0700), 0);
	/* of an earlier run: left alone, and counted on from */
	IS(mkdir(path_in("every/0006"), 0700), 0);
	IS(mkdir(path_in("every/notes"), 0700), 0);
	start(3);
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.every = "1s", .keep = "2"}, "0123", path,
		   NULL),
		CKT_EXIT_DONE);
	IS(save_count, 4);
	/* Two images a chain: a whole one and what builds on it. */
	static const bool incremental[] = {false, true, false};
	for (unsigned i = 0; i < 3; i++) {
		IS(saves[i].incremental, incremental[i]);
		YES(saves[i].keep_hashes);
	}
	IS(saves[1].base, 'a');
	YES(exists(path_in("every/0006")) && exists(path_in("every/notes")));
	/* The newest two are 0008 and 0009; 0008 needs 0007. */
	YES(exists(path_in("every/0007/manifest")) && exists(path_in("every/0008/manifest")) &&
		exists(path_in("every/0009/manifest")));
	NO(exists(path_in("every/0010")));
	TEXT(read_file(path_in("every/0008/base")), "../0007\n");
	HAS(out, "every/0009");
}

static void test_prune(void)
{
	char path[128];
	snprintf(path, sizeof path, "%s", path_in("every1"));
	start(3);
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.every = "1s", .keep = "1"}, "0123", path,
		   NULL),
		CKT_EXIT_DONE);
	/* Each is whole, and only the newest stays. */
	for (unsigned i = 0; i < 3; i++)
		NO(saves[i].incremental);
	YES(!exists(path_in("every1/0001")) && !exists(path_in("every1/0002")) &&
		exists(path_in("every1/0003/manifest")));
}

static void test_refused(void)
{
	start(0);
	/* none from the first */
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.every = "1s"}, "0123", path_in("every2"),
		   NULL),
		CKT_EXIT_NO_SESSION);
	start(5);
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.every = "1s"}, "0123",
		   path_in("every/notes/x/y"), NULL),
		CKT_EXIT_REFUSED);
	IS(mkdir(path_in("every3"), 0700), 0);
	IS(mkdir(path_in("every3/999999"), 0700), 0);
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.every = "1s"}, "0123", path_in("every3"),
		   NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "has no room for more images");
	IS(save_count, 0);
}

UNIT_SUITE(every, {"series", test_series}, {"prune", test_prune}, {"refused", test_refused})
