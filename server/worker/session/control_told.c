/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: what the server tells its worker; see control_handlers.h. */
#include "server/worker/session/control_handlers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "checkpoint/session.h"
#include "rpc/group.h"
#include "rpc/net.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/memory/lease.h"
#include "server/worker/module/blob_cache.h"
#include "server/worker/session/activity.h"
#include "server/worker/session/group.h"
#include "server/worker/session/metrics.h"
#include "server/worker/session/stamps.h"
#include "server/worker/session/turn.h"
#include "server/worker/worker.h"

enum {
	/* the server waits for two seconds */
	TRIM_MS = 500,
	TRIM_LOOK_NS = 200000
};

/* Takes effect for the next image, and in STATUS at once. */
int ckt_worker_serve_owner(struct ckt_request *request)
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

int ckt_worker_serve_owner_name(struct ckt_request *request)
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
int ckt_worker_serve_group(struct ckt_request *request)
{
	int error = request->passed_fd >= 0 ? ckt_group_join(request->passed_fd) : -EINVAL;
	request->passed_fd = -1;
	if (error)
		ckt_warning("cannot share memory with other sessions: %s", strerror(-error));
	return ckt_worker_control_reply(request, NULL, NULL);
}

/* Counting may ask the server, which goes on meanwhile. */
int ckt_worker_serve_owner_gone(struct ckt_request *request)
{
	ckt_worker_gone_args args = {0};
	struct ckt_group_name name;
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_gone_args, &args);
	if (result)
		return result;
	memcpy(name.bytes, args.name, sizeof name.bytes);
	ckt_ipc_owner_gone(request->worker, &name);
	return ckt_worker_control_reply(request, NULL, NULL);
}

/* The connection by which this worker reads and writes its owner's cache of modules. */
int ckt_worker_serve_module_cache(struct ckt_request *request)
{
	int error = ckt_blob_cache_use(request->passed_fd);
	request->passed_fd = -1;
	if (error)
		ckt_warning("no cache of modules: %s", strerror(-error));
	return ckt_worker_control_reply(request, NULL, NULL);
}

/* The channel over which the server says when the session may use a GPU that it shares. */
int ckt_worker_serve_turn(struct ckt_request *request)
{
	ckt_worker_result res = {.message = ""};
	res.status = request->passed_fd >= 0 ? ckt_turn_join(request->worker, request->passed_fd)
					     : -EINVAL;
	request->passed_fd = -1;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* The page in which the server reads what this worker counts: only once there are devices. */
int ckt_worker_serve_metrics(struct ckt_request *request)
{
	bool good = ckt_worker_control_has_devices() && request->passed_fd >= 0;
	int error = good ? ckt_worker_metrics_use(request->worker, request->passed_fd) : -EINVAL;
	if (good)
		request->passed_fd = -1;
	if (error)
		ckt_warning("no metrics of this session: %s", strerror(-error));
	return ckt_worker_control_reply(request, NULL, NULL);
}

int ckt_worker_serve_activity(struct ckt_request *request)
{
	char message[] = "";
	ckt_worker_result res = {.message = message, .status = -EINVAL};
	if (ckt_worker_control_has_devices() && request->passed_fd >= 0) {
		res.status = ckt_activity_use(request->worker, request->passed_fd);
		request->passed_fd = -1;
	}
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* The page of the group with which the session comes back: before its client. */
int ckt_worker_serve_stamps(struct ckt_request *request)
{
	char message[] = "";
	ckt_worker_result res = {.message = message, .status = -EINVAL};
	ckt_worker_stamps_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_stamps_args, &args);
	if (result)
		return result;
	if (ckt_worker_control_has_devices() && request->passed_fd >= 0) {
		res.status = ckt_stamps_join(request->passed_fd, args.slot, args.count);
		request->passed_fd = -1;
	}
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

int ckt_worker_serve_hold(struct ckt_request *request)
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

int ckt_worker_serve_cut(struct ckt_request *request)
{
	ckt_worker_cut_args args = {0};
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_cut_args, &args);
	if (result)
		return result;
	if ((res.status = ckt_hold_name_cut(request->worker, (const uint8_t *)args.cut)))
		snprintf(message, sizeof message, "the session is not held");
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* Memory that is mapped and free goes, unless its lock waits for the server itself. */
static void trim_for_recall(struct ckt_worker *worker)
{
	/* Else START is making the devices: a new session has nothing that is free. */
	for (unsigned d = 0; ckt_worker_control_has_devices() && d < worker->device_count; d++) {
		int64_t until = ckt_net_now_ms() + TRIM_MS;
		while (!ckt_memory_try_trim(&worker->devices[d].memory) && !ckt_lease_is_asking() &&
			ckt_net_now_ms() < until)
			nanosleep(&(struct timespec){.tv_nsec = TRIM_LOOK_NS}, NULL);
	}
}

int ckt_worker_serve_lease_recall(struct ckt_request *request)
{
	ckt_worker_lease list[CKT_DEVICES_MAX];
	ckt_worker_lease_res res;
	trim_for_recall(request->worker);
	ckt_lease_recall(list, &res);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_lease_res, &res);
}

int ckt_worker_serve_lease_waited(struct ckt_request *request)
{
	ckt_worker_waited_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_waited_args, &args);
	if (!result && !ckt_lease_waited(&args))
		result = -EPROTO;
	return result ? result : ckt_worker_control_reply(request, NULL, NULL);
}

int ckt_worker_serve_lease_press(struct ckt_request *request)
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

int ckt_worker_serve_lease(struct ckt_request *request)
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

int ckt_worker_serve_durable(struct ckt_request *request)
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
