/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl swap out|in|show SESSION */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ctl/checkpoint.h"
#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/progress.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"

static int print(const struct ckt_ctl_args *args, const char *way, const ckt_control_swap_res *res)
{
	char bytes[32], moved[32], held[32], here[32];
	if (args->json)
		return ckt_ctl_json_print(json_pack(
			"{s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "session",
			ckt_ctl_json_text(res->session), "swapped", res->swapped, "bytes",
			(json_int_t)res->bytes, "moved_bytes", (json_int_t)res->moved_bytes,
			"swapped_bytes", (json_int_t)res->swapped_bytes, "here_bytes",
			(json_int_t)res->here_bytes, "outs", (json_int_t)res->outs, "ins",
			(json_int_t)res->ins, "out_bytes", (json_int_t)res->out_bytes, "in_bytes",
			(json_int_t)res->in_bytes, "out_us", (json_int_t)res->out_us, "in_us",
			(json_int_t)res->in_us));
	ckt_ctl_size_text(res->bytes, bytes, sizeof bytes);
	ckt_ctl_size_text(res->moved_bytes, moved, sizeof moved);
	ckt_ctl_size_text(res->swapped_bytes, held, sizeof held);
	ckt_ctl_size_text(res->here_bytes, here, sizeof here);
	if (strcmp(way, "show") == 0)
		printf("session %s %s, %s on the GPU, %s in the swap memory; %llu out, %llu in\n",
			res->session, res->swapped ? "swapped" : "resident", here, held,
			(unsigned long long)res->outs, (unsigned long long)res->ins);
	else
		printf("session %s swapped %s, %s, %s of them %s; %s stay on the GPU\n",
			res->session, way, bytes, moved,
			strcmp(way, "out") == 0 ? "written" : "read", here);
	return ckt_ctl_flush();
}

int ckt_ctl_swap(const struct ckt_ctl_args *args)
{
	const char *way = args->words[0];
	bool show = strcmp(way, "show") == 0;
	ckt_control_swap_args call = {.session = (char *)args->words[1],
		.way = strcmp(way, "in") == 0 ? CKT_CONTROL_SWAP_IN : CKT_CONTROL_SWAP_OUT};
	ckt_control_session_args look = {.session = call.session};
	struct ckt_ctl_server server;
	ckt_control_swap_res res = {0};
	if (!show && call.way == CKT_CONTROL_SWAP_OUT && strcmp(way, "out") != 0) {
		fprintf(stderr, "cricketctl: swap: '%s' is not valid: write out, in or show\n",
			way);
		return CKT_EXIT_USAGE;
	}
	int status = ckt_ctl_parse_deadline(args->deadline, &call.deadline_ms);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_connect_for(args, call.session, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	struct ckt_ctl_progress *progress =
		show ? NULL : ckt_ctl_progress_begin(args, &server, call.session);
	status = show
		? ckt_ctl_call(&server, CKT_CONTROL_SWAP_LOOK,
			  (xdrproc_t)xdr_ckt_control_session_args, &look,
			  (xdrproc_t)xdr_ckt_control_swap_res, &res, -1, -1)
		: ckt_ctl_call(&server, CKT_CONTROL_SWAP, (xdrproc_t)xdr_ckt_control_swap_args,
			  &call, (xdrproc_t)xdr_ckt_control_swap_res, &res, -1, -1);
	if (!show)
		ckt_ctl_progress_end(progress);
	ckt_ctl_disconnect(&server);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE)
		status = print(args, way, &res);
	xdr_free((xdrproc_t)xdr_ckt_control_swap_res, (char *)&res);
	return status;
}
