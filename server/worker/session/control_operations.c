/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takes long on the control socket: saving, holding and releasing the session, and how far it
 * has come.
 *
 *	running --SAVE2--> frozen --> running ; with hold: frozen --RELEASE--> running, or ended ; frozen --QUIESCE--> without its client
 *	running --PAUSE--> paused --UNPAUSE--> running ; what is paused can be saved, held and ended too
 *	running --SWAP_OUT--> swapped --SWAP_IN, or a command of the client's--> running ; swapped is paused, but for what ends it;
 *	swapped --PAUSE--> paused, with its memory where it is
 *	running --TOGETHER STOP, DROP, OUT--> swapped, with those that it shares memory with --IN, OPEN, GO--> running
 *
 * Threading: one operation at a time (operation_lock); PROGRESS waits for none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "checkpoint/fault.h"
#include "checkpoint/format/broker.h"
#include "checkpoint/freeze/freeze.h"
#include "checkpoint/freeze/pause.h"
#include "checkpoint/freeze/separable.h"
#include "checkpoint/freeze/spare_memory.h"
#include "checkpoint/freeze/swap_store.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/save/chain.h"
#include "checkpoint/save/save.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/net.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/memory/lease.h"
#include "server/worker/session/automatic.h"
#include "server/worker/session/control.h"
#include "server/worker/session/control_operations.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

enum {
	/* Of a session that goes on after its owners: between two looks, and how long. */
	TOGETHER_LOOK_NS = 2000000,
	TOGETHER_ALONE_NS = 100000000,
	TOGETHER_OPEN_MS = 20000,
	/* Of an owner whose leader is gone: for those that had opened its memory. */
	TOGETHER_TAKERS_MS = 60000,
};

static pthread_mutex_t operation_lock = PTHREAD_MUTEX_INITIALIZER;
static bool held;                /* frozen until RELEASE */
static _Atomic unsigned waiting; /* operations, for that lock */
static _Atomic bool pinning;     /* swap memory, under that lock */

static void operation_begin(void)
{
	atomic_fetch_add(&waiting, 1);
	pthread_mutex_lock(&operation_lock);
	atomic_fetch_sub(&waiting, 1);
}

/* Under operation_lock. */
static struct {
	bool out;          /* the session's memory is in the swap store */
	uint64_t released; /* by the last one */
	uint64_t outs, ins, out_bytes, in_bytes, out_us, in_us;
} swap;

/*
 * Under operation_lock, but for alone: it stands still with the sessions that it shares memory with.  The
 * connection that said so leads all of them; when it ends, each goes on by itself.
 */
static struct {
	bool stopped, dropped;
	_Atomic bool alone;
} tied;

/* Precondition: operation_lock held. */
static void set_alone(bool alone)
{
	atomic_store(&tied.alone, alone);
	ckt_ipc_together_lead(!alone);
}

/* Precondition: operation_lock held. */
static bool is_tied(char *ret_message, size_t message_size)
{
	if (tied.stopped)
		snprintf(ret_message, message_size,
			"the session is off the GPU together with those that it shares memory with: "
			"bring them in first, with cricketctl swap in");
	return tied.stopped;
}

/* Precondition: operation_lock held. */
static int freeze(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size)
{
	if (held || tied.stopped || worker->checkpoint.paused)
		return 0;
	ckt_progress_begin(&worker->checkpoint.progress, "freeze", 0);
	int error = ckt_checkpoint_freeze(worker, deadline_ms, ret_message, message_size);
	if (!error && ckt_fault_fails(CKT_FAULT_FROZEN)) {
		snprintf(ret_message, message_size, "CRICKET_FAULT made this step fail");
		ckt_checkpoint_thaw(worker, false);
		return -EIO;
	}
	return error;
}

/* Precondition: operation_lock held.  Lets the session continue if nothing holds it. */
static void thaw(struct ckt_worker *worker)
{
	if (!held && !tied.stopped && !worker->checkpoint.paused)
		ckt_checkpoint_thaw(worker, false);
}

/* Precondition: operation_lock held. */
static void set_paused(struct ckt_worker *worker, bool paused)
{
	pthread_mutex_lock(&worker->mail_lock);
	worker->checkpoint.paused = paused;
	/* Its executor polls. */
	if (worker->checkpoint.swapped)
		ckt_executor_wake(worker);
	worker->checkpoint.swapped = false;
	pthread_mutex_unlock(&worker->mail_lock);
}

/* From here on the image is written while the program runs. */
static void let_go(struct ckt_save *save, struct ckt_worker *worker)
{
	save->stopped_us = (uint64_t)(ckt_now_ns() - worker->checkpoint.freeze.since_ns) / 1000;
	save->gone = true;
	thaw(worker);
	ckt_hold_copied(worker);
}

static int save(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_save_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_save_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_save_res res = {.status = -EINVAL, .message = message};
	bool end = false;
	operation_begin();
	if (!ckt_worker_control_started() || !ckt_broker_is(request->passed_fd)) {
		snprintf(message, sizeof message,
			"there is nothing to save, or the call came without a file "
			"broker");
	} else if (is_tied(message, sizeof message)) {
		res.status = -EBUSY;
	} else if (!(res.status = ckt_separable_check(worker, message, sizeof message))) {
		ckt_content_threads_prepare();
		res.status = freeze(worker, args.deadline_ms, message, sizeof message);
		if (!res.status) {
			struct ckt_save save = {.broker = request->passed_fd};
			res.status = ckt_checkpoint_save(worker, &save, message, sizeof message);
			res.bytes = save.bytes;
			end = !res.status && args.stop;
			if (!end)
				thaw(worker);
		}
		ckt_progress_end(&worker->checkpoint.progress);
	}
	result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_save_res, &res);
	/* The client is told about the end only now: the image is written and the server knows. */
	if (end)
		ckt_checkpoint_thaw(worker, true);
	request->end = end;
	pthread_mutex_unlock(&operation_lock);
	return result;
}

/* Precondition: operation_lock held. */
static int save2_locked(
	struct ckt_request *request, const ckt_worker_save2_args *args, ckt_worker_save2_res *res)
{
	struct ckt_worker *worker = request->worker;
	if (!ckt_worker_control_started() ||
		(args->to_memory ? worker->checkpoint.source.memory_count != CKT_IMAGE_MEMORY_FILES
				 : !ckt_broker_is(request->passed_fd))) {
		snprintf(res->message, CKT_MESSAGE_MAX,
			"there is nothing to save, or nowhere to save it");
		return -EINVAL;
	}
	if (args->to_memory && args->incremental) {
		snprintf(res->message, CKT_MESSAGE_MAX,
			"an image in memory cannot build on another");
		return -EINVAL;
	}
	if (is_tied(res->message, CKT_MESSAGE_MAX))
		return -EBUSY;
	/* Checked before anything is frozen. */
	int refused = ckt_separable_check(worker, res->message, CKT_MESSAGE_MAX);
	if (!refused && args->incremental)
		refused = ckt_chain_base_use(worker, args->base, res->message, CKT_MESSAGE_MAX);
	if (refused)
		return refused;
	struct ckt_save save = {.broker = request->passed_fd,
		.memory_fds = args->to_memory ? worker->checkpoint.source.memory_fds : NULL,
		.compress = args->compress,
		.incremental = args->incremental,
		.keep_hashes = args->keep_hashes,
		.base = args->base};
	ckt_content_threads_prepare();
	if (!args->hold && !held && !worker->checkpoint.paused) {
		ckt_spare_memory_take(worker, &save.spare);
		save.let_go = let_go;
	}
	int error = freeze(worker, args->deadline_ms, res->message, CKT_MESSAGE_MAX);
	if (error) {
		ckt_spare_memory_give(worker, &save.spare);
		return error;
	}
	error = ckt_checkpoint_save(worker, &save, res->message, CKT_MESSAGE_MAX);
	ckt_spare_memory_give(worker, &save.spare);
	res->stopped_us = save.gone
		? save.stopped_us
		: (u_quad_t)(ckt_now_ns() - worker->checkpoint.freeze.since_ns) / 1000;
	/* If the save fails the session continues, unless it was frozen before. */
	held = held || (!error && args->hold);
	request->held = !error && args->hold;
	if (!save.gone)
		thaw(worker);
	if (!error) {
		ckt_hold_copied(worker);
		ckt_automatic_saved(&save);
	}
	memcpy(res->image, save.image, sizeof res->image);
	res->bytes = save.bytes;
	res->memory_bytes = save.memory_bytes;
	res->changed_bytes = save.changed_bytes;
	return error;
}

static int save2(struct ckt_request *request)
{
	ckt_worker_save2_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_save2_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_save2_res res = {.message = message};
	operation_begin();
	res.status = save2_locked(request, &args, &res);
	if (args.to_memory)
		ckt_image_source_close_memory(&request->worker->checkpoint.source);
	ckt_progress_end(&request->worker->checkpoint.progress);
	pthread_mutex_unlock(&operation_lock);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_save2_res, &res);
}

/* Precondition: operation_lock held. */
static void set_parting(struct ckt_worker *worker, const ckt_worker_release_args *args)
{
	pthread_mutex_lock(&worker->mail_lock);
	worker->parting.parked = args->parked;
	snprintf(worker->parting.message, sizeof worker->parting.message, "%s", args->message);
	snprintf(worker->parting.moved_to, sizeof worker->parting.moved_to, "%s", args->moved_to);
	pthread_mutex_unlock(&worker->mail_lock);
}

static int release(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_release_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_release_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message};
	operation_begin();
	if (!held) {
		res.status = -EINVAL;
		snprintf(message, sizeof message, "the session is not held");
	} else {
		held = false;
		/* If it cannot end, nobody is told, and it continues here. */
		if (args.end && ckt_fault_fails(CKT_FAULT_RELEASE)) {
			res.status = -EIO;
			snprintf(message, sizeof message, "CRICKET_FAULT made this step fail");
		}
		request->end = args.end && !res.status;
		/* The client is told, and its connection ended, before the reply. */
		if (request->end) {
			set_parting(worker, &args);
			ckt_checkpoint_thaw(worker, true);
		} else {
			thaw(worker);
		}
	}
	result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
	pthread_mutex_unlock(&operation_lock);
	xdr_free((xdrproc_t)xdr_ckt_worker_release_args, (char *)&args);
	return result;
}

/* Precondition: operation_lock held, and the session frozen.  The client's connection, a copy. */
static int begin_sleep(
	struct ckt_worker *worker, int *ret_fd, char *ret_message, size_t message_size)
{
	if (ckt_fault_reached(CKT_FAULT_SLEEP)) {
		snprintf(ret_message, message_size, "CRICKET_FAULT made this step fail");
		return -EIO;
	}
	/* The last look: nothing changes while it is frozen. */
	if (ckt_ipc_is_shared(ret_message, message_size))
		return -EBUSY;
	if (worker->client_fd < 0 || !worker->client_sleeps) {
		snprintf(ret_message, message_size,
			worker->client_fd < 0 ? "its client is gone"
					      : "its client does not know how to sleep");
		return -ENOTCONN;
	}
	*ret_fd = fcntl(worker->client_fd, F_DUPFD_CLOEXEC, 3);
	if (*ret_fd < 0) {
		snprintf(ret_message, message_size, "cannot copy its client's connection: %s",
			strerror(errno));
		return -errno;
	}
	pthread_mutex_lock(&worker->mail_lock);
	worker->parting.asleep = true;
	worker->parting.executed = atomic_load(&worker->replies.executed);
	pthread_mutex_unlock(&worker->mail_lock);
	return 0;
}

/* The client is told, and then the server; what it sends from now on, it sends again. */
static int sleep_session(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	char message[CKT_MESSAGE_MAX] = "the session is not held";
	ckt_worker_result res = {.status = -EINVAL, .message = message};
	int fd = -1;
	operation_begin();
	if (held) {
		res.status = begin_sleep(worker, &fd, message, sizeof message);
		held = false;
		if (res.status)
			thaw(worker);
		else
			ckt_checkpoint_thaw(worker, true);
	}
	request->asleep = !res.status;
	if (request->asleep)
		*message = 0;
	int result =
		ckt_worker_control_reply_with(request, (xdrproc_t)xdr_ckt_worker_result, &res, fd);
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&operation_lock);
	return result;
}

static int base(struct ckt_request *request)
{
	ckt_worker_base_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_base_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message};
	operation_begin();
	res.status = ckt_chain_base_piece(
		args.base, args.offset, args.data.data_val, args.data.data_len);
	pthread_mutex_unlock(&operation_lock);
	if (res.status)
		snprintf(message, sizeof message, "cannot take the manifest of the base image: %s",
			strerror(-res.status));
	xdr_free((xdrproc_t)xdr_ckt_worker_base_args, (char *)&args);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

static int quiesce(struct ckt_request *request)
{
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message};
	operation_begin();
	if (held) {
		ckt_checkpoint_quiesce(request->worker);
	} else {
		res.status = -EINVAL;
		snprintf(message, sizeof message, "the session is not held");
	}
	pthread_mutex_unlock(&operation_lock);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

void ckt_operation_let_go(struct ckt_worker *worker)
{
	operation_begin();
	if (held) {
		ckt_info("no connection holds the session any more: it continues");
		held = false;
		thaw(worker);
	}
	pthread_mutex_unlock(&operation_lock);
}

/* Precondition: operation_lock held. */
static int go_on(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	int result = ckt_resume(worker, ret_bytes, ret_message, message_size);
	if (!result) {
		swap.out = false;
		set_paused(worker, false);
		thaw(worker);
	}
	ckt_progress_end(&worker->checkpoint.progress);
	return result;
}

static int pause_session(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_pause_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_pause_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message, .status = -EINVAL};
	uint64_t bytes = 0;
	operation_begin();
	if (is_tied(message, sizeof message)) {
		res.status = -EBUSY;
	} else if (swap.out) {
		/* The memory is not on the GPU any more; only what ends it changes. */
		set_paused(worker, true);
		swap.out = false;
		res.status = 0;
	} else if (!ckt_worker_control_started() || worker->checkpoint.paused) {
		snprintf(message, sizeof message,
			worker->checkpoint.paused ? "the session is already paused"
						  : "the worker has no session yet");
	} else {
		ckt_content_threads_prepare();
		res.status = freeze(worker, args.deadline_ms, message, sizeof message);
		if (!res.status) {
			res.status = ckt_pause(worker, &bytes, message, sizeof message);
			set_paused(worker, !res.status);
			thaw(worker);
		}
		ckt_progress_end(&worker->checkpoint.progress);
	}
	res.bytes = bytes;
	result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
	/*
	 * The caller has given up meanwhile and believes that the session runs: nothing else would
	 * resume it.
	 */
	if (result && !res.status) {
		int error = go_on(worker, &bytes, message, sizeof message);
		ckt_warning("the caller that asked for a pause is gone: %s",
			error ? message : "the session continues");
	}
	pthread_mutex_unlock(&operation_lock);
	return result;
}

static int unpause(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message, .status = -EINVAL};
	uint64_t bytes = 0;
	operation_begin();
	if (is_tied(message, sizeof message)) {
		res.status = -EBUSY;
	} else if (!worker->checkpoint.paused) {
		snprintf(message, sizeof message, "the session is not paused");
	} else {
		res.status = go_on(worker, &bytes, message, sizeof message);
	}
	pthread_mutex_unlock(&operation_lock);
	res.bytes = bytes;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* ---- Swapping */

static ckt_worker_swap_res swap_facts(struct ckt_worker *worker)
{
	uint64_t here = 0;
	for (unsigned d = 0; d < worker->device_count; d++)
		if (worker->devices[d].memory.ops)
			here += ckt_memory_operations.held_bytes(worker, d);
	return (ckt_worker_swap_res){.swapped = swap.out,
		.swapped_bytes = ckt_swap_store_bytes(),
		.here_bytes = swap.out && here > swap.released ? here - swap.released
			: swap.out                             ? 0
							       : here,
		.outs = swap.outs,
		.ins = swap.ins,
		.out_bytes = swap.out_bytes,
		.in_bytes = swap.in_bytes,
		.out_us = swap.out_us,
		.in_us = swap.in_us};
}

/* done: the status and the bytes of what was tried. */
static int answer_swap(struct ckt_request *request, const ckt_worker_swap_res *done)
{
	ckt_worker_swap_res res = swap_facts(request->worker);
	res.status = done->status;
	res.message = done->message;
	res.bytes = done->bytes;
	res.moved_bytes = done->moved_bytes;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_swap_res, &res);
}

/* Precondition: operation_lock held, and swapped.  follows: behind a session that leaves. */
static int come_in(struct ckt_worker *worker, bool follows, uint64_t *ret_bytes, char *ret_message,
	size_t message_size)
{
	int64_t begun = ckt_now_ns();
	int result = (follows ? ckt_resume_follow : ckt_resume)(
		worker, ret_bytes, ret_message, message_size);
	ckt_progress_end(&worker->checkpoint.progress);
	if (result)
		return result;
	uint64_t us = (uint64_t)(ckt_now_ns() - begun) / 1000, moved = ckt_pause_moved();
	swap.out = false;
	swap.ins++;
	swap.in_bytes += moved;
	swap.in_us += us;
	set_paused(worker, false);
	ckt_info("swapped in: %llu MiB, %llu MiB of them read, in %llu us",
		(unsigned long long)(*ret_bytes >> 20), (unsigned long long)(moved >> 20),
		(unsigned long long)us);
	return 0;
}

/* Precondition: operation_lock held. */
static int swap_out_locked(
	struct ckt_request *request, const ckt_worker_swap_out_args *args, ckt_worker_swap_res *res)
{
	struct ckt_worker *worker = request->worker;
	uint64_t bytes = 0, moved = 0;
	char message[CKT_MESSAGE_MAX] = "";
	if (!ckt_worker_control_started() || worker->checkpoint.paused || held) {
		snprintf(res->message, CKT_MESSAGE_MAX, "%s",
			held               ? "the session is held: swap it when that is over"
				: swap.out ? "the session is already swapped"
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
	error = freeze(worker, args->deadline_ms, res->message, CKT_MESSAGE_MAX);
	if (error)
		return error;
	int64_t begun = ckt_now_ns();
	error = ckt_pause_swap(worker, &bytes, &moved, message, sizeof message);
	if (error)
		snprintf(res->message, CKT_MESSAGE_MAX, "%s", message);
	if (error && !bytes) {
		thaw(worker);
		return error;
	}
	swap.out = true;
	swap.released = bytes;
	swap.outs++;
	swap.out_bytes += moved;
	swap.out_us += (uint64_t)(ckt_now_ns() - begun) / 1000;
	set_paused(worker, true);
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
	operation_begin();
	done.status = is_tied(message, sizeof message) ? -EBUSY
		: yields ? ckt_separable_check(request->worker, message, sizeof message)
			 : 0;
	if (!done.status)
		done.status = swap_out_locked(request, &args, &done);
	ckt_progress_end(&request->worker->checkpoint.progress);
	result = answer_swap(request, &done);
	/* While nobody waits: the session does not run. */
	atomic_store(&pinning, true);
	if (!done.status)
		ckt_pause_pin(request->worker, &waiting);
	atomic_store(&pinning, false);
	pthread_mutex_unlock(&operation_lock);
	return result;
}

static int swap_in(struct ckt_request *request, bool follows)
{
	struct ckt_worker *worker = request->worker;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_swap_res done = {.status = -EINVAL, .message = message};
	uint64_t bytes = 0;
	operation_begin();
	if (!atomic_load(&tied.alone) && is_tied(message, sizeof message))
		done.status = -EBUSY;
	else if (!swap.out)
		snprintf(message, sizeof message, "the session is not swapped");
	else if (!(done.status = come_in(worker, follows, &bytes, message, sizeof message)))
		thaw(worker);
	done.bytes = bytes;
	done.moved_bytes = done.status ? 0 : ckt_pause_moved();
	int result = answer_swap(request, &done);
	pthread_mutex_unlock(&operation_lock);
	return result;
}

/* ---- Together with the sessions that it shares memory with */

/* For tests: of two sessions, which have the same environment, it fells one. */
static bool fails_together(enum ckt_fault_point point)
{
	return ckt_ipc_owns() == (point != CKT_FAULT_TOGETHER_OPENS) && ckt_fault_reached(point);
}

/* Preconditions of all: operation_lock held. */
static int stop_together(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size)
{
	if (tied.stopped)
		return 0;
	if (!ckt_worker_control_started() || worker->checkpoint.paused || held) {
		snprintf(ret_message, message_size, "%s",
			held ? "the session is held: swap it when that is over"
			     : "the session is paused, or has not begun");
		return -EBUSY;
	}
	int error = ckt_separable_check(worker, ret_message, message_size);
	if (error)
		return error;
	ckt_ipc_together_begin();
	error = freeze(worker, deadline_ms, ret_message, message_size);
	if (!error && fails_together(CKT_FAULT_TOGETHER_STOPPED)) {
		snprintf(ret_message, message_size, "CRICKET_FAULT made this step fail");
		ckt_checkpoint_thaw(worker, false);
		error = -EIO;
	}
	if (error)
		ckt_ipc_together_end();
	tied.stopped = !error;
	return error;
}

static int drop_together(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	int error = ckt_ipc_together_check(worker, ret_message, message_size);
	if (error)
		return error;
	/* Also what came back meanwhile: it could not come in with the others. */
	ckt_ipc_together_drop(worker);
	tied.dropped = true;
	fails_together(CKT_FAULT_TOGETHER_DROPPED);
	return 0;
}

static int out_together(
	struct ckt_request *request, const ckt_worker_together_args *args, ckt_worker_swap_res *res)
{
	const ckt_worker_swap_out_args out = {.limit_bytes = args->limit_bytes};
	if (swap.out)
		return 0;
	if (fails_together(CKT_FAULT_TOGETHER_LEAVES)) {
		snprintf(res->message, CKT_MESSAGE_MAX, "CRICKET_FAULT made this step fail");
		return -EIO;
	}
	return swap_out_locked(request, &out, res);
}

static int in_together(struct ckt_worker *worker, ckt_worker_swap_res *res)
{
	uint64_t bytes = 0;
	int error = swap.out ? come_in(worker, false, &bytes, res->message, CKT_MESSAGE_MAX) : 0;
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
	while (tied.dropped && ckt_ipc_together_fetch(worker)) {
		if (ckt_net_now_ms() >= deadline)
			return -EAGAIN;
		nanosleep(&piece, NULL);
	}
	tied.dropped = false;
	return 0;
}

static int go_together(struct ckt_worker *worker)
{
	int error = swap.out ? -EBUSY : open_together(worker, 0);
	if (error)
		return error;
	tied.stopped = false;
	ckt_ipc_together_end();
	thaw(worker);
	return 0;
}

static int together_locked(
	struct ckt_request *request, const ckt_worker_together_args *args, ckt_worker_swap_res *res)
{
	struct ckt_worker *worker = request->worker;
	if (args->step != CKT_TOGETHER_STOP && args->step != CKT_TOGETHER_GO && !tied.stopped) {
		snprintf(res->message, CKT_MESSAGE_MAX, "the session was not stopped before");
		return -EINVAL;
	}
	switch (args->step) {
	case CKT_TOGETHER_STOP:
		return stop_together(worker, args->deadline_ms, res->message, CKT_MESSAGE_MAX);
	case CKT_TOGETHER_DROP:
		return drop_together(worker, res->message, CKT_MESSAGE_MAX);
	case CKT_TOGETHER_OUT:
		return tied.dropped ? out_together(request, args, res) : -EINVAL;
	case CKT_TOGETHER_IN:
		return in_together(worker, res);
	case CKT_TOGETHER_OPEN:
		return swap.out ? -EBUSY : open_together(worker, TOGETHER_OPEN_MS);
	case CKT_TOGETHER_GO:
		return tied.stopped ? go_together(worker) : 0;
	default:
		return -EINVAL;
	}
}

static int together(struct ckt_request *request)
{
	ckt_worker_together_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_together_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_swap_res done = {.message = message};
	operation_begin();
	set_alone(false);
	done.status = together_locked(request, &args, &done);
	ckt_progress_end(&request->worker->checkpoint.progress);
	request->together = tied.stopped;
	result = answer_swap(request, &done);
	pthread_mutex_unlock(&operation_lock);
	return result;
}

/* One try to come in, or to go on.  False: there is nothing left to do. */
static bool go_alone(struct ckt_worker *worker, int64_t deadline_ms)
{
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_swap_res res = {.message = message};
	operation_begin();
	if (tied.stopped && atomic_load(&tied.alone) && !in_together(worker, &res) &&
		!open_together(worker, 0) &&
		(ckt_ipc_together_opened(worker) || ckt_net_now_ms() >= deadline_ms))
		go_together(worker);
	bool more = tied.stopped && atomic_load(&tied.alone);
	pthread_mutex_unlock(&operation_lock);
	return more;
}

void ckt_operation_leader_gone(struct ckt_worker *worker)
{
	const struct timespec piece = {.tv_nsec = TOGETHER_ALONE_NS};
	operation_begin();
	bool alone = tied.stopped;
	if (alone) {
		ckt_info(
			"no connection leads the sessions that share memory any more: this one continues");
		set_alone(true);
	}
	pthread_mutex_unlock(&operation_lock);
	int64_t deadline = ckt_net_now_ms() + TOGETHER_TAKERS_MS;
	while (alone && go_alone(worker, deadline))
		nanosleep(&piece, NULL);
}

static int swap_look(struct ckt_request *request)
{
	char message[1] = "";
	operation_begin();
	ckt_worker_swap_res res = swap_facts(request->worker);
	pthread_mutex_unlock(&operation_lock);
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
	atomic_fetch_add(&waiting, 1);
	while ((busy = pthread_mutex_trylock(&operation_lock)) && atomic_load(&pinning))
		nanosleep(&piece, NULL);
	atomic_fetch_sub(&waiting, 1);
	if (busy)
		return false;
	bool wanted = swap.out && !held && worker->checkpoint.swapped && !tied.stopped;
	/* Its server brings all of them in. */
	uint64_t total, left;
	if (tied.stopped && !atomic_load(&tied.alone))
		ckt_lease_info(worker->devices[0].number, &total, &left);
	int error = wanted ? come_in(worker, false, &bytes, message, sizeof message) : 0;
	if (wanted && !error) {
		pthread_mutex_lock(&worker->mail_lock);
		worker->checkpoint.freeze.wanted = false;
		pthread_mutex_unlock(&worker->mail_lock);
	} else if (error) {
		ckt_debug("a command waits for memory: %s", message);
	}
	pthread_mutex_unlock(&operation_lock);
	if (worker->current)
		ckt_driver.cuCtxSetCurrent(worker->current->real);
	return wanted && !error;
}

static int image(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_image_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_image_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message};
	operation_begin();
	if (ckt_worker_control_started() || !ckt_broker_is(request->passed_fd) ||
		args.index >= CKT_IMAGE_PLACES) {
		res.status = -EINVAL;
		snprintf(message, sizeof message,
			"the file broker of an image must come before the start, with "
			"a number below %d",
			CKT_IMAGE_PLACES);
	} else {
		while (worker->checkpoint.source.count <= args.index)
			worker->checkpoint.source.places[worker->checkpoint.source.count++] = -1;
		if (worker->checkpoint.source.places[args.index] >= 0)
			close(worker->checkpoint.source.places[args.index]);
		worker->checkpoint.source.places[args.index] = request->passed_fd;
		request->passed_fd = -1;
	}
	pthread_mutex_unlock(&operation_lock);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* Precondition: operation_lock held, or not started. */
static int memory(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_image_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_image_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message};
	operation_begin();
	if (args.index == 0)
		ckt_image_source_close_memory(&worker->checkpoint.source);
	if (request->passed_fd < 0 || args.index != worker->checkpoint.source.memory_count ||
		args.index >= CKT_IMAGE_MEMORY_FILES) {
		res.status = -EINVAL;
		snprintf(message, sizeof message,
			"the files of an image in memory must come in order, %d of them",
			CKT_IMAGE_MEMORY_FILES);
	} else {
		worker->checkpoint.source.memory_fds[worker->checkpoint.source.memory_count++] =
			request->passed_fd;
		request->passed_fd = -1;
	}
	pthread_mutex_unlock(&operation_lock);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

static int progress(struct ckt_request *request)
{
	struct ckt_progress *progress = &request->worker->checkpoint.progress;
	const char *phase = atomic_load(&progress->phase);
	ckt_worker_progress_res res = {.phase = (char *)(phase ? phase : "")};
	if (phase) {
		res.done_bytes = atomic_load(&progress->done);
		res.total_bytes = atomic_load(&progress->total);
	}
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_progress_res, &res);
}

/*
 * The server gives up on a worker that was stopped for longer than it waits: then the worker must
 * not execute the request later.
 */
static bool asker_gone(const struct ckt_request *request)
{
	return ckt_transport_wait(request->connection, CKT_TRANSPORT_ENDED, 0) > 0;
}

static int serve_swap(struct ckt_request *request, uint32_t proc)
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
	case CKT_WORKER_TOGETHER:
		return together(request);
	default:
		return -EPROTO;
	}
}

int ckt_operation_serve(struct ckt_request *request, uint32_t proc)
{
	if ((proc == CKT_WORKER_SAVE || proc == CKT_WORKER_SAVE2 || proc == CKT_WORKER_PAUSE ||
		    proc == CKT_WORKER_SWAP_OUT || proc == CKT_WORKER_SWAP_YIELD ||
		    proc == CKT_WORKER_TOGETHER || proc == CKT_WORKER_QUIESCE) &&
		asker_gone(request)) {
		ckt_warning("the caller that asked for a save or a pause is gone: ignoring the "
			    "request");
		return -ECONNRESET;
	}
	switch (proc) {
	case CKT_WORKER_SAVE:
		return save(request);
	case CKT_WORKER_SAVE2:
		return save2(request);
	case CKT_WORKER_RELEASE:
		return release(request);
	case CKT_WORKER_SLEEP:
		return sleep_session(request);
	case CKT_WORKER_IMAGE:
		return image(request);
	case CKT_WORKER_QUIESCE:
		return quiesce(request);
	case CKT_WORKER_PAUSE:
		return pause_session(request);
	case CKT_WORKER_UNPAUSE:
		return unpause(request);
	case CKT_WORKER_MEMORY:
		return memory(request);
	case CKT_WORKER_BASE:
		return base(request);
	case CKT_WORKER_PROGRESS:
		return progress(request);
	default:
		return serve_swap(request, proc);
	}
}
