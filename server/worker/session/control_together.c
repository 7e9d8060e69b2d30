/* SPDX-License-Identifier: Apache-2.0 */
/* TOGETHER; see control_together.h. */
#include "server/worker/session/control_together.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/fault_point.h"
#include "base/log.h"
#include "checkpoint/fault.h"
#include "checkpoint/freeze/freeze.h"
#include "checkpoint/freeze/pause.h"
#include "checkpoint/freeze/separable.h"
#include "rpc/net.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/libs/nccl/nccl_members.h"
#include "server/worker/session/control.h"
#include "server/worker/session/control_swap.h"
#include "server/worker/session/operation_state.h"
#include "server/worker/worker.h"

/* A build without NCCL's headers lacks these. */
int ckt_worker_nccl_together_check(char *ret_message, size_t message_size) __attribute__((weak));
bool ckt_worker_nccl_is_first(void) __attribute__((weak));

enum {
	/* Of a session that goes on after its owners: between two looks, and how long. */
	TOGETHER_LOOK_NS = 2000000,
	TOGETHER_ALONE_NS = 100000000,
	TOGETHER_OPEN_MS = 20000,
	/* Of an owner whose leader is gone: for those that had opened its memory. */
	TOGETHER_TAKERS_MS = 60000,
};

/* Under the lock: it has given up what it opened of others. */
static bool dropped;

/* Precondition: operation begun. */
static void set_alone(bool alone)
{
	atomic_store(&ckt_operation.alone, alone);
	ckt_ipc_together_lead(!alone);
}

/* For tests: of two sessions, which have the same environment, it fells the owner, or rank 0. */
static bool fails_together(enum ckt_fault_point point)
{
	bool first = ckt_ipc_owns() || (ckt_worker_nccl_is_first && ckt_worker_nccl_is_first());
	return first == (point != CKT_FAULT_TOGETHER_OPENS) && ckt_fault_reached(point);
}

/* Preconditions of all: operation begun. */
static int stop_together(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size)
{
	if (ckt_operation.stopped)
		return 0;
	if (!ckt_worker_control_started() || worker->checkpoint.paused || ckt_operation.held) {
		snprintf(ret_message, message_size, "%s",
			ckt_operation.held ? "the session is held: swap it when that is over"
					   : "the session is paused, or has not begun");
		return -EBUSY;
	}
	int error = ckt_separable_check(worker, ret_message, message_size);
	if (error)
		return error;
	ckt_ipc_together_begin();
	error = ckt_operation_freeze(worker, deadline_ms, ret_message, message_size);
	if (!error && fails_together(CKT_FAULT_TOGETHER_STOPPED)) {
		snprintf(ret_message, message_size, "CRICKET_FAULT made this step fail");
		ckt_checkpoint_thaw(worker, false);
		error = -EIO;
	}
	if (error)
		ckt_ipc_together_end();
	ckt_operation.stopped = !error;
	return error;
}

static int drop_together(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	int error = ckt_ipc_together_check(worker, ret_message, message_size);
	if (!error && ckt_worker_nccl_together_check)
		error = ckt_worker_nccl_together_check(ret_message, message_size);
	if (error)
		return error;
	/* Also what came back meanwhile: it could not come in with the others. */
	ckt_ipc_together_drop(worker);
	dropped = true;
	fails_together(CKT_FAULT_TOGETHER_DROPPED);
	return 0;
}

static int out_together(
	struct ckt_request *request, const ckt_worker_together_args *args, ckt_worker_swap_res *res)
{
	const ckt_worker_swap_out_args out = {.limit_bytes = args->limit_bytes};
	if (ckt_operation.swapped)
		return 0;
	if (fails_together(CKT_FAULT_TOGETHER_LEAVES)) {
		snprintf(res->message, CKT_MESSAGE_MAX, "CRICKET_FAULT made this step fail");
		return -EIO;
	}
	return ckt_swap_out_locked(request, &out, res);
}

static int in_together(struct ckt_worker *worker, ckt_worker_swap_res *res)
{
	uint64_t bytes = 0;
	int error = ckt_operation.swapped
		? ckt_swap_come_in(worker, false, &bytes, res->message, CKT_MESSAGE_MAX)
		: 0;
	res->bytes = bytes;
	res->moved_bytes = error ? 0 : ckt_pause_moved();
	if (error)
		return error;
	fails_together(CKT_FAULT_TOGETHER_CAME);
	ckt_ipc_together_export(worker);
	return 0;
}

/* Waits for owners, as long as the leader of all stays.  -EAGAIN: one does not have its memory yet. */
static int open_together(struct ckt_worker *worker, int64_t wait_ms)
{
	const struct timespec piece = {.tv_nsec = TOGETHER_LOOK_NS};
	int64_t deadline = ckt_net_now_ms() + wait_ms;
	fails_together(CKT_FAULT_TOGETHER_OPENS);
	ckt_ipc_together_export(worker);
	while (dropped && ckt_ipc_together_fetch(worker)) {
		if (ckt_net_now_ms() >= deadline)
			return -EAGAIN;
		nanosleep(&piece, NULL);
	}
	dropped = false;
	return 0;
}

static int go_together(struct ckt_worker *worker)
{
	int error = ckt_operation.swapped ? -EBUSY : open_together(worker, 0);
	if (error)
		return error;
	ckt_operation.stopped = false;
	ckt_ipc_together_end();
	ckt_operation_thaw(worker);
	return 0;
}

static int together_locked(
	struct ckt_request *request, const ckt_worker_together_args *args, ckt_worker_swap_res *res)
{
	struct ckt_worker *worker = request->worker;
	if (args->step != CKT_TOGETHER_STOP && args->step != CKT_TOGETHER_GO &&
		!ckt_operation.stopped) {
		snprintf(res->message, CKT_MESSAGE_MAX, "the session was not stopped before");
		return -EINVAL;
	}
	switch (args->step) {
	case CKT_TOGETHER_STOP:
		return stop_together(worker, args->deadline_ms, res->message, CKT_MESSAGE_MAX);
	case CKT_TOGETHER_DROP:
		return drop_together(worker, res->message, CKT_MESSAGE_MAX);
	case CKT_TOGETHER_OUT:
		return dropped ? out_together(request, args, res) : -EINVAL;
	case CKT_TOGETHER_IN:
		return in_together(worker, res);
	case CKT_TOGETHER_OPEN:
		return ckt_operation.swapped ? -EBUSY : open_together(worker, TOGETHER_OPEN_MS);
	case CKT_TOGETHER_GO:
		return ckt_operation.stopped ? go_together(worker) : 0;
	default:
		return -EINVAL;
	}
}

int ckt_control_together(struct ckt_request *request)
{
	ckt_worker_together_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_together_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_swap_res done = {.message = message};
	ckt_operation_begin();
	set_alone(false);
	done.status = together_locked(request, &args, &done);
	ckt_progress_end(&request->worker->checkpoint.progress);
	request->together = ckt_operation.stopped;
	result = ckt_swap_answer(request, &done);
	ckt_operation_end();
	return result;
}

/* One try to come in, or to go on.  False: there is nothing left to do. */
static bool go_alone(struct ckt_worker *worker, int64_t deadline_ms)
{
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_swap_res res = {.message = message};
	ckt_operation_begin();
	if (ckt_operation.stopped && atomic_load(&ckt_operation.alone) &&
		!in_together(worker, &res) && !open_together(worker, 0) &&
		(ckt_ipc_together_opened(worker) || ckt_net_now_ms() >= deadline_ms))
		go_together(worker);
	bool more = ckt_operation.stopped && atomic_load(&ckt_operation.alone);
	ckt_operation_end();
	return more;
}

void ckt_operation_leader_gone(struct ckt_worker *worker)
{
	const struct timespec piece = {.tv_nsec = TOGETHER_ALONE_NS};
	ckt_operation_begin();
	bool alone = ckt_operation.stopped;
	if (alone) {
		ckt_info(
			"no connection leads the sessions that belong together any more: this one continues");
		set_alone(true);
	}
	ckt_operation_end();
	int64_t deadline = ckt_net_now_ms() + TOGETHER_TAKERS_MS;
	while (alone && go_alone(worker, deadline))
		nanosleep(&piece, NULL);
}
