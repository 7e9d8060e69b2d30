/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: a client that the server passes on; see control_handlers.h. */
#include "server/worker/session/control_handlers.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/net.h"
#include "server/worker/session/automatic.h"
#include "server/worker/session/client_process.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/lane.h"
#include "server/worker/worker.h"

static uint64_t told(const ckt_hello_args *hello, const char *name)
{
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++)
		if (strcmp(hello->capabilities.capabilities_val[i].name, name) == 0)
			return hello->capabilities.capabilities_val[i].value;
	return 0;
}

/*
 * Whether another copy of the session, restored from the same image as this one, has already
 * executed a command of the client; or whether this copy comes from such a copy.
 */
static bool went_elsewhere(const struct ckt_worker *worker, const ckt_hello_args *hello)
{
	uint64_t copy = told(hello, CKT_CAPABILITY_COPY),
		 attached = told(hello, CKT_CAPABILITY_ATTACHED), before = worker->copy_before;
	if (!copy || !before)
		return false;
	if (hello->generation == worker->generation)
		return copy != worker->copy && copy != before;
	/* What ran here before a crash is in an image that builds on its own past. */
	if (ckt_automatic_was(copy) || ckt_automatic_was(attached))
		return false;
	/* An idle program may have been moved without a command in between. */
	return hello->generation + 1 == worker->generation && copy != before && attached != before;
}

/*
 * Whether a durable client has what this copy has not seen: the copy comes from one that executed
 * commands which the client can send again.  The client checks how many of them it executed.
 */
static bool can_replay(const struct ckt_worker *worker, const ckt_hello_args *hello)
{
	if (!told(hello, CKT_CAPABILITY_DURABLE) || !worker->copy_before)
		return false;
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++) {
		const ckt_capability *c = &hello->capabilities.capabilities_val[i];
		if (strcmp(c->name, CKT_CAPABILITY_PAST) == 0 &&
			(c->value == worker->copy_before || c->value == worker->copy))
			return true;
	}
	return false;
}

/* Precondition: mail_lock held.  A client that names none leaves it as it is. */
static void take_job(struct ckt_worker *worker, const ckt_hello_args *hello)
{
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++) {
		const char *job =
			ckt_job_of_capability(hello->capabilities.capabilities_val[i].name);
		if (job)
			snprintf(worker->job, sizeof worker->job, "%s", job);
	}
}

/* Whether the client's past is not this copy's.  Precondition: mail_lock held. */
static bool is_stale(const struct ckt_worker *worker, const ckt_hello_args *hello,
	char *ret_message, size_t message_size)
{
	unsigned long long executed = atomic_load(&worker->replies.executed);
	if (hello->generation > worker->generation)
		snprintf(ret_message, message_size,
			"the client has seen generation %llu of this session, but this "
			"is generation %llu: the session runs elsewhere",
			(unsigned long long)hello->generation,
			(unsigned long long)worker->generation);
	else if (went_elsewhere(worker, hello))
		snprintf(ret_message, message_size,
			"the client resumed another copy of this session: this copy "
			"ends unclaimed");
	/* It has replies that this copy has not given: another copy is ahead of this one. */
	else if (hello->acked > executed)
		snprintf(ret_message, message_size,
			"the client has results of %llu commands of this session, but "
			"this copy has executed only %llu",
			(unsigned long long)hello->acked, executed);
	else
		return false;
	return true;
}

static ckt_hello_status check_client(struct ckt_worker *worker, const ckt_hello_args *hello,
	char *ret_message, size_t message_size)
{
	uint8_t hash[CKT_SECRET_HASH_SIZE];
	ckt_blob_hash(hello->secret, CKT_SECRET_SIZE, hash);
	/* Precondition: mail_lock held. */
	if (hello->protocol != CKT_PROTOCOL_VERSION) {
		snprintf(ret_message, message_size,
			"this server speaks protocol version %d, the client %u: install the same version on both sides",
			CKT_PROTOCOL_VERSION, hello->protocol);
		return CKT_HELLO_BAD_VERSION;
	}
	if (hello->kind == CKT_HELLO_NEW && !worker->has_owner &&
		worker->state == CKT_STATE_STARTING)
		return CKT_HELLO_OK;
	unsigned char differ = 0;
	for (size_t i = 0; i < sizeof hash; i++)
		differ |= hash[i] ^ worker->secret_hash[i];
	bool is_lane = hello->kind == CKT_HELLO_DATA;
	if ((hello->kind != CKT_HELLO_RESUME && !is_lane) || !worker->has_owner ||
		strcmp(hello->session, worker->session) || differ) {
		snprintf(ret_message, message_size, "session %s belongs to another client",
			worker->session);
		return CKT_HELLO_DENIED;
	}
	if (is_lane &&
		(worker->state != CKT_STATE_RUNNING || hello->generation != worker->generation)) {
		snprintf(ret_message, message_size,
			"session %s has no connection that a lane could belong to",
			worker->session);
		return CKT_HELLO_FAILED;
	}
	if (!(hello->kind == CKT_HELLO_RESUME && can_replay(worker, hello)) &&
		is_stale(worker, hello, ret_message, message_size))
		return CKT_HELLO_STALE;
	if (worker->state == CKT_STATE_ENDING) {
		snprintf(ret_message, message_size, "session %s ends", worker->session);
		return CKT_HELLO_PARKED;
	}
	return CKT_HELLO_OK;
}

static void refuse_client(int fd, uint32_t xid, ckt_hello_status status, char *message)
{
	ckt_hello_res res = {.status = status,
		.ckt_hello_res_u.refused = {.message = message, .moved_to = (char *)""}};
	uint8_t *data;
	size_t size;
	if (ckt_net_encode_reply(xid, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size))
		return;
	ckt_net_write_record(fd, data, size, ckt_net_now_ms() + CKT_REPLY_TIMEOUT_MS, -1);
	free(data);
}

static void adopt_client(
	struct ckt_worker *worker, struct ckt_request *request, const ckt_worker_client_args *args)
{
	fcntl(request->passed_fd, F_SETFL, fcntl(request->passed_fd, F_GETFL) | O_NONBLOCK);
	ckt_blob_hash(args->hello.secret, CKT_SECRET_SIZE, worker->secret_hash);
	if (!worker->has_owner)
		worker->uid = args->peer_uid;
	worker->has_owner = true;
	snprintf(worker->program_name, sizeof worker->program_name, "%s", args->hello.program_name);
	snprintf(worker->client, sizeof worker->client, "%s",
		args->hello.host[0] ? args->hello.host : args->peer);
	worker->client_pid = args->hello.pid;
	take_job(worker, &args->hello);
	if (worker->client_process >= 0)
		close(worker->client_process);
	worker->client_process =
		ckt_worker_client_process_open(request->passed_fd, args->hello.pid);
	if (worker->new_client.fd >= 0)
		close(worker->new_client.fd);
	worker->new_client.fd = request->passed_fd;
	worker->new_client.xid = args->xid;
	worker->new_client.takes_rings = told(&args->hello, CKT_CAPABILITY_RINGS) != 0;
	worker->new_client.durable = told(&args->hello, CKT_CAPABILITY_DURABLE) != 0;
	worker->new_client.stamped = told(&args->hello, CKT_CAPABILITY_STAMPS) != 0;
	worker->new_client.takes_again = told(&args->hello, CKT_CAPABILITY_AGAIN) != 0;
	worker->new_client.acked = args->hello.acked;
	worker->new_client.sleeps = told(&args->hello, CKT_CAPABILITY_SLEEP) != 0;
	request->passed_fd = -1;
	if (worker->new_client.memory_fd >= 0)
		close(worker->new_client.memory_fd);
	worker->new_client.memory_fd = *request->memory_fd;
	*request->memory_fd = -1;
	atomic_store(&worker->mail, true);
}

static void close_memory(struct ckt_request *request)
{
	if (*request->memory_fd >= 0)
		close(*request->memory_fd);
	*request->memory_fd = -1;
}

int ckt_worker_serve_client(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_client_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_client_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "the worker has no session yet";
	ckt_hello_status status = CKT_HELLO_FAILED;
	bool ready = ckt_worker_control_started() && request->passed_fd >= 0;
	bool is_lane = args.hello.kind == CKT_HELLO_DATA;
	if (ready) {
		pthread_mutex_lock(&worker->mail_lock);
		status = check_client(worker, &args.hello, message, sizeof message);
		if (status == CKT_HELLO_OK && !is_lane)
			adopt_client(worker, request, &args);
		pthread_mutex_unlock(&worker->mail_lock);
		if (status == CKT_HELLO_OK && !is_lane)
			ckt_executor_wake(worker);
	}
	if (status == CKT_HELLO_OK && is_lane) {
		status = ckt_worker_lanes_accept(worker, request->passed_fd, args.xid,
			told(&args.hello, CKT_CAPABILITY_LANES));
		request->passed_fd = -1;
	}
	/* The worker answers the hello, also with refusals. */
	if (status != CKT_HELLO_OK && request->passed_fd >= 0)
		refuse_client(request->passed_fd, args.xid, status, message);
	close_memory(request);
	/* Only the secret's hash stays in memory. */
	explicit_bzero(args.hello.secret, sizeof args.hello.secret);
	xdr_free((xdrproc_t)xdr_ckt_worker_client_args, (char *)&args);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_hello_status, &status);
}

/* The file of the pinned memory of the client that comes next. */
int ckt_worker_serve_host_memory(struct ckt_request *request)
{
	close_memory(request);
	*request->memory_fd = request->passed_fd;
	request->passed_fd = -1;
	return ckt_worker_control_reply(request, NULL, NULL);
}
