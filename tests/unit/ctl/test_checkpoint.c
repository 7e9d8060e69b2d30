/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/checkpoint.c: cricketctl checkpoint: options that exclude each other, the image under its
 * name or nothing, the session held until then.
 */
#include <dirent.h>
#include <jansson.h>
#include <rpc/rpc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "saves.h"

static unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned count = 0;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return count;
}

static void test_usage(void)
{
	static const struct {
		struct ckt_ctl_args args;
		const char *second;
		const char *says;
	} cases[] = {
		{{0}, NULL, "name either"},
		{{.server_side = "x"}, "dir", "name either"},
		{{.server_side = "tmp-x"}, NULL},
		{{.deadline = "0"}, "dir"},
		{{.deadline = "5s"}, "dir"},
		{{.deadline = "86401"}, "dir"},
		{{.to_memory = true, .server_side = "x"}, NULL,
			"leave out --server-side, --every and --incremental"},
		{{.to_memory = true, .every = "5s"}, NULL,
			"leave out --server-side, --every and --incremental"},
		{{.to_memory = true, .incremental = "b"}, NULL,
			"leave out --server-side, --every and --incremental"},
		{{.to_memory = true}, "Not/good"},
		{{.keep = "3"}, "dir", "add --every"},
		{{.every = "5s", .incremental = "b"}, "dir", "leave out --incremental and --stop"},
		{{.every = "5s", .stop = true}, "dir", "leave out --incremental and --stop"},
		{{.incremental = "b", .server_side = "x"}, NULL, "leave out --server-side"},
		{{.with_client = true, .server_side = "x"}, NULL,
			"--with-client needs a directory"},
		{{.with_client = true, .to_memory = true}, NULL, "--with-client needs a directory"},
		{{.with_client = true, .every = "5s"}, "dir", "--with-client needs a directory"},
		{{.every = "never"}, "dir"},
		{{.every = "5s", .keep = "0"}, "dir"},
		{{.every = "5s", .keep = "3x"}, "dir"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		saves_begin();
		if (!IS(run(ckt_ctl_checkpoint, cases[i].args, "0123", cases[i].second, NULL),
			    CKT_EXIT_USAGE))
			fprintf(stderr, "row %zu: %s\n", i, err);
		YES(*err);
		HAS(err, cases[i].says ? cases[i].says : "");
		IS(seen_count, 0);
	}
}

static void test_here(void)
{
	char place[128];
	IS(mkdir(path_in("cp"), 0700), 0);
	snprintf(place, sizeof place, "%s/", path_in("cp/one"));
	saves_begin();
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.compress = true}, "0123", place, NULL),
		CKT_EXIT_DONE);
	calls_are((uint32_t[]){CKT_CONTROL_SAVE}, 1);
	YES(seen[0].fd);
	YES(saves[0].compress && !saves[0].hold && !saves[0].incremental && !saves[0].keep_hashes);
	IS(saves[0].deadline_ms, 60000);
	YES(exists(path_in("cp/one/manifest")));
	HAS(out, "session 0123456789ab written to ");
	/* With --stop the session is held, and released once the image has its name. */
	saves_begin();
	IS(run(ckt_ctl_checkpoint,
		   (struct ckt_ctl_args){.stop = true, .json = true, .deadline = "7"}, "0123",
		   path_in("cp/two"), NULL),
		CKT_EXIT_DONE);
	calls_are((uint32_t[]){CKT_CONTROL_SAVE, CKT_CONTROL_RELEASE}, 2);
	YES(saves[0].hold);
	IS(saves[0].deadline_ms, 7000);
	ckt_control_release_args release = {0};
	YES(decode(1, (xdrproc_t)xdr_ckt_control_release_args, &release));
	TEXT(release.session, "0123456789ab");
	YES(release.end && release.parked && !*release.moved_to);
	xdr_free((xdrproc_t)xdr_ckt_control_release_args, (char *)&release);
	json_t *json = json_loads(out, 0, NULL);
	YES(json_is_true(json_object_get(json, "stopped")));
	IS(json_integer_value(json_object_get(json, "changed_bytes")), 100);
	IS(json_integer_value(json_object_get(json, "frozen_us")), 3);
	json_decref(json);
	/* An increment names its base. */
	saves_begin();
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.incremental = path_in("cp/two")}, "0123",
		   path_in("cp/three"), NULL),
		CKT_EXIT_DONE);
	YES(saves[0].incremental && saves[0].keep_hashes && saves[0].base == 'a');
	TEXT(read_file(path_in("cp/three/base")), "../two\n");
	saves_begin();
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.incremental = path_in("cp")}, "0123",
		   path_in("cp/four"), NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "is not an image that another can build on");
	/*
	 * Where the worker does not remember the base, its manifest goes along, and the save is
	 * asked for again.
	 */
	saves_begin();
	stale_once = true;
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.incremental = path_in("cp/two")}, "0123",
		   path_in("cp/five"), NULL),
		CKT_EXIT_DONE);
	calls_are((uint32_t[]){CKT_CONTROL_SAVE, CKT_CONTROL_BASE, CKT_CONTROL_SAVE}, 3);
	ckt_control_base_args base = {0};
	YES(decode(1, (xdrproc_t)xdr_ckt_control_base_args, &base));
	YES(base.offset == 0 && base.data.data_len > 64);
	IS(memcmp(base.base, saves[1].id, sizeof base.base), 0);
	xdr_free((xdrproc_t)xdr_ckt_control_base_args, (char *)&base);
	TEXT(err, "");
	/*
	 * Refused, or the place is taken: nothing stays, and nothing is asked that could not be
	 * kept.
	 */
	saves_begin();
	save_res.result =
		(ckt_control_result){CKT_CONTROL_REFUSED, (char *)"a kernel does not finish"};
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.stop = true}, "0123", path_in("cp/four"),
		   NULL),
		CKT_EXIT_REFUSED);
	calls_are((uint32_t[]){CKT_CONTROL_SAVE}, 1);
	saves_begin();
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){0}, "0123", path_in("cp/one"), NULL),
		CKT_EXIT_REFUSED);
	IS(seen_count, 0);
	IS(entries(path_in("cp")), 4);
}

static void test_elsewhere(void)
{
	ckt_control_stage_res made = {
		.result = {CKT_CONTROL_OK, (char *)""}, .stage = (char *)"tmp-9"};
	saves_begin();
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.to_memory = true}, "0123", "fast", NULL),
		CKT_EXIT_DONE);
	YES(saves[0].to_memory && !seen[0].fd);
	TEXT(saves[0].stage, "fast");
	HAS(out, "memory:fast");
	saves_begin();
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.to_memory = true}, "0123", NULL),
		CKT_EXIT_DONE);
	HAS(out, "memory:0123456789ab");
	saves_begin();
	replies[CKT_CONTROL_STAGE_MAKE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_stage_res, &made, NULL};
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.server_side = "name", .stop = true},
		   "0123", NULL),
		CKT_EXIT_DONE);
	calls_are((uint32_t[]){CKT_CONTROL_STAGE_MAKE, CKT_CONTROL_SAVE, CKT_CONTROL_STAGE_KEEP,
			  CKT_CONTROL_RELEASE},
		4);
	TEXT(saves[0].stage, "tmp-9");
	/* Not kept: the session goes on, for nobody releases it to its end. */
	ckt_control_result taken = {CKT_CONTROL_REFUSED, (char *)"exists"};
	saves_begin();
	replies[CKT_CONTROL_STAGE_MAKE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_stage_res, &made, NULL};
	replies[CKT_CONTROL_STAGE_KEEP] =
		(struct reply){(xdrproc_t)xdr_ckt_control_result, &taken, NULL};
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.server_side = "name", .stop = true},
		   "0123", NULL),
		CKT_EXIT_REFUSED);
	calls_are(
		(uint32_t[]){CKT_CONTROL_STAGE_MAKE, CKT_CONTROL_SAVE, CKT_CONTROL_STAGE_KEEP}, 3);
}

UNIT_SUITE(checkpoint, {"usage", test_usage}, {"here", test_here}, {"elsewhere", test_elsewhere})
