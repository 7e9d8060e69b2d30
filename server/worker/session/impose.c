/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay imposes on commands; see impose.h. */
#include "server/worker/session/impose.h"

#include <errno.h>
#include <time.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/worker/objects/device.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

/* For work of the program that still uses memory which it gave back. */
enum { BUSY_MS = 10000 };

void ckt_impose_connect(struct ckt_worker *worker, bool durable)
{
	worker->impose.durable = durable;
	worker->impose.last = worker->impose.seq = 0;
	/* It was restored from one. */
	if (worker->copy_before && !worker->impose.saved)
		worker->impose.saved = atomic_load(&worker->replies.executed);
}

int ckt_impose_begin(struct ckt_worker *worker, const ckt_replay_args *args)
{
	if (!worker->impose.durable || !worker->copy_before)
		return -EPERM;
	if (args->last <= atomic_load(&worker->replies.executed) || worker->impose.last)
		return -EINVAL;
	worker->impose.last = args->last;
	return 0;
}

bool ckt_impose_take(struct ckt_worker *worker, const ckt_impose_args *args)
{
	struct ckt_impose *impose = &worker->impose;
	uint64_t next = atomic_load(&worker->replies.executed) + 1;
	if (args->seq != next || next > impose->last || impose->seq == next ||
		(args->address && !ckt_worker_device_of(worker, args->address))) {
		ckt_warning(
			"call number %llu cannot be imposed on: number %llu is next, of a replay "
			"up to %llu",
			(unsigned long long)args->seq, (unsigned long long)next,
			(unsigned long long)impose->last);
		return false;
	}
	impose->seq = args->seq;
	impose->result = args->result;
	impose->address = args->address;
	impose->deadline_ms = 0;
	return true;
}

bool ckt_impose_run(struct ckt_worker *worker, struct ckt_wcall *call)
{
	struct ckt_impose *impose = &worker->impose;
	if (impose->result) {
		CUresult result = (CUresult)impose->result;
		impose->seq = 0;
		ckt_wcall_finish(call, result);
		return true;
	}
	struct ckt_worker_device *device =
		impose->address ? ckt_worker_device_of(worker, impose->address) : NULL;
	if (device)
		ckt_memory_impose(&device->memory, impose->address);
	bool good = ckt_executor_run(worker, call);
	if (device)
		ckt_memory_impose(&device->memory, 0);
	impose->seq = 0;
	return good;
}

bool ckt_impose_wait(struct ckt_worker *worker)
{
	struct ckt_impose *impose = &worker->impose;
	if (!impose->seq || !impose->address)
		return false;
	int64_t now_ms = ckt_net_now_ms();
	if (!impose->deadline_ms)
		impose->deadline_ms = now_ms + BUSY_MS;
	else if (!atomic_load(&worker->pending.count) && !worker->pools.kept_count)
		now_ms = impose->deadline_ms; /* nothing is left that could free it */
	if (now_ms >= impose->deadline_ms) {
		ckt_warning("0x%llx, which call number %llu got, stays taken in its replay",
			(unsigned long long)impose->address, (unsigned long long)impose->seq);
		return false;
	}
	ckt_pending_poll(worker);
	for (unsigned d = 0; d < worker->device_count; d++)
		ckt_worker_pools_release(worker, d, false);
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return true;
}

void ckt_impose_tell_durable(struct ckt_worker *worker, uint64_t executed)
{
	uint64_t epoch = ckt_output_epoch(&worker->output);
	worker->impose.saved = executed;
	uint8_t *p = epoch && worker->impose.durable
		? ckt_output_begin(&worker->output, epoch, CKT_CALL_HEADER_SIZE + 8)
		: NULL;
	if (!p)
		return;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_DURABLE});
	ckt_put_u64(p, executed);
	ckt_output_end(&worker->output);
	ckt_executor_wake(worker);
}
