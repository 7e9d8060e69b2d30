/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/memory_images.c: cricketctl image list and image remove memory:NAME. */
#include <jansson.h>
#include <rpc/rpc.h>
#include <stddef.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/memory_images.h"
#include "inside.h"
#include "rpc/control.h"

static void test_list(void)
{
	ckt_control_kept one = {.name = (char *)"good",
		.session = (char *)"0123456789ab",
		.program_name = (char *)"p",
		.bytes = 3 << 20,
		.saved = 0};
	ckt_control_kept_res res = {.images = {1, &one}, .bytes = 4 << 20, .limit_bytes = 8 << 20};
	begin();
	replies[CKT_CONTROL_KEPT_LIST] =
		(struct reply){(xdrproc_t)xdr_ckt_control_kept_res, &res, NULL};
	IS(run(ckt_ctl_kept_list, (struct ckt_ctl_args){0}, "list", NULL), CKT_EXIT_DONE);
	HAS(out, "memory:good");
	HAS(out, "4.0 MiB of 8.0 MiB taken");
	IS(run(ckt_ctl_kept_list, (struct ckt_ctl_args){.json = true}, "list", NULL),
		CKT_EXIT_DONE);
	json_t *json = json_loads(out, 0, NULL),
	       *image = json_array_get(json_object_get(json, "images"), 0);
	TEXT(json_string_value(json_object_get(image, "place")), "memory:good");
	IS(json_integer_value(json_object_get(json, "limit_bytes")), 8 << 20);
	json_decref(json);
}

static void test_remove(void)
{
	static const struct {
		const char *place;
		int status;
	} cases[] = {{"memory:good", 0}, {"memory:", 2}, {"memory:A", 2}, {"memory:a/b", 2},
		{"good", 2}, {"/tmp/x", 2},
		{"memory:012345678901234567890123456789012345678901234567890123456789", 2}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		ckt_control_stage_args asked = {0};
		begin();
		IS(run(ckt_ctl_kept_remove, (struct ckt_ctl_args){0}, "remove", cases[i].place,
			   NULL),
			cases[i].status);
		IS(seen_count, cases[i].status ? 0 : 1);
		if (!cases[i].status) {
			YES(decode(0, (xdrproc_t)xdr_ckt_control_stage_args, &asked));
			TEXT(asked.stage, "good");
			xdr_free((xdrproc_t)xdr_ckt_control_stage_args, (char *)&asked);
		}
	}
	ckt_control_result refused = {CKT_CONTROL_REFUSED, (char *)"another user's"};
	begin();
	replies[CKT_CONTROL_KEPT_REMOVE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_result, &refused, NULL};
	IS(run(ckt_ctl_kept_remove, (struct ckt_ctl_args){0}, "remove", "memory:good", NULL),
		CKT_EXIT_REFUSED);
}

UNIT_SUITE(kept, {"list", test_list}, {"remove", test_remove})
