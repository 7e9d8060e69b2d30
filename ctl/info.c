/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl info */

#include <jansson.h>
#include <stdio.h>

#include "ctl/command.h"
#include "ctl/drain/drain_state.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/sharing.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"

enum { TIMEOUT_MS = 10000 };

static const char *authentication(const ckt_control_info_res *info)
{
	return info->insecure ? "none" : info->token ? "token" : "local";
}

/* What INFO does not have. */
struct beside {
	const struct ckt_ctl_drain *drain;        /* NULL: it takes sessions */
	const ckt_control_share_modes_res *modes; /* NULL: not known */
};

static json_t *sharing_json(const ckt_control_share_modes_res *modes)
{
	bool space = modes->space;
	json_t *list = json_array();
	json_array_append_new(list, json_string("time"));
	if (space)
		json_array_append_new(list, json_string("space"));
	return json_pack("{s:o, s:s, s:o}", "modes", list, "default",
		space && modes->wants_space ? "space" : "time", "reason",
		space ? json_null() : ckt_ctl_json_text(modes->reason));
}

static int print_json(const ckt_control_info_res *info, const struct beside *beside)
{
	char started[64];
	json_t *gpus = json_array(), *listening = json_array(), *object = json_object();
	for (u_int i = 0; i < info->gpus.gpus_len; i++) {
		const ckt_control_gpu *gpu = &info->gpus.gpus_val[i];
		json_array_append_new(gpus,
			json_pack("{s:i, s:o, s:I}", "gpu", (int)gpu->ordinal, "name",
				ckt_ctl_json_text(gpu->name), "memory_bytes",
				(json_int_t)gpu->memory_bytes));
	}
	for (u_int i = 0; i < info->listening.listening_len; i++)
		json_array_append_new(
			listening, ckt_ctl_json_text(info->listening.listening_val[i].text));
	json_object_set_new(object, "version", ckt_ctl_json_text(info->build));
	json_object_set_new(object, "host", ckt_ctl_json_text(info->host));
	json_object_set_new(object, "pid", json_integer(info->pid));
	json_object_set_new(object, "started",
		json_string(ckt_ctl_time_text(info->started, started, sizeof started)));
	json_object_set_new(object, "driver", ckt_ctl_json_text(info->driver));
	json_object_set_new(object, "soft", json_boolean(info->soft));
	json_object_set_new(object, "gpus", gpus);
	json_object_set_new(object, "socket", ckt_ctl_json_text(info->socket));
	json_object_set_new(object, "listen", listening);
	json_object_set_new(object, "authentication", json_string(authentication(info)));
	json_object_set_new(object, "sessions", json_integer(info->sessions));
	json_object_set_new(object, "max_sessions", json_integer(info->max_sessions));
	json_object_set_new(object, "session_memory_bytes",
		json_integer((json_int_t)info->session_memory_bytes));
	json_object_set_new(object, "stopping", json_boolean(info->stopping));
	json_object_set_new(
		object, "sharing", beside->modes ? sharing_json(beside->modes) : json_null());
	if (beside->drain)
		json_object_set_new(object, "draining", ckt_ctl_drain_json(beside->drain));
	return ckt_ctl_json_print(object);
}

static void print_sharing(const ckt_control_share_modes_res *modes)
{
	char reason[CKT_CONTROL_REASON + 1];
	if (modes->space)
		printf("sharing     GPUs in time or in space, without a rule in %s\n",
			modes->wants_space ? "space" : "time");
	else
		printf("sharing     GPUs in time; not in space: %s\n",
			ckt_ctl_clean(modes->reason, reason, sizeof reason));
}

static int print_text(const ckt_control_info_res *info, const struct beside *beside)
{
	const struct ckt_ctl_drain *drain = beside->drain;
	char text[CKT_CONTROL_PATH_MAX + 1], size[32];
	printf("cricket-server %s", ckt_ctl_clean(info->build, text, sizeof text));
	printf(" on %s, process %u%s\n", ckt_ctl_clean(info->host, text, sizeof text), info->pid,
		info->stopping ? ", shutting down" : "");
	printf("started     %s\n", ckt_ctl_time_text(info->started, text, sizeof text));
	printf("driver      %s%s\n", ckt_ctl_clean(info->driver, text, sizeof text),
		info->soft ? "  (the soft GPU: computes on the CPU, slowly)" : "");
	for (u_int i = 0; i < info->gpus.gpus_len; i++) {
		const ckt_control_gpu *gpu = &info->gpus.gpus_val[i];
		printf("gpu %-2u      %s, %s\n", gpu->ordinal,
			ckt_ctl_clean(gpu->name, text, sizeof text),
			ckt_ctl_size_text(gpu->memory_bytes, size, sizeof size));
	}
	printf("socket      %s\n", ckt_ctl_clean(info->socket, text, sizeof text));
	for (u_int i = 0; i < info->listening.listening_len; i++)
		printf("listening   %s\n",
			ckt_ctl_clean(info->listening.listening_val[i].text, text, sizeof text));
	printf("clients     %s\n",
		info->insecure        ? "anyone who can connect (--insecure)"
			: info->token ? "over TCP with the token, over the socket by user"
				      : "of this host, by user");
	printf("sessions    %u", info->sessions);
	if (info->max_sessions)
		printf(" of %u", info->max_sessions);
	if (info->session_memory_bytes)
		printf(", %s each",
			ckt_ctl_size_text(info->session_memory_bytes, size, sizeof size));
	printf("\n");
	if (beside->modes)
		print_sharing(beside->modes);
	if (drain)
		printf("draining    since %s%s%s\n",
			ckt_ctl_time_text(drain->since, text, sizeof text),
			*drain->to ? ", programs go to " : ", it takes no new sessions", drain->to);
	return ckt_ctl_flush();
}

int ckt_ctl_info(const struct ckt_ctl_args *args)
{
	ckt_control_info_res info = {0};
	int status = ckt_ctl_ask(args, NULL, CKT_CONTROL_INFO, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_info_res, &info, TIMEOUT_MS);
	if (status != CKT_EXIT_DONE)
		return status;
	struct ckt_ctl_drain state;
	ckt_control_share_modes_res modes = {0};
	const struct beside beside = {.drain = ckt_ctl_drain_look(args, &state) ? &state : NULL,
		.modes = ckt_ctl_share_modes_look(args, &modes) ? &modes : NULL};
	status = args->json ? print_json(&info, &beside) : print_text(&info, &beside);
	xdr_free((xdrproc_t)xdr_ckt_control_share_modes_res, (char *)&modes);
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&info);
	return status;
}
