/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: what the server asks of its worker.  Some threads, made at the start like all
 * others, accept and serve one connection each; START happens once, saving one at a time.  Only
 * root and our own user may connect.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/format/manifest_hash.h"
#include "checkpoint/format/broker.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "server/worker/cage/cage.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/nccl/nccl_ids.h"
#include "server/worker/memory/lease.h"
#include "server/worker/module/blob_cache.h"
#include "server/worker/session/automatic.h"
#include "server/worker/session/activity.h"
#include "server/worker/session/call_trace.h"
#include "server/worker/session/lane.h"
#include "server/worker/session/client_process.h"
#include "server/worker/session/control.h"
#include "server/worker/session/deadline.h"
#include "server/worker/session/control_operations.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/group.h"
#include "server/worker/session/lane.h"
#include "server/worker/session/metrics.h"
#include "server/worker/session/start.h"
#include "server/worker/session/turn.h"
#include "server/worker/worker.h"

enum {
	CONTROL_THREADS = 6,
	REQUEST_TIMEOUT_MS = 5000,
	REPLY_TIMEOUT_MS = 5000,
	/* the server waits for two seconds */
	TRIM_MS = 500,
	TRIM_LOOK_NS = 200000
};

static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started, preloaded;
static _Atomic bool has_devices; /* started, for those who do not wait for control_lock */

int ckt_worker_control_reply_with(
	struct ckt_request *request, xdrproc_t xdr, void *res, int pass_fd)
{
	uint8_t *data;
	size_t size;
	int result = ckt_net_encode_reply(request->xid, 0, xdr, res, &data, &size);
	if (result)
		return result;
	result = ckt_record_write(
		request->connection, data, size, ckt_net_now_ms() + REPLY_TIMEOUT_MS, pass_fd);
	free(data);
	return result;
}

int ckt_worker_control_reply(struct ckt_request *request, xdrproc_t xdr, void *res)
{
	return ckt_worker_control_reply_with(request, xdr, res, -1);
}

static int start(struct ckt_request *request)
{
	ckt_worker_start_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_start_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_start_res res = {.message = message};
	atomic_store(&request->worker->start_seen, true);
	pthread_mutex_lock(&control_lock);
	if (started) {
		res.status = -EALREADY;
		snprintf(message, sizeof message, "this worker already has a session");
	} else if (request->passed_fd >= 0 && !ckt_broker_is(request->passed_fd)) {
		res.status = -EINVAL;
		request->end = true;
		snprintf(message, sizeof message, "the restore came without a file broker");
	} else {
		res.status = ckt_worker_start(
			request->worker, &args, request->passed_fd, message, sizeof message);
		if (res.status)
			ckt_error("%s", message);
		/* The server ends a warm worker that does not fit. */
		request->end = res.status && res.status != -EXDEV;
		started = !res.status;
		atomic_store(&has_devices, started);
	}
	pthread_mutex_unlock(&control_lock);
	xdr_free((xdrproc_t)xdr_ckt_worker_start_args, (char *)&args);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_start_res, &res);
}

/* Preloads modules and memory of a session that still runs elsewhere. */
static int preload(struct ckt_request *request)
{
	ckt_worker_start_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_start_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_start_res res = {.status = -EINVAL, .message = message};
	atomic_store(&request->worker->start_seen, true);
	pthread_mutex_lock(&control_lock);
	if (started || !args.restore ||
		(request->passed_fd >= 0 && !ckt_broker_is(request->passed_fd))) {
		snprintf(message, sizeof message,
			"an image can be preloaded only for a session that is to be "
			"restored, and only before that");
	} else {
		res.status = ckt_worker_start_ahead(
			request->worker, &args, request->passed_fd, message, sizeof message);
		if (res.status)
			ckt_error("%s", message);
		request->end = res.status && res.status != -EXDEV;
		request->ahead = !res.status;
		preloaded = !res.status;
	}
	pthread_mutex_unlock(&control_lock);
	xdr_free((xdrproc_t)xdr_ckt_worker_start_args, (char *)&args);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_start_res, &res);
}

/* Before the session is known: the worker ends with the connection, as one that preloads. */
static int warm(struct ckt_request *request)
{
	ckt_worker_start_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_start_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_start_res res = {.status = -EINVAL, .message = message};
	atomic_store(&request->worker->start_seen, true);
	pthread_mutex_lock(&control_lock);
	if (started || request->worker->stats || args.restore) {
		snprintf(message, sizeof message, "this worker was told before what to do");
	} else {
		res.status = ckt_worker_start_warm(request->worker, &args, message, sizeof message);
		if (res.status)
			ckt_error("%s", message);
		request->end = res.status != 0;
		request->ahead = !res.status;
	}
	pthread_mutex_unlock(&control_lock);
	xdr_free((xdrproc_t)xdr_ckt_worker_start_args, (char *)&args);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_start_res, &res);
}

/* START cannot come in between. */
static int serve_ids(
	struct ckt_request *request, int (*serve)(struct ckt_request *request, bool ready))
{
	pthread_mutex_lock(&control_lock);
	int result = serve(request, preloaded && !started);
	pthread_mutex_unlock(&control_lock);
	return result;
}

/* ---- A client */

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
	ckt_net_write_record(fd, data, size, ckt_net_now_ms() + REPLY_TIMEOUT_MS, -1);
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
	worker->new_client.takes_again = told(&args->hello, CKT_CAPABILITY_AGAIN) != 0;
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

static int client(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_client_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_client_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "the worker has no session yet";
	ckt_hello_status status = CKT_HELLO_FAILED;
	pthread_mutex_lock(&control_lock);
	bool ready = started && request->passed_fd >= 0;
	pthread_mutex_unlock(&control_lock);
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
static int host_memory(struct ckt_request *request)
{
	close_memory(request);
	*request->memory_fd = request->passed_fd;
	request->passed_fd = -1;
	return ckt_worker_control_reply(request, NULL, NULL);
}

/* Takes effect for the next image, and in STATUS at once. */
static int owner(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_owner_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_owner_args, &args);
	if (result)
		return result;
	pthread_mutex_lock(&worker->mail_lock);
	worker->owner = args;
	worker->uid = args.uid;
	pthread_mutex_unlock(&worker->mail_lock);
	return ckt_worker_control_reply(request, NULL, NULL);
}

static int owner_name(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_owner_name_args args = {0};
	int result =
		ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_owner_name_args, &args);
	if (result)
		return result;
	pthread_mutex_lock(&worker->mail_lock);
	snprintf(worker->owner_name, sizeof worker->owner_name, "%s", args.name);
	snprintf(worker->owner_project, sizeof worker->owner_project, "%s", args.project);
	pthread_mutex_unlock(&worker->mail_lock);
	xdr_free((xdrproc_t)xdr_ckt_worker_owner_name_args, (char *)&args);
	return ckt_worker_control_reply(request, NULL, NULL);
}

/* The channel by which this worker and others of its owner find each other. */
static int join_group(struct ckt_request *request)
{
	int error = request->passed_fd >= 0 ? ckt_group_join(request->passed_fd) : -EINVAL;
	request->passed_fd = -1;
	if (error)
		ckt_warning("cannot share memory with other sessions: %s", strerror(-error));
	return ckt_worker_control_reply(request, NULL, NULL);
}

/* The connection by which this worker reads and writes its owner's cache of modules. */
static int use_module_cache(struct ckt_request *request)
{
	int error = ckt_blob_cache_use(request->passed_fd);
	request->passed_fd = -1;
	if (error)
		ckt_warning("no cache of modules: %s", strerror(-error));
	return ckt_worker_control_reply(request, NULL, NULL);
}

/* The channel over which the server says when the session may use a GPU that it shares. */
static int take_turns(struct ckt_request *request)
{
	ckt_worker_result res = {.message = ""};
	res.status = request->passed_fd >= 0 ? ckt_turn_join(request->worker, request->passed_fd)
					     : -EINVAL;
	request->passed_fd = -1;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* The page in which the server reads what this worker counts: only once there are devices. */
static int use_metrics(struct ckt_request *request)
{
	bool good = atomic_load(&has_devices) && request->passed_fd >= 0;
	int error = good ? ckt_worker_metrics_use(request->worker, request->passed_fd) : -EINVAL;
	if (good)
		request->passed_fd = -1;
	if (error)
		ckt_warning("no metrics of this session: %s", strerror(-error));
	return ckt_worker_control_reply(request, NULL, NULL);
}

static int use_activity(struct ckt_request *request)
{
	char message[] = "";
	ckt_worker_result res = {.message = message, .status = -EINVAL};
	if (atomic_load(&has_devices) && request->passed_fd >= 0) {
		res.status = ckt_activity_use(request->worker, request->passed_fd);
		request->passed_fd = -1;
	}
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* ---- Questions */

static int origin(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	pthread_mutex_lock(&worker->mail_lock);
	ckt_worker_origin_res res = worker->origin;
	res.session = worker->session;
	int result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_origin_res, &res);
	pthread_mutex_unlock(&worker->mail_lock);
	return result;
}

static int manifest(struct ckt_request *request)
{
	ckt_worker_manifest_args args = {0};
	ckt_worker_manifest_res res = {0};
	if (ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_manifest_args, &args))
		return -EPROTO;
	if (args.expect)
		ckt_manifest_expect((const uint8_t *)args.hash);
	else if (!ckt_manifest_written_hash(args.image, (uint8_t *)res.hash))
		res.status = -ENOENT;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_manifest_res, &res);
}

static int status(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	uint64_t memory = 0;
	for (unsigned d = 0; d < worker->device_count; d++)
		if (worker->devices[d].memory.ops)
			memory += ckt_memory_used(&worker->devices[d].memory);
	pthread_mutex_lock(&worker->mail_lock);
	ckt_worker_status_res res = {.session = worker->session,
		.state = worker->checkpoint.swapped        ? CKT_STATE_SWAPPED
			: worker->checkpoint.paused        ? CKT_STATE_PAUSED
			: worker->checkpoint.freeze.frozen ? CKT_STATE_FROZEN
							   : worker->state,
		.program_name = worker->program_name,
		.client = worker->client,
		.client_pid = worker->client_pid,
		.uid = worker->uid,
		.worker_pid = (u_int)getpid(),
		.gpu = worker->device_count ? (int)worker->devices[0].number : -1,
		.memory_bytes = memory,
		.started = worker->started,
		.generation = worker->generation,
		.executed = atomic_load(&worker->replies.executed),
		.note = worker->note};
	memcpy(res.secret_hash, worker->secret_hash, sizeof res.secret_hash);
	int result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_status_res, &res);
	pthread_mutex_unlock(&worker->mail_lock);
	return result;
}

static int job(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	pthread_mutex_lock(&worker->mail_lock);
	ckt_worker_job_res res = {.job = worker->job};
	int result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_job_res, &res);
	pthread_mutex_unlock(&worker->mail_lock);
	return result;
}

static int hold(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_hold_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_hold_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_hold_res res = {.status = -EINVAL};
	if (!ckt_worker_control_started())
		snprintf(message, sizeof message, "the worker has no session yet");
	else if (args.action > CKT_HOLD_END)
		snprintf(message, sizeof message, "unknown way to hold a session");
	else
		res.status = args.action == CKT_HOLD_LOOK
			? 0
			: ckt_hold_set(worker, args.action, args.commands, args.issued, message,
				  sizeof message);
	request->stopped = !res.status && args.action == CKT_HOLD_STOP;
	res.message = message;
	if (!res.status)
		ckt_hold_look(worker, &res, message);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_hold_res, &res);
}

static int gpus(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_gpu list[CKT_DEVICES_MAX];
	ckt_worker_gpus_res res = {.gpus = {.gpus_val = list}};
	for (unsigned d = 0; d < worker->device_count && d < CKT_DEVICES_MAX; d++) {
		struct ckt_worker_device *device = &worker->devices[d];
		list[res.gpus.gpus_len++] = (ckt_worker_gpu){.gpu = (int)device->number,
			.memory_bytes = device->memory.ops ? ckt_memory_used(&device->memory) : 0};
	}
	pthread_mutex_lock(&worker->mail_lock);
	res.client = worker->client;
	res.client_pid = worker->client_pid;
	int result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_gpus_res, &res);
	pthread_mutex_unlock(&worker->mail_lock);
	return result;
}

/* Memory that is mapped and free goes, unless its lock waits for the server itself. */
static void trim_for_recall(struct ckt_worker *worker)
{
	/* Else START is making the devices: a new session has nothing that is free. */
	for (unsigned d = 0; atomic_load(&has_devices) && d < worker->device_count; d++) {
		int64_t until = ckt_net_now_ms() + TRIM_MS;
		while (!ckt_memory_try_trim(&worker->devices[d].memory) && !ckt_lease_is_asking() &&
			ckt_net_now_ms() < until)
			nanosleep(&(struct timespec){.tv_nsec = TRIM_LOOK_NS}, NULL);
	}
}

static int lease_recall(struct ckt_request *request)
{
	ckt_worker_lease list[CKT_DEVICES_MAX];
	ckt_worker_lease_res res;
	trim_for_recall(request->worker);
	ckt_lease_recall(list, &res);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_lease_res, &res);
}

static int lease_waited(struct ckt_request *request)
{
	ckt_worker_waited_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_waited_args, &args);
	if (!result && !ckt_lease_waited(&args))
		result = -EPROTO;
	return result ? result : ckt_worker_control_reply(request, NULL, NULL);
}

static int lease_press(struct ckt_request *request)
{
	ckt_worker_press_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_press_args, &args);
	if (result)
		return result;
	/* In this order: what is freed in between is given back by one of the two. */
	ckt_lease_press(args.on);
	if (args.on)
		trim_for_recall(request->worker);
	return ckt_worker_control_reply(request, NULL, NULL);
}

static int lease_join(struct ckt_request *request)
{
	ckt_worker_lease_args args = {0};
	ckt_worker_lease list[CKT_DEVICES_MAX];
	ckt_worker_lease_res res;
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_lease_args, &args);
	if (!result && request->passed_fd < 0)
		result = -EPROTO;
	if (!result)
		result = ckt_lease_join(request->passed_fd, args.unlimited, list, &res);
	request->passed_fd = result == -EPROTO ? request->passed_fd : -1;
	return result
		? result
		: ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_lease_res, &res);
}

static int stats(struct ckt_request *request)
{
	static ckt_worker_stat list[CKT_WORKER_STATS_MAX]; /* under control_lock */
	struct ckt_worker *worker = request->worker;
	char transport[32];
	unsigned count = 0;
	pthread_mutex_lock(&control_lock);
	snprintf(transport, sizeof transport, "%s%s", CKT_STAT_TRANSPORT,
		ckt_output_transport(&worker->output));
	list[count++] =
		(ckt_worker_stat){.name = transport, .calls = ckt_worker_lanes_count(worker)};
	struct ckt_blob_cache_counts cache;
	ckt_blob_cache_count(&cache);
	list[count++] = (ckt_worker_stat){.name = (char *)CKT_STAT_MODULE_HITS,
		.calls = cache.hits,
		.bytes = cache.hit_bytes};
	list[count++] =
		(ckt_worker_stat){.name = (char *)CKT_STAT_MODULE_MISSES, .calls = cache.misses};
	ckt_worker_stat *received = &list[count++], *sent = &list[count++];
	*received = (ckt_worker_stat){.name = (char *)CKT_STAT_RECEIVED};
	*sent = (ckt_worker_stat){.name = (char *)CKT_STAT_SENT};
	for (unsigned i = 0; i < CKT_STATS && count < CKT_WORKER_STATS_MAX && worker->stats; i++) {
		struct ckt_stat *stat = &worker->stats[i];
		uint64_t calls = __atomic_load_n(&stat->calls, __ATOMIC_RELAXED),
			 in = __atomic_load_n(&stat->bytes_in, __ATOMIC_RELAXED),
			 out = __atomic_load_n(&stat->bytes_out, __ATOMIC_RELAXED);
		const char *name = ckt_stat_name(i);
		received->bytes += in;
		sent->bytes += out;
		if (!calls || !name)
			continue;
		list[count++] = (ckt_worker_stat){.name = (char *)name,
			.calls = calls,
			.batched = __atomic_load_n(&stat->batched, __ATOMIC_RELAXED),
			.waited = __atomic_load_n(&stat->waited, __ATOMIC_RELAXED),
			.bytes = in + out};
	}
	ckt_worker_stats_res res = {.stats = {.stats_len = count, .stats_val = list}};
	int result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_stats_res, &res);
	pthread_mutex_unlock(&control_lock);
	return result;
}

static int trace(struct ckt_request *request)
{
	ckt_worker_trace_args args = {0};
	char message[CKT_MESSAGE_MAX];
	ckt_worker_trace_res res;
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_trace_args, &args);
	if (result)
		return result;
	ckt_call_trace_lock();
	ckt_call_trace_serve(request->worker, &args, &res, message);
	result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_trace_res, &res);
	ckt_call_trace_unlock();
	return result;
}

static int durable(struct ckt_request *request)
{
	ckt_worker_durable_args args = {0};
	ckt_worker_result res = {.status = 0, .message = (char *)""};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_durable_args, &args);
	if (result)
		return result;
	/* A number that is not executed yet would make the client forget what it must send again. */
	if (args.executed > atomic_load(&request->worker->replies.executed))
		res.status = -EINVAL;
	else
		ckt_impose_tell_durable(request->worker, args.executed);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* ---- Connections */

static int null(struct ckt_request *request)
{
	return ckt_worker_control_reply(request, NULL, NULL);
}

static int nccl_make(struct ckt_request *request)
{
	return serve_ids(request, ckt_worker_nccl_ids_serve_make);
}

static int nccl_ids(struct ckt_request *request)
{
	return serve_ids(request, ckt_worker_nccl_ids_serve_pairs);
}

static int end(struct ckt_request *request)
{
	request->end = true;
	return ckt_worker_control_reply(request, NULL, NULL);
}

static int dispatch(struct ckt_request *request, uint32_t proc)
{
	static int (*const serve[])(struct ckt_request * request) = {
		[CKT_WORKER_NULL] = null,
		[CKT_WORKER_NCCL_MAKE] = nccl_make,
		[CKT_WORKER_NCCL_IDS] = nccl_ids,
		[CKT_WORKER_KILL] = end,
		[CKT_WORKER_START] = start,
		[CKT_WORKER_WARM] = warm,
		[CKT_WORKER_PRELOAD] = preload,
		[CKT_WORKER_CLIENT] = client,
		[CKT_WORKER_HOST_MEMORY] = host_memory,
		[CKT_WORKER_STATUS] = status,
		[CKT_WORKER_STATS] = stats,
		[CKT_WORKER_TRACE] = trace,
		[CKT_WORKER_GPUS] = gpus,
		[CKT_WORKER_HOLD] = hold,
		[CKT_WORKER_JOB] = job,
		[CKT_WORKER_OWNER] = owner,
		[CKT_WORKER_OWNER_NAME] = owner_name,
		[CKT_WORKER_ORIGIN] = origin,
		[CKT_WORKER_GROUP] = join_group,
		[CKT_WORKER_MODULE_CACHE] = use_module_cache,
		[CKT_WORKER_LEASE] = lease_join,
		[CKT_WORKER_LEASE_RECALL] = lease_recall,
		[CKT_WORKER_TURN] = take_turns,
		[CKT_WORKER_METRICS] = use_metrics,
		[CKT_WORKER_ACTIVITY] = use_activity,
		[CKT_WORKER_LEASE_WAITED] = lease_waited,
		[CKT_WORKER_LEASE_PRESS] = lease_press,
		[CKT_WORKER_DURABLE] = durable,
		[CKT_WORKER_AUTOMATIC] = ckt_automatic_serve,
		[CKT_WORKER_AFRESH] = ckt_automatic_serve_afresh,
		[CKT_WORKER_MANIFEST] = manifest,
		[CKT_WORKER_FENCE] = ckt_deadline_serve,
	};
	return proc < sizeof serve / sizeof *serve && serve[proc]
		? serve[proc](request)
		: ckt_operation_serve(request, proc);
}

/* Who made our socket. */
static uid_t server_uid;

/*
 * Root's server, or one of the user who made our socket: as that user other workers may run as
 * well.
 */
static bool may_control(struct ckt_transport *connection)
{
	pid_t pid;
	uid_t uid;
	return ckt_transport_peer_process(connection, &pid, &uid) == 0 &&
		(uid == 0 || (uid == server_uid && !ckt_cage_has_peer(pid)));
}

/* The effect of a connection's end: nothing else keeps a session that it preloaded or held. */
struct bond {
	bool preloaded, held, stopped;
};

static struct bond serve(
	struct ckt_worker *worker, struct ckt_transport *connection, int *memory_fd)
{
	struct bond bond = {0};
	for (;;) {
		int ready = ckt_transport_wait(connection, CKT_TRANSPORT_READ, -1);
		if (ready < 0 && ready != -EINTR)
			return bond;
		struct ckt_request request = {.worker = worker,
			.connection = connection,
			.passed_fd = -1,
			.memory_fd = memory_fd};
		uint8_t *data;
		size_t size;
		if (ckt_record_read(connection, 65536, ckt_net_now_ms() + REQUEST_TIMEOUT_MS, &data,
			    &size, &request.passed_fd))
			return bond;
		struct ckt_call_header header = {0};
		request.args = (struct ckt_cursor){.p = data, .end = data + size};
		int result = -EPROTO;
		if (ckt_call_header_get(&request.args, &header) &&
			header.prog == CRICKET_WORKER_PROG && header.vers == CRICKET_WORKER_VERS) {
			request.xid = header.xid;
			result = dispatch(&request, header.proc);
		}
		free(data);
		if (request.passed_fd >= 0)
			close(request.passed_fd);
		if (request.asleep)
			ckt_worker_end_cut_off("the session sleeps");
		if (request.end)
			ckt_worker_end(started ? "the server ended the session"
					       : "the worker could not start");
		bond.preloaded |= request.ahead;
		bond.held |= request.held;
		bond.stopped |= request.stopped;
		if (result)
			return bond;
	}
}

static int control_fd, group_fd;

static void *control_thread(void *opaque)
{
	for (;;) {
		struct pollfd p[2] = {
			{.fd = control_fd, .events = POLLIN}, {.fd = group_fd, .events = POLLIN}};
		poll(p, 2, -1);
		if (p[1].revents)
			ckt_group_serve(opaque, ckt_ipc_serve);
		int fd = accept4(control_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		struct ckt_transport connection;
		ckt_transport_init_socket(&connection, fd);
		int memory_fd = -1;
		struct bond bond = may_control(&connection) ? serve(opaque, &connection, &memory_fd)
							    : (struct bond){0};
		if (memory_fd >= 0)
			close(memory_fd);
		if (bond.preloaded && !ckt_worker_control_started())
			ckt_worker_end(ckt_worker.warm
					? "the server that kept it warm is gone"
					: "the session that was to move here stays at its server");
		if (bond.held)
			ckt_operation_let_go(opaque);
		if (bond.stopped)
			ckt_hold_set(opaque, CKT_HOLD_END, 0, 0, NULL, 0);
		ckt_transport_close(&connection);
	}
	return NULL;
}

bool ckt_worker_control_started(void)
{
	pthread_mutex_lock(&control_lock);
	bool result = started;
	pthread_mutex_unlock(&control_lock);
	return result;
}

int ckt_worker_control_start(struct ckt_worker *worker, int listen_fd)
{
	struct stat status;
	if (fstat(listen_fd, &status))
		return -errno;
	server_uid = status.st_uid;
	control_fd = listen_fd;
	group_fd = ckt_group_init();
	if (group_fd < 0)
		return group_fd;
	/* Several threads race for every connection: the losers must not block in accept. */
	fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) | O_NONBLOCK);
	for (int i = 0; i < CONTROL_THREADS; i++) {
		pthread_t thread;
		int error = pthread_create(&thread, NULL, control_thread, worker);
		if (error)
			return -error;
		pthread_detach(thread);
	}
	return 0;
}
