/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: what the server asks its worker; see control_handlers.h. */
#include "server/worker/session/control_handlers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/format/manifest_hash.h"
#include "rpc/net.h"
#include "server/worker/libs/libs.h"
#include "server/worker/module/blob_cache.h"
#include "server/worker/session/call_trace.h"
#include "server/worker/session/lane.h"
#include "server/worker/session/stamps.h"
#include "server/worker/worker.h"

int ckt_worker_serve_origin(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	pthread_mutex_lock(&worker->mail_lock);
	ckt_worker_origin_res res = worker->origin;
	res.session = worker->session;
	int result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_origin_res, &res);
	pthread_mutex_unlock(&worker->mail_lock);
	return result;
}

int ckt_worker_serve_manifest(struct ckt_request *request)
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

int ckt_worker_serve_status(struct ckt_request *request)
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

int ckt_worker_serve_stamped(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_stamped_res res = {.stamped = CKT_STAMPED_UNKNOWN};
	pthread_mutex_lock(&worker->mail_lock);
	if (worker->new_client.fd >= 0)
		res.stamped = worker->new_client.durable && worker->new_client.stamped;
	else if (worker->state != CKT_STATE_RESTORED)
		res.stamped = ckt_stamps_kept() && worker->impose.durable;
	pthread_mutex_unlock(&worker->mail_lock);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_stamped_res, &res);
}

int ckt_worker_serve_job(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	pthread_mutex_lock(&worker->mail_lock);
	ckt_worker_job_res res = {.job = worker->job};
	int result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_job_res, &res);
	pthread_mutex_unlock(&worker->mail_lock);
	return result;
}

int ckt_worker_serve_gpus(struct ckt_request *request)
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

int ckt_worker_serve_stats(struct ckt_request *request)
{
	static ckt_worker_stat list[CKT_WORKER_STATS_MAX]; /* under the lock */
	struct ckt_worker *worker = request->worker;
	char transport[32];
	unsigned count = 0;
	ckt_worker_control_lock();
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
	ckt_worker_control_unlock();
	return result;
}

int ckt_worker_serve_trace(struct ckt_request *request)
{
	ckt_worker_trace_args args = {0};
	char message[CKT_MESSAGE_MAX];
	ckt_worker_trace_res res;
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_trace_args, &args);
	if (result)
		return result;
	ckt_call_trace_lock();
	ckt_call_trace_serve(request->worker, &args, &res, message);
	if (args.action == CKT_TRACE_ACTION_START && !res.status && request->passed_fd >= 0)
		ckt_call_trace_use_page(request->passed_fd);
	result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_trace_res, &res);
	ckt_call_trace_sent(!result);
	ckt_call_trace_unlock();
	return result;
}
