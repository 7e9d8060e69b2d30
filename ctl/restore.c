/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl restore DIR
 *
 * On the server's host we open the files of the chain for the worker; from elsewhere they are sent,
 * and the server removes its copies when this connection ends.  An image in the server's memory is
 * only named, memory:NAME.
 */
#include "ctl/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "ctl/brokers.h"
#include "ctl/chain.h"
#include "ctl/claim.h"
#include "ctl/client/client.h"
#include "ctl/client_address.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "ctl/progress.h"
#include "ctl/sealed_image.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "ctl/transfer.h"
#include "ctl/vouch.h"
#include "rpc/identity.h"
#include "rpc/token_file.h"
#include "rpc/net.h"

enum { ANSWER_MS = 15000 };

int ckt_ctl_parse_gpu(const char *text, int *ret_gpu)
{
	char *end;
	*ret_gpu = -1;
	if (!text)
		return CKT_EXIT_DONE;
	long gpu = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || gpu >= CKT_DEVICES_MAX) {
		fprintf(stderr,
			"cricketctl: --gpu: '%s' is not valid: write the driver's "
			"number of a GPU; see cricketctl info\n",
			text);
		return CKT_EXIT_USAGE;
	}
	*ret_gpu = (int)gpu;
	return CKT_EXIT_DONE;
}

/* ---- The client */

int ckt_ctl_public_address(struct ckt_ctl_server *server, char *ret_text, size_t text_size)
{
	ckt_control_info_res info = {0};
	struct ckt_address address;
	char message[512];
	int status = ckt_ctl_call(server, CKT_CONTROL_INFO, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_info_res, &info, ANSWER_MS, -1);
	if (status != CKT_EXIT_DONE)
		return status;
	snprintf(ret_text, text_size, "HOST:PORT");
	if (info.listening.listening_len &&
		ckt_address_parse(info.listening.listening_val[0].text, &address, message,
			sizeof message) == 0) {
		/*
		 * What was bound may be a wildcard or loopback; the host's name is what others
		 * know.
		 */
		snprintf(address.host, sizeof address.host, "%.255s", info.host);
		ckt_address_format(&address, ret_text, text_size);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&info);
	return CKT_EXIT_DONE;
}

/* The session's owner, its client's host and what is noted about it, from the list. */
static bool find_client(struct ckt_ctl_server *server, const char *session, char *ret_host,
	size_t host_size, uint32_t *ret_uid, char ret_note[CKT_MESSAGE_MAX + 1])
{
	/* The list begins behind the name given: this one is just before the session. */
	char after[CKT_SESSION_ID_SIZE + 1];
	ckt_control_list_args call = {.after = after};
	ckt_control_list_res res = {0};
	snprintf(after, sizeof after, "%.*s", CKT_SESSION_ID_SIZE - 1, session);
	if (ckt_ctl_call(server, CKT_CONTROL_LIST, (xdrproc_t)xdr_ckt_control_list_args, &call,
		    (xdrproc_t)xdr_ckt_control_list_res, &res, ANSWER_MS, -1) != CKT_EXIT_DONE)
		return false;
	bool found = false;
	for (u_int i = 0; i < res.sessions.sessions_len && !found; i++) {
		const ckt_control_session *one = &res.sessions.sessions_val[i];
		found = strcmp(one->session, session) == 0;
		if (found) {
			snprintf(ret_host, host_size, "%s", one->client);
			*ret_uid = one->uid;
			snprintf(ret_note, CKT_MESSAGE_MAX + 1, "%s", one->note);
		}
	}
	xdr_free((xdrproc_t)xdr_ckt_control_list_res, (char *)&res);
	return found;
}

void ckt_ctl_tell_client(
	const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *session)
{
	char client[CKT_ADDRESS_MAX + 1], here[CKT_NAME_MAX] = "", address[CKT_ADDRESS_TEXT_MAX],
					  message[1200], clean[CKT_ADDRESS_MAX + 1];
	char note[CKT_MESSAGE_MAX + 1], clean_note[CKT_MESSAGE_MAX + 1];
	uint32_t uid;
	if (!find_client(server, session, client, sizeof client, &uid, note))
		return;
	if (*note)
		fprintf(stderr, "cricketctl: note: session %s %s\n", session,
			ckt_ctl_clean(note, clean_note, sizeof clean_note));
	gethostname(here, sizeof here - 1);
	bool is_user = uid != CKT_UID_UNKNOWN && !ckt_owner_is_token(uid);
	bool ours = strcmp(client, here) == 0 && (!is_user || uid == getuid());
	if (args->client_address)
		snprintf(address, sizeof address, "%s", args->client_address);
	else if (strcmp(client, here) == 0)
		snprintf(address, sizeof address, "%s", server->address);
	else if (ckt_ctl_public_address(server, address, sizeof address) != CKT_EXIT_DONE)
		return;
	if (ours && ckt_ctl_state_write(session, address, message, sizeof message) == 0)
		return;
	if (ours)
		fprintf(stderr, "cricketctl: %s\n", message);
	fprintf(stderr,
		"cricketctl: if the client does not look for the session at %s, run "
		"this on %s as its user:\n  cricketctl redirect %s --to %s\n",
		address, ckt_ctl_clean(client, clean, sizeof clean), session, address);
}

/* ---- The chain */

static int chain_send(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const struct ckt_ctl_chain *chain, char stages[][CKT_CONTROL_NAME_MAX + 1],
	struct ckt_ctl_progress *progress)
{
	int status = CKT_EXIT_DONE;
	for (unsigned i = 0; i < chain->count && status == CKT_EXIT_DONE; i++) {
		status = ckt_ctl_stage_make(server, stages[i]);
		if (status == CKT_EXIT_DONE)
			status = ckt_ctl_send(args, server, stages[i], chain->fds[i], progress);
	}
	return status;
}

int ckt_ctl_restore_stages(struct ckt_ctl_server *server, int gpu, ckt_control_stage_args *stages,
	unsigned count, char ret_session[CKT_SESSION_ID_SIZE + 1])
{
	ckt_control_restore2_args call = {.gpu = gpu, .stages = {count, stages}};
	ckt_control_restore_res res = {0};
	int status =
		ckt_ctl_call(server, CKT_CONTROL_RESTORE2, (xdrproc_t)xdr_ckt_control_restore2_args,
			&call, (xdrproc_t)xdr_ckt_control_restore_res, &res, -1, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE)
		snprintf(ret_session, CKT_SESSION_ID_SIZE + 1, "%s", res.session);
	xdr_free((xdrproc_t)xdr_ckt_control_restore_res, (char *)&res);
	return status;
}

/* A chain on its way. */
struct ckt_ctl_passing {
	struct ckt_ctl_chain chain;
	char names[CKT_CONTROL_CHAIN_MAX + 1][CKT_CONTROL_NAME_MAX + 1];
	ckt_control_stage_args stages[CKT_CONTROL_CHAIN_MAX];
	unsigned stage_count; /* 0: it is passed with each call */
	const struct ckt_ctl_args *args;
	struct ckt_ctl_voucher voucher;
	struct ckt_ctl_claim claim;
	struct ckt_ctl_plain plain; /* of an encrypted image */
};

static int decrypt(const struct ckt_ctl_args *args, const char *path, int from,
	struct ckt_ctl_plain *ret_plain)
{
	/* Those of an encrypted job are decrypted by now (job_sealed.c). */
	if (args->job)
		return ckt_ctl_refuse(path,
			"is encrypted, and job.json is not: restore the job from another copy");
	int status = ckt_ctl_plain_make(ret_plain);
	return status == CKT_EXIT_DONE ? ckt_ctl_image_unseal(args, path, from, ret_plain->fd, NULL)
				       : status;
}

static int open_chain(const struct ckt_ctl_args *args, const char *path, const char *plain,
	int place, struct ckt_ctl_passing *p)
{
	int status = CKT_EXIT_DONE;
	if (!plain && place >= 0 && ckt_ctl_image_is_sealed(place)) {
		status = decrypt(args, path, place, &p->plain);
		plain = p->plain.path;
	}
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_chain_open(plain ? plain : path, false, &p->chain);
	return status == CKT_EXIT_DONE && p->chain.count > CKT_CONTROL_CHAIN_MAX
		? ckt_ctl_refuse(path,
			  "builds on too many images: merge one of its images with "
			  "'cricketctl image flatten'")
		: status;
}

int ckt_ctl_passing_open(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const char *path, const char *plain, struct ckt_ctl_progress *progress,
	struct ckt_ctl_passing **ret_passing)
{
	struct ckt_ctl_passing *p = calloc(1, sizeof *p);
	if (p)
		p->claim.fd = p->plain.fd = -1;
	int place = p ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int status = p ? CKT_EXIT_DONE : ckt_ctl_refuse(path, "out of memory");
	if (status == CKT_EXIT_DONE)
		status = open_chain(args, path, plain, place, p);
	if (status == CKT_EXIT_DONE) {
		p->args = args;
		status = ckt_ctl_voucher_read(args, path, p->chain.fds[0],
			p->chain.read ? p->chain.image.session : NULL, args->with_client,
			&p->voucher);
	}
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_claim_take(args, server, path, place,
			p->chain.read ? p->chain.image.session : "", &p->claim);
	if (status == CKT_EXIT_DONE && !server->is_unix)
		status = chain_send(args, server, &p->chain, p->names, progress);
	for (; status == CKT_EXIT_DONE && !server->is_unix && p->stage_count < p->chain.count;
		p->stage_count++)
		p->stages[p->stage_count].stage = p->names[p->stage_count];
	if (place >= 0)
		close(place);
	if (status == CKT_EXIT_DONE)
		*ret_passing = p;
	else
		ckt_ctl_passing_close(p);
	return status;
}

void ckt_ctl_passing_close(struct ckt_ctl_passing *p)
{
	if (p) {
		ckt_ctl_claim_settle(&p->claim, false);
		ckt_ctl_chain_close(&p->chain);
		ckt_ctl_plain_remove(&p->plain);
	}
	free(p);
}

int ckt_ctl_passing_preload(struct ckt_ctl_passing *p, struct ckt_ctl_server *server, int gpu,
	bool last, char copy[CKT_SESSION_ID_SIZE + 1])
{
	struct ckt_broker *broker = NULL;
	ckt_control_preload_args call = {
		.copy = copy, .gpu = gpu, .last = last, .stages = {p->stage_count, p->stages}};
	ckt_control_restore_res res = {0};
	int status = ckt_ctl_voucher_show(p->args, server, &p->voucher);
	if (status == CKT_EXIT_DONE && !p->stage_count)
		status = ckt_ctl_chain_pass(server, p->chain.fds, p->chain.count, &broker);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_call(server, CKT_CONTROL_PRELOAD,
			(xdrproc_t)xdr_ckt_control_preload_args, &call,
			(xdrproc_t)xdr_ckt_control_restore_res, &res, -1, -1);
	ckt_broker_stop(broker);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE)
		snprintf(copy, CKT_SESSION_ID_SIZE + 1, "%s", res.session);
	if (status == CKT_EXIT_DONE && last)
		ckt_ctl_claim_settle(&p->claim, true);
	xdr_free((xdrproc_t)xdr_ckt_control_restore_res, (char *)&res);
	return status;
}

int ckt_ctl_restore_image(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const char *path, const char *plain, int gpu, struct ckt_ctl_progress *progress,
	char ret_session[CKT_SESSION_ID_SIZE + 1])
{
	struct ckt_ctl_passing *p = NULL;
	struct ckt_broker *broker = NULL;
	int status = ckt_ctl_passing_open(args, server, path, plain, progress, &p);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_voucher_show(args, server, &p->voucher);
	if (status == CKT_EXIT_DONE && !p->stage_count)
		status = ckt_ctl_chain_pass(server, p->chain.fds, p->chain.count, &broker);
	if (status == CKT_EXIT_DONE)
		status =
			ckt_ctl_restore_stages(server, gpu, p->stages, p->stage_count, ret_session);
	if (status == CKT_EXIT_DONE)
		ckt_ctl_claim_settle(&p->claim, true);
	ckt_broker_stop(broker);
	ckt_ctl_passing_close(p);
	return status;
}

static int restore(const struct ckt_ctl_args *args, struct ckt_ctl_server *server, int gpu,
	char ret_session[CKT_SESSION_ID_SIZE + 1])
{
	const char *named = args->server_side       ? args->server_side
		: ckt_ctl_kept_name(args->words[0]) ? args->words[0]
						    : NULL;
	ckt_control_stage_args stage = {.stage = (char *)named};
	struct ckt_ctl_progress *progress = ckt_ctl_progress_begin(args, server, "");
	int status = named ? ckt_ctl_restore_stages(server, gpu, &stage, 1, ret_session)
			   : ckt_ctl_restore_image(args, server, args->words[0], NULL, gpu,
				     progress, ret_session);
	ckt_ctl_progress_end(progress);
	return status;
}

static int print(const struct ckt_ctl_args *args, const char *session, pid_t pid)
{
	char process[48] = "";
	if (args->json)
		return ckt_ctl_json_print(pid
				? json_pack("{s:o, s:i}", "session", ckt_ctl_json_text(session),
					  "client_pid", (int)pid)
				: json_pack("{s:o}", "session", ckt_ctl_json_text(session)));
	if (pid)
		snprintf(process, sizeof process, " and its client, process %d,", (int)pid);
	printf("session %s%s restored from %s\n", session, process,
		args->server_side ? args->server_side : args->words[0]);
	return ckt_ctl_flush();
}

static int refuse_options(const char *message)
{
	fprintf(stderr, "cricketctl: %s\n", message);
	return CKT_EXIT_USAGE;
}

/* Whether the options go together, and the image has a place. */
static int check_options(const struct ckt_ctl_args *args)
{
	if (args->place)
		return refuse_options("--place needs restore --job");
	if (args->fork && args->again)
		return refuse_options(
			"--fork makes a further copy, --again takes over: choose one");
	int status = ckt_ctl_check_place(args, args->word_count == 1);
	const char *kept = status == CKT_EXIT_DONE && !args->server_side
		? ckt_ctl_kept_name(args->words[0])
		: NULL;
	if (kept)
		status = ckt_ctl_check_kept(kept);
	if (status != CKT_EXIT_DONE || (!kept && !args->server_side))
		return status;
	if (args->with_client)
		return refuse_options("--with-client needs a directory here");
	if (args->fork || args->again)
		return refuse_options("--fork and --again need a directory here");
	if (args->image_key_count)
		return refuse_options("--image-key needs a directory here: the server's own key "
				      "vouches for what stays there");
	return CKT_EXIT_DONE;
}

int ckt_ctl_restore(const struct ckt_ctl_args *args)
{
	static struct ckt_ctl_client client = {.fd = -1};
	struct ckt_ctl_server server;
	char session[CKT_SESSION_ID_SIZE + 1];
	if (args->job)
		return ckt_ctl_job_restore(args);
	int gpu, status = ckt_ctl_parse_gpu(args->gpu, &gpu);
	if (status == CKT_EXIT_DONE)
		status = check_options(args);
	if (status == CKT_EXIT_DONE && args->with_client)
		status = ckt_ctl_client_open(args->words[0], &client);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_connect_near(args, &server);
	if (status != CKT_EXIT_DONE) {
		ckt_ctl_client_close(&client);
		return status;
	}
	status = restore(args, &server, gpu, session);
	if (status == CKT_EXIT_DONE && args->with_client)
		status = ckt_ctl_client_restore(args, &client, &server, session);
	else if (status == CKT_EXIT_DONE)
		ckt_ctl_tell_client(args, &server, session);
	ckt_ctl_disconnect(&server);
	ckt_ctl_client_close(&client);
	return status == CKT_EXIT_DONE
		? print(args, session, args->with_client ? client.process.pid : 0)
		: status;
}
