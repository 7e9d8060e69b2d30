/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl place: which of several servers a new program should use, by what they report.
 *
 * cricket-run --place asks this.  A server that does not answer, ends or is full is left out and
 * named on stderr.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/drain/drain_state.h"
#include "ctl/place.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 5000 };

/* A context and the program's first memory: with less, nothing fits. */
#define ROOM_BYTES ((uint64_t)640 << 20)

struct candidate {
	const char *address;
	unsigned sessions, gpus;
	uint64_t free_bytes; /* of the GPU with the most */
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Sessions for each GPU. */
static int compare_crowd(const struct candidate *a, const struct candidate *b)
{
	return compare_u64((uint64_t)a->sessions * b->gpus, (uint64_t)b->sessions * a->gpus);
}

/* Negative: a goes first. */
static int compare_load(const struct candidate *a, const struct candidate *b)
{
	int order = compare_u64(b->free_bytes, a->free_bytes);
	return order ? order : compare_crowd(a, b);
}

static int compare_spread(const struct candidate *a, const struct candidate *b)
{
	int order = compare_crowd(a, b);
	return order ? order : compare_u64(b->free_bytes, a->free_bytes);
}

/* The fullest that has room; of those without, the emptiest. */
static int compare_pack(const struct candidate *a, const struct candidate *b)
{
	bool room_a = a->free_bytes >= ROOM_BYTES, room_b = b->free_bytes >= ROOM_BYTES;
	if (room_a != room_b)
		return room_a ? -1 : 1;
	return room_a ? compare_load(b, a) : compare_load(a, b);
}

static const struct {
	const char *name;
	int (*compare)(const struct candidate *a, const struct candidate *b);
} policies[] = {{"least-loaded", compare_load}, {"pack", compare_pack}, {"spread", compare_spread}};

/* What a new program could still have of the GPU; all of it where the server does not say. */
static uint64_t free_of(struct ckt_ctl_server *server, const ckt_control_gpu *gpu)
{
	ckt_control_gpu_args call = {.gpu = gpu->ordinal};
	ckt_control_gpu_use_res res = {0};
	int result = ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_GPU_USE,
		(xdrproc_t)xdr_ckt_control_gpu_args, &call, (xdrproc_t)xdr_ckt_control_gpu_use_res,
		&res, ckt_net_now_ms() + TIMEOUT_MS, -1);
	uint64_t free_bytes = result || res.result ? gpu->memory_bytes : res.free_bytes;
	if (!result)
		xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	return free_bytes;
}

static void leave_out(const char *address, const char *why)
{
	char clean[CKT_ADDRESS_TEXT_MAX];
	fprintf(stderr, "cricketctl: place: %s: %s; it is left out\n",
		ckt_ctl_clean(address, clean, sizeof clean), why);
}

/* False: it was left out, which is said unless quiet. */
static bool ask(
	const struct ckt_ctl_args *args, const char *address, bool quiet, struct candidate *ret)
{
	struct ckt_ctl_args one = *args;
	struct ckt_ctl_server server;
	ckt_control_info_res info = {0};
	char message[CKT_MESSAGE_MAX];
	one.server = address;
	if (ckt_ctl_try_connect(&one, &server, message, sizeof message)) {
		if (!quiet)
			leave_out(address, message);
		return false;
	}
	int result = ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_INFO, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_info_res, &info, ckt_net_now_ms() + TIMEOUT_MS, -1);
	const char *why = result      ? "no answer"
		: info.stopping       ? "the server ends"
		: !info.gpus.gpus_len ? "it has no GPU"
		: info.max_sessions && info.sessions >= info.max_sessions
		? "it has no room for a session"
		: NULL;
	*ret = (struct candidate){
		.address = address, .sessions = info.sessions, .gpus = info.gpus.gpus_len};
	for (u_int i = 0; !why && i < info.gpus.gpus_len; i++) {
		uint64_t free_bytes = free_of(&server, &info.gpus.gpus_val[i]);
		if (free_bytes > ret->free_bytes)
			ret->free_bytes = free_bytes;
	}
	if (!result)
		xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&info);
	ckt_ctl_disconnect(&server);
	if (!why && ckt_ctl_drain_look(&one, NULL))
		why = "it is drained for maintenance";
	if (why && !quiet)
		leave_out(address, why);
	return !why;
}

static struct candidate choose(const struct ckt_ctl_args *args, const char *const *addresses,
	unsigned count, size_t policy, bool quiet)
{
	struct candidate best = {0}, next;
	for (unsigned i = 0; i < count; i++)
		if (ask(args, addresses[i], quiet, &next) &&
			(!best.address || policies[policy].compare(&next, &best) < 0))
			best = next;
	return best;
}

const char *ckt_ctl_place_least_loaded(
	const struct ckt_ctl_args *args, const char *const *addresses, unsigned count)
{
	return choose(args, addresses, count, 0, true).address;
}

int ckt_ctl_place(const struct ckt_ctl_args *args)
{
	size_t policy = 0;
	while (policy < sizeof policies / sizeof *policies &&
		strcmp(args->words[0], policies[policy].name) != 0)
		policy++;
	if (policy == sizeof policies / sizeof *policies) {
		fprintf(stderr,
			"cricketctl: place: unknown policy; write least-loaded, pack or spread\n");
		return CKT_EXIT_USAGE;
	}
	if (!args->server_count) {
		fprintf(stderr,
			"cricketctl: place: no servers to choose from; give each with --server\n");
		return CKT_EXIT_USAGE;
	}
	struct candidate best = choose(args, args->servers, args->server_count, policy, false);
	if (!best.address) {
		fprintf(stderr, "cricketctl: place: no server can take a program; see above\n");
		return CKT_EXIT_NO_SERVER;
	}
	if (args->json)
		return ckt_ctl_json_print(json_pack("{s:o, s:i, s:i, s:I}", "server",
			ckt_ctl_json_text(best.address), "sessions", (int)best.sessions, "gpus",
			(int)best.gpus, "free_bytes", (json_int_t)best.free_bytes));
	puts(best.address);
	return ckt_ctl_flush();
}
