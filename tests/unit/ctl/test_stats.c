/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/stats.c: cricketctl stats: most called first, with a total. */
#include <jansson.h>
#include <rpc/rpc.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static void test_stats(void)
{
	ckt_control_stat stats[] = {{(char *)"b", 5, 5, 0, 100}, {(char *)"a", 5, 0, 5, 200},
		{(char *)"most", 90, 80, 10, 2048}};
	ckt_control_stats_res res = {.result = {CKT_CONTROL_OK, (char *)""},
		.stats = {3, stats},
		.session = {.session = (char *)"0123456789ab",
			.program_name = (char *)"p",
			.client = (char *)"",
			.note = (char *)""}};
	begin();
	replies[CKT_CONTROL_STATS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_stats_res, &res, NULL};
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_DONE);
	const char *most = strstr(out, "most"), *a = strstr(out, "  a\n"),
		   *b = strstr(out, "  b\n");
	YES(most && a && b && most < a && a < b);
	HAS(out, "100           85           15");
	HAS(out, "2.3 KiB  total");
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){.json = true}, "0123", NULL), CKT_EXIT_DONE);
	json_t *json = json_loads(out, 0, NULL), *calls = json_object_get(json, "calls"),
	       *first = json_array_get(calls, 0);
	IS(json_array_size(calls), 3);
	TEXT(json_string_value(json_object_get(first, "name")), "most");
	IS(json_integer_value(json_object_get(first, "batched")), 80);
	IS(json_integer_value(json_object_get(first, "waited")), 10);
	IS(json_integer_value(json_object_get(first, "bytes")), 2048);
	TEXT(json_string_value(json_object_get(json, "transport")), "unknown");
	json_decref(json);
	/* A row that is no call. */
	stats[1] = (ckt_control_stat){(char *)CKT_STAT_TRANSPORT "shm", 0, 0, 0, 0};
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){.json = true}, "0123", NULL), CKT_EXIT_DONE);
	json = json_loads(out, 0, NULL);
	IS(json_array_size(json_object_get(json, "calls")), 2);
	TEXT(json_string_value(json_object_get(json, "transport")), "shm");
	json_decref(json);
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_DONE);
	HAS(out, "connected over shm");
	YES(!strstr(out, CKT_STAT_TRANSPORT));
	/* The bytes each way are top's, and are no call. */
	stats[1] = (ckt_control_stat){(char *)CKT_STAT_RECEIVED, 0, 0, 0, 77};
	stats[2] = (ckt_control_stat){(char *)CKT_STAT_SENT, 0, 0, 0, 77};
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_DONE);
	YES(!strstr(out, CKT_STAT_RECEIVED) && !strstr(out, CKT_STAT_SENT));
	stats[1] = (ckt_control_stat){(char *)CKT_STAT_TRANSPORT "shm", 0, 0, 0, 0};
	/* Two more: modules that came from the server's cache, and those that it lacked. */
	YES(!strstr(out, "modules:"));
	stats[0] = (ckt_control_stat){(char *)CKT_STAT_MODULE_HITS, 3, 0, 0, 4096};
	stats[2] = (ckt_control_stat){(char *)CKT_STAT_MODULE_MISSES, 2, 0, 0, 0};
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){.json = true}, "0123", NULL), CKT_EXIT_DONE);
	json = json_loads(out, 0, NULL);
	const json_t *modules = json_object_get(json, "module_cache");
	IS(json_array_size(json_object_get(json, "calls")), 0);
	IS(json_integer_value(json_object_get(modules, "hits")), 3);
	IS(json_integer_value(json_object_get(modules, "misses")), 2);
	IS(json_integer_value(json_object_get(modules, "bytes")), 4096);
	json_decref(json);
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_DONE);
	HAS(out, "modules: 3 (4.0 KiB) from the server's cache, 2 that it lacked");
	/* None yet, and no such session. */
	res.stats.stats_len = 0;
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_DONE);
	res.result = (ckt_control_result){CKT_CONTROL_NO_SESSION, (char *)"there is none"};
	IS(run(ckt_ctl_stats, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_NO_SESSION);
	TEXT(out, "");
}

UNIT_SUITE(stats, {"stats", test_stats})
