/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl image list, cricketctl image remove memory:NAME: images in the memory of a server. */
#include "ctl/memory_images.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/owners.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/control.h"

enum { ANSWER_MS = 15000 };

static int print_json(const ckt_control_kept_res *res, struct ckt_ctl_owners *owners)
{
	char saved[64];
	json_t *list = json_array();
	for (u_int i = 0; i < res->images.images_len; i++) {
		const ckt_control_kept *one = &res->images.images_val[i];
		json_array_append_new(list,
			json_pack("{s:s+, s:o, s:o, s:o, s:I, s:s}", "place", "memory:", one->name,
				"session", ckt_ctl_json_text(one->session), "program",
				ckt_ctl_json_text(one->program_name), "owner",
				ckt_ctl_json_text(ckt_ctl_owner_name(owners, i, one->uid)), "bytes",
				(json_int_t)one->bytes, "saved",
				ckt_ctl_time_text(one->saved, saved, sizeof saved)));
	}
	return ckt_ctl_json_print(json_pack("{s:o, s:I, s:I}", "images", list, "bytes",
		(json_int_t)res->bytes, "limit_bytes", (json_int_t)res->limit_bytes));
}

static int print(const ckt_control_kept_res *res, struct ckt_ctl_owners *owners)
{
	char size[32], limit[32], saved[64], name[80], program[CKT_NAME_MAX + 1], owner[80];
	printf("%-32s %-12s %10s  %-20s %-16s %s\n", "IMAGE", "SESSION", "MEMORY", "SAVED", "OWNER",
		"PROGRAM");
	for (u_int i = 0; i < res->images.images_len; i++) {
		const ckt_control_kept *one = &res->images.images_val[i];
		snprintf(name, sizeof name, "memory:%s", one->name);
		printf("%-32s %-12s %10s  %-20s %-16s %s\n", name, one->session,
			ckt_ctl_size_text(one->bytes, size, sizeof size),
			ckt_ctl_time_text(one->saved, saved, sizeof saved),
			ckt_ctl_clean(ckt_ctl_owner_name(owners, i, one->uid), owner, sizeof owner),
			ckt_ctl_clean(one->program_name, program, sizeof program));
	}
	printf("%s of %s taken\n", ckt_ctl_size_text(res->bytes, size, sizeof size),
		ckt_ctl_size_text(res->limit_bytes, limit, sizeof limit));
	return ckt_ctl_flush();
}

int ckt_ctl_kept_list(const struct ckt_ctl_args *args)
{
	ckt_control_kept_res res = {0};
	int status = ckt_ctl_ask(args, NULL, CKT_CONTROL_KEPT_LIST, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_kept_res, &res, ANSWER_MS);
	struct ckt_ctl_owners owners = {0};
	uint32_t numbers[CKT_CONTROL_KEPT_MAX];
	for (u_int i = 0; i < res.images.images_len; i++)
		numbers[i] = res.images.images_val[i].uid;
	if (status == CKT_EXIT_DONE) {
		ckt_ctl_owners_read(args, numbers, res.images.images_len, &owners);
		status = args->json ? print_json(&res, &owners) : print(&res, &owners);
	}
	ckt_ctl_owners_free(&owners);
	xdr_free((xdrproc_t)xdr_ckt_control_kept_res, (char *)&res);
	return status;
}

int ckt_ctl_kept_remove(const struct ckt_ctl_args *args)
{
	const char *name = ckt_ctl_kept_name(args->words[1]);
	ckt_control_stage_args call = {.stage = (char *)name};
	ckt_control_result result = {0};
	if (!name) {
		fprintf(stderr,
			"cricketctl: image remove: write memory:NAME; remove images in "
			"directories with rm -r\n");
		return CKT_EXIT_USAGE;
	}
	int status = ckt_ctl_check_kept(name);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_ask(args, NULL, CKT_CONTROL_KEPT_REMOVE,
			(xdrproc_t)xdr_ckt_control_stage_args, &call,
			(xdrproc_t)xdr_ckt_control_result, &result, ANSWER_MS);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}
