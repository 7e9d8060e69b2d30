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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/format/broker.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "server/worker/cage/cage.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/libs/nccl/nccl_ids.h"
#include "server/worker/session/automatic.h"
#include "server/worker/session/control.h"
#include "server/worker/session/control_handlers.h"
#include "server/worker/session/control_operations.h"
#include "server/worker/session/deadline.h"
#include "server/worker/session/group.h"
#include "server/worker/session/start.h"
#include "server/worker/worker.h"

enum {
	CONTROL_THREADS = 6,
	REQUEST_TIMEOUT_MS = 5000,
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
		request->connection, data, size, ckt_net_now_ms() + CKT_REPLY_TIMEOUT_MS, pass_fd);
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
		[CKT_WORKER_CLIENT] = ckt_worker_serve_client,
		[CKT_WORKER_HOST_MEMORY] = ckt_worker_serve_host_memory,
		[CKT_WORKER_STATUS] = ckt_worker_serve_status,
		[CKT_WORKER_STATS] = ckt_worker_serve_stats,
		[CKT_WORKER_TRACE] = ckt_worker_serve_trace,
		[CKT_WORKER_GPUS] = ckt_worker_serve_gpus,
		[CKT_WORKER_HOLD] = ckt_worker_serve_hold,
		[CKT_WORKER_CUT] = ckt_worker_serve_cut,
		[CKT_WORKER_JOB] = ckt_worker_serve_job,
		[CKT_WORKER_OWNER] = ckt_worker_serve_owner,
		[CKT_WORKER_OWNER_NAME] = ckt_worker_serve_owner_name,
		[CKT_WORKER_OWNER_GONE] = ckt_worker_serve_owner_gone,
		[CKT_WORKER_ORIGIN] = ckt_worker_serve_origin,
		[CKT_WORKER_GROUP] = ckt_worker_serve_group,
		[CKT_WORKER_MODULE_CACHE] = ckt_worker_serve_module_cache,
		[CKT_WORKER_LEASE] = ckt_worker_serve_lease,
		[CKT_WORKER_LEASE_RECALL] = ckt_worker_serve_lease_recall,
		[CKT_WORKER_TURN] = ckt_worker_serve_turn,
		[CKT_WORKER_METRICS] = ckt_worker_serve_metrics,
		[CKT_WORKER_ACTIVITY] = ckt_worker_serve_activity,
		[CKT_WORKER_LEASE_WAITED] = ckt_worker_serve_lease_waited,
		[CKT_WORKER_LEASE_PRESS] = ckt_worker_serve_lease_press,
		[CKT_WORKER_DURABLE] = ckt_worker_serve_durable,
		[CKT_WORKER_AUTOMATIC] = ckt_automatic_serve,
		[CKT_WORKER_AFRESH] = ckt_automatic_serve_afresh,
		[CKT_WORKER_MANIFEST] = ckt_worker_serve_manifest,
		[CKT_WORKER_STAMPS] = ckt_worker_serve_stamps,
		[CKT_WORKER_STAMPED] = ckt_worker_serve_stamped,
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
	bool preloaded, held, stopped, together;
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
		bond.together |= request.together;
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
			ckt_group_serve(opaque, ckt_ipc_serve, ckt_ipc_owner_gone);
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
		if (bond.together)
			ckt_operation_leader_gone(opaque);
		if (bond.stopped)
			ckt_hold_set(opaque, CKT_HOLD_END, 0, 0, NULL, 0);
		ckt_transport_close(&connection);
	}
	return NULL;
}

bool ckt_worker_control_started(void)
{
	ckt_worker_control_lock();
	bool result = started;
	ckt_worker_control_unlock();
	return result;
}

bool ckt_worker_control_has_devices(void)
{
	return atomic_load(&has_devices);
}

void ckt_worker_control_lock(void)
{
	pthread_mutex_lock(&control_lock);
}

void ckt_worker_control_unlock(void)
{
	pthread_mutex_unlock(&control_lock);
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