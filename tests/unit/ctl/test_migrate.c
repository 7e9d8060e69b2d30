/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/migrate.c: cricketctl migrate: rounds until the changes stop shrinking, the source ends last,
 * and any failure before leaves it running.
 */
#include <jansson.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/wire.h"
#include "saves.h"

static ckt_control_stats_res stats = {.result = {CKT_CONTROL_OK, (char *)""},
	.session = {.session = (char *)"0123456789ab",
		.program_name = (char *)"p",
		.client = (char *)"",
		.note = (char *)"",
		.memory_bytes = 1000}};
static ckt_control_restore_res preloaded;
static uint64_t changes[16];
static unsigned preloads, lasts;
static struct reply saving;

static bool save_next(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	save_res.changed_bytes = changes[save_count];
	return saving.answer(args, fd, ret_xdr, ret_res);
}

static bool preload(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	ckt_control_preload_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_preload_args, &asked) == 0);
	TEXT(asked.copy, preloads ? "c0c0c0c0c0c0" : ""); /* the first makes it */
	IS(asked.gpu, 2);
	IS(asked.stages.stages_len, 0); /* it got descriptors */
	preloads++;
	lasts += asked.last;
	preloaded.session = (char *)"c0c0c0c0c0c0";
	xdr_free((xdrproc_t)xdr_ckt_control_preload_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_restore_res;
	*ret_res = &preloaded;
	return true;
}

static void start(const uint64_t *list, unsigned count)
{
	saves_begin();
	memset(changes, 0, sizeof changes);
	for (unsigned i = 0; i < count; i++)
		changes[i] = list[i];
	saving = replies[CKT_CONTROL_SAVE];
	replies[CKT_CONTROL_SAVE].answer = save_next;
	replies[CKT_CONTROL_PRELOAD].answer = preload;
	replies[CKT_CONTROL_STATS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_stats_res, &stats, NULL};
	preloaded = (ckt_control_restore_res){.result = {CKT_CONTROL_OK, (char *)""}};
	preloads = lasts = 0;
}

static unsigned count_calls(uint32_t proc)
{
	unsigned count = 0;
	for (unsigned i = 0; i < seen_count; i++)
		count += seen[i].proc == proc;
	return count;
}

static const struct ckt_ctl_args good = {.gpu = "2", .client_address = "there:1"};

static void test_rounds(void)
{
	static const struct {
		uint64_t changes[12];
		unsigned rounds; /* with the last */
	} cases[] = {
		{{1000, 500, 200, 5}, 5}, /* until a hundredth is left */
		{{1000, 500, 600}, 4},    /* or until they grow */
		{{1000, 1000}, 3},
		{{1000, 900, 800, 700, 600, 500, 400, 300, 200},
			9}, /* eight at most, and the last */
	};
	setenv("TMPDIR", directory, 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		start(cases[i].changes, 12);
		struct ckt_ctl_args args = good;
		args.json = true;
		IS(run(ckt_ctl_migrate, args, "0123", NULL), CKT_EXIT_DONE);
		IS(save_count, cases[i].rounds);
		IS(preloads, cases[i].rounds);
		IS(lasts, 1);
		for (unsigned r = 0; r < save_count; r++) {
			IS(saves[r].incremental, r > 0);
			IS(saves[r].hold, r == save_count - 1);
		}
		/* The end of the source comes last. */
		IS(seen[seen_count - 1].proc, CKT_CONTROL_RELEASE);
		IS(count_calls(CKT_CONTROL_RELEASE), 1);
		ckt_control_release_args release = {0};
		YES(decode(seen_count - 1, (xdrproc_t)xdr_ckt_control_release_args, &release));
		YES(release.end && !release.parked);
		TEXT(release.moved_to, "there:1");
		xdr_free((xdrproc_t)xdr_ckt_control_release_args, (char *)&release);
		json_t *json = json_loads(out, 0, NULL);
		IS(json_integer_value(json_object_get(json, "rounds")), cases[i].rounds);
		json_decref(json);
	}
	/* Nothing is left of what passed through. */
	char command[128];
	snprintf(command, sizeof command, "ls -d %s/cricket-migrate-* >/dev/null 2>&1", directory);
	YES(system(command) != 0);
}

static void test_failures(void)
{
	static const uint64_t list[] = {1000, 5};
	ckt_control_result refused = {CKT_CONTROL_REFUSED, (char *)"no"};
	/* The target cannot take it: the source is never told to end. */
	start(list, 2);
	preloaded.result = refused;
	IS(run(ckt_ctl_migrate, good, "0123", NULL), CKT_EXIT_REFUSED);
	IS(count_calls(CKT_CONTROL_RELEASE), 0);
	start(list, 2);
	save_res.result = refused;
	IS(run(ckt_ctl_migrate, good, "0123", NULL), CKT_EXIT_REFUSED);
	IS(count_calls(CKT_CONTROL_RELEASE) + preloads, 0);
	/* The source does not end: the copy must. */
	start(list, 2);
	replies[CKT_CONTROL_RELEASE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_result, &refused, NULL};
	IS(run(ckt_ctl_migrate, good, "0123", NULL), CKT_EXIT_REFUSED);
	IS(seen[seen_count - 1].proc, CKT_CONTROL_KILL);
	ckt_control_session_args killed = {0};
	YES(decode(seen_count - 1, (xdrproc_t)xdr_ckt_control_session_args, &killed));
	TEXT(killed.session, "c0c0c0c0c0c0");
	xdr_free((xdrproc_t)xdr_ckt_control_session_args, (char *)&killed);
}

static void test_usage(void)
{
	static const struct ckt_ctl_args cases[] = {{0}, {.to = "host:99999"}, {.to = "file:/x"},
		{.gpu = "x"}, {.gpu = "-1"}, {.to = "h", .deadline = "0"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		start(NULL, 0);
		IS(run(ckt_ctl_migrate, cases[i], "0123", NULL), CKT_EXIT_USAGE);
		IS(seen_count, 0);
	}
	IS(run(ckt_ctl_migrate, good, "nobody", NULL), CKT_EXIT_NO_SESSION);
	unsetenv("TMPDIR");
}

UNIT_SUITE(migrate, {"rounds", test_rounds}, {"failures", test_failures}, {"usage", test_usage})
