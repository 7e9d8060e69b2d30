/* SPDX-License-Identifier: Apache-2.0 */
/* SWAP_OUT, SWAP_IN and their kind; see control_swap.h. */
#include "server/worker/session/control_swap.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "checkpoint/freeze/freeze.h"
#include "checkpoint/freeze/pause.h"
#include "checkpoint/freeze/separable.h"
#include "checkpoint/freeze/swap_store.h"
#include "checkpoint/memory_operations.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/net.h"
#include "server/worker/memory/lease.h"
#include "server/worker/session/control.h"
#include "server/worker/session/control_operations.h"
#include "server/worker/session/operation_state.h"
#include "server/worker/worker.h"

static _Atomic bool pinning; /* swap memory, under the lock */

/* Under the lock. */
static struct {
	uint64_t released; /* by the last one */
	uint64_t outs, ins, out_bytes, in_bytes, out_us, in_us;
} swap;

static ckt_worker_swap_res swap_facts(struct ckt_worker *worker)
{
	uint64_t here = 0;
	for (unsigned d = 0; d < worker->device_count; d++)
		if (worker->devices[d].memory.ops)
			here += ckt_memory_operations.held_bytes(worker, d);
	return (ckt_worker_swap_res){.swapped = ckt_operation.swapped,
		.swapped_bytes = ckt_swap_store_bytes(),
		.here_bytes = ckt_operation.swapped && here > swap.released ? here - swap.released
			: ckt_operation.swapped                             ? 0
									    : here,
		.outs = swap.outs,
		.ins = swap.ins,
		.out_bytes = swap.out_bytes,
		.in_bytes = swap.in_bytes,
		.out_us = swap.out_us,
		.in_us = swap.in_us};
}

int ckt_swap_answer(struct ckt_request *request, const ckt_worker_swap_res *done)
{
	ckt_worker_swap_res res = swap_facts(request->worker);
	res.status = done->status;
	res.message = done->message;
	res.bytes = done->bytes;
	res.moved_bytes = done->moved_bytes;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_swap_res, &res);
}

int ckt_swap_come_in(struct ckt_worker *worker, bool follows, uint64_t *ret_bytes,
	char *ret_message, size_t message_size)
{
	int64_t begun = ckt_now_ns();
	int result = (follows ? ckt_resume_follow : ckt_resume)(
		worker, ret_bytes, ret_message, message_size);
	ckt_progress_end(&worker->checkpoint.progress);
	if (result)
		return result;
	uint64_t us = (uint64_t)(ckt_now_ns() - begun) / 1000, moved = ckt_pause_moved();
	ckt_operation.swapped = false;
	swap.ins++;
	swap.in_bytes += moved;
	swap.in_us += us;
	ckt_operation_set_paused(worker, false);
	ckt_info("swapped in: %llu MiB, %llu MiB of them read, in %llu us",
		(unsigned long long)(*ret_bytes >> 20), (unsigned long long)(moved >> 20),
		(unsigned long long)us);
	return 0;
}

int ckt_swap_out_locked(
	struct ckt_request *request, const ckt_worker_swap_out_args *args, ckt_worker_swap_res *res)
{
	struct ckt_worker *worker = request->worker;
	uint64_t bytes = 0, moved = 0;
	char message[CKT_MESSAGE_MAX] = "";
	if (!ckt_worker_control_started() || worker->checkpoint.paused || ckt_operation.held) {
		snprintf(res->message, CKT_MESSAGE_MAX, "%s",
			ckt_operation.held ? "the session is held: swap it when that is over"
				: ckt_operation.swapped ? "the session is already swapped"
				: worker->checkpoint.paused
				? "the session is paused: its memory is not on the GPU"
				: "the worker has no session yet");
		return -EINVAL;
	}
	int error = ckt_pause_use(worker, request->passed_fd, args->limit_bytes);
	request->passed_fd = -1;
	if (error) {
		snprintf(res->message, CKT_MESSAGE_MAX, "no swap memory came with the call");
		return error;
	}
	ckt_content_threads_prepare();
	error = ckt_operation_freeze(worker, args->deadline_ms, res->message, CKT_MESSAGE_MAX);
	if (error)
		return error;
	int64_t begun = ckt_now_ns();
	error = ckt_pause_swap(worker, &bytes, &moved, message, sizeof message);
	if (error)
		snprintf(res->message, CKT_MESSAGE_MAX, "%s", message);
	if (error && !bytes) {
		ckt_operation_thaw(worker);
		return error;
	}
	ckt_operation.swapped = true;
	swap.released = bytes;
	swap.outs++;
	swap.out_bytes += moved;
	swap.out_us += (uint64_t)(ckt_now_ns() - begun) / 1000;
	ckt_operation_set_paused(worker, true);
	pthread_mutex_lock(&worker->mail_lock);
	worker->checkpoint.swapped = !args->stay;
	/* The executor sleeps without a look at its client until now. */
	pthread_cond_broadcast(&worker->mail_cond);
	pthread_mutex_unlock(&worker->mail_lock);
	ckt_info("swapped out: %llu MiB, %llu MiB of them written, in %llu us",
		(unsigned long long)(bytes >> 20), (unsigned long long)(moved >> 20),
		(unsigned long long)(ckt_now_ns() - begun) / 1000);
	res->bytes = bytes;
	res->moved_bytes = moved;
	return error;
}

/* yields: for others of its server, which then may keep it out for long. */
static int swap_out(struct ckt_request *request, bool yields)
{
	ckt_worker_swap_out_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_swap_out_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_swap_res done = {.message = message};
	ckt_operation_begin();
	done.status = ckt_operation_is_tied(message, sizeof message) ? -EBUSY
		: yields ? ckt_separable_check(request->worker, message, sizeof message)
			 : 0;
	if (!done.status)
		done.status = ckt_swap_out_locked(request, &args, &done);
	ckt_progress_end(&request->worker->checkpoint.progress);
	result = ckt_swap_answer(request, &done);
	/* While nobody waits: the session does not run. */
	atomic_store(&pinning, true);
	if (!done.status)
		ckt_pause_pin(request->worker, &ckt_operation.waiting);
	atomic_store(&pinning, false);
	ckt_operation_end();
	return result;
}

static int swap_in(struct ckt_request *request, bool follows)
{
	struct ckt_worker *worker = request->worker;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_swap_res done = {.status = -EINVAL, .message = message};
	uint64_t bytes = 0;
	ckt_operation_begin();
	if (!atomic_load(&ckt_operation.alone) && ckt_operation_is_tied(message, sizeof message))
		done.status = -EBUSY;
	else if (!ckt_operation.swapped)
		snprintf(message, sizeof message, "the session is not swapped");
	else if (!(done.status = ckt_swap_come_in(
			   worker, follows, &bytes, message, sizeof message)))
		ckt_operation_thaw(worker);
	done.bytes = bytes;
	done.moved_bytes = done.status ? 0 : ckt_pause_moved();
	int result = ckt_swap_answer(request, &done);
	ckt_operation_end();
	return result;
}

static int swap_look(struct ckt_request *request)
{
	char message[1] = "";
	ckt_operation_begin();
	ckt_worker_swap_res res = swap_facts(request->worker);
	ckt_operation_end();
	res.message = message;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_swap_res, &res);
}

bool ckt_operation_come_in(struct ckt_worker *worker)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t bytes;
	const struct timespec piece = {.tv_nsec = 1000000};
	int busy;
	/* Whoever has the lock may wait for the executor, which calls this; what pins does not. */
	atomic_fetch_add(&ckt_operation.waiting, 1);
	while ((busy = pthread_mutex_trylock(&ckt_operation.lock)) && atomic_load(&pinning))
		nanosleep(&piece, NULL);
	atomic_fetch_sub(&ckt_operation.waiting, 1);
	if (busy)
		return false;
	bool wanted = ckt_operation.swapped && !ckt_operation.held && worker->checkpoint.swapped &&
		!ckt_operation.stopped;
	/* Its server brings all of them in. */
	if (ckt_operation.stopped && !atomic_load(&ckt_operation.alone))
		ckt_lease_wish(worker->devices[0].number);
	int error = wanted ? ckt_swap_come_in(worker, false, &bytes, message, sizeof message) : 0;
	if (wanted && !error) {
		pthread_mutex_lock(&worker->mail_lock);
		worker->checkpoint.freeze.wanted = false;
		pthread_mutex_unlock(&worker->mail_lock);
	} else if (error) {
		ckt_debug("a command waits for memory: %s", message);
	}
	ckt_operation_end();
	if (worker->current)
		ckt_driver.cuCtxSetCurrent(worker->current->real);
	return wanted && !error;
}

int ckt_control_swap_serve(struct ckt_request *request, uint32_t proc)
{
	switch (proc) {
	case CKT_WORKER_SWAP_OUT:
	case CKT_WORKER_SWAP_YIELD:
		return swap_out(request, proc == CKT_WORKER_SWAP_YIELD);
	case CKT_WORKER_SWAP_IN:
	case CKT_WORKER_SWAP_FOLLOW:
		return swap_in(request, proc == CKT_WORKER_SWAP_FOLLOW);
	case CKT_WORKER_SWAP_LOOK:
		return swap_look(request);
	default:
		return -EPROTO;
	}
}
