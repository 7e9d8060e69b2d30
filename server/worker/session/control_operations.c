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
 * Threading: one operation at a time (operation_state.h); PROGRESS waits for none.
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
#include "checkpoint/save/chain.h"
#include "checkpoint/save/save.h"
#include "rpc/net.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/session/automatic.h"
#include "server/worker/session/control.h"
#include "server/worker/session/control_operations.h"
#include "server/worker/session/control_swap.h"
#include "server/worker/session/control_together.h"
#include "server/worker/session/operation_state.h"
#include "server/worker/worker.h"

/* From here on the image is written while the program runs. */
static void let_go(struct ckt_save *save, struct ckt_worker *worker)
{
	save->stopped_us = (uint64_t)(ckt_now_ns() - worker->checkpoint.freeze.since_ns) / 1000;
	save->gone = true;
	ckt_operation_thaw(worker);
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
	ckt_operation_begin();
	if (!ckt_worker_control_started() || !ckt_broker_is(request->passed_fd)) {
		snprintf(message, sizeof message,
			"there is nothing to save, or the call came without a file "
			"broker");
	} else if (ckt_operation_is_tied(message, sizeof message)) {
		res.status = -EBUSY;
	} else if (!(res.status = ckt_separable_check(worker, message, sizeof message))) {
		ckt_content_threads_prepare();
		res.status =
			ckt_operation_freeze(worker, args.deadline_ms, message, sizeof message);
		if (!res.status) {
			struct ckt_save save = {.broker = request->passed_fd};
			res.status = ckt_checkpoint_save(worker, &save, message, sizeof message);
			res.bytes = save.bytes;
			end = !res.status && args.stop;
			if (!end)
				ckt_operation_thaw(worker);
		}
		ckt_progress_end(&worker->checkpoint.progress);
	}
	result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_save_res, &res);
	/* The client is told about the end only now: the image is written and the server knows. */
	if (end)
		ckt_checkpoint_thaw(worker, true);
	request->end = end;
	ckt_operation_end();
	return result;
}

/* Precondition: operation begun. */
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
	if (ckt_operation_is_tied(res->message, CKT_MESSAGE_MAX))
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
	if (!args->hold && !ckt_operation.held && !worker->checkpoint.paused) {
		ckt_spare_memory_take(worker, &save.spare);
		save.let_go = let_go;
	}
	int error = ckt_operation_freeze(worker, args->deadline_ms, res->message, CKT_MESSAGE_MAX);
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
	ckt_operation.held = ckt_operation.held || (!error && args->hold);
	request->held = !error && args->hold;
	if (!save.gone)
		ckt_operation_thaw(worker);
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
	ckt_operation_begin();
	res.status = save2_locked(request, &args, &res);
	if (args.to_memory)
		ckt_image_source_close_memory(&request->worker->checkpoint.source);
	ckt_progress_end(&request->worker->checkpoint.progress);
	ckt_operation_end();
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_save2_res, &res);
}

/* Precondition: operation begun. */
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
	ckt_operation_begin();
	if (!ckt_operation.held) {
		res.status = -EINVAL;
		snprintf(message, sizeof message, "the session is not held");
	} else {
		ckt_operation.held = false;
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
			ckt_operation_thaw(worker);
		}
	}
	result = ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
	ckt_operation_end();
	xdr_free((xdrproc_t)xdr_ckt_worker_release_args, (char *)&args);
	return result;
}

/* Precondition: operation begun, and the session frozen.  The client's connection, a copy. */
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
	ckt_operation_begin();
	if (ckt_operation.held) {
		res.status = begin_sleep(worker, &fd, message, sizeof message);
		ckt_operation.held = false;
		if (res.status)
			ckt_operation_thaw(worker);
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
	ckt_operation_end();
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
	ckt_operation_begin();
	res.status = ckt_chain_base_piece(
		args.base, args.offset, args.data.data_val, args.data.data_len);
	ckt_operation_end();
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
	ckt_operation_begin();
	if (ckt_operation.held) {
		ckt_checkpoint_quiesce(request->worker);
	} else {
		res.status = -EINVAL;
		snprintf(message, sizeof message, "the session is not held");
	}
	ckt_operation_end();
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

void ckt_operation_let_go(struct ckt_worker *worker)
{
	ckt_operation_begin();
	if (ckt_operation.held) {
		ckt_info("no connection holds the session any more: it continues");
		ckt_operation.held = false;
		ckt_operation_thaw(worker);
	}
	ckt_operation_end();
}

/* Precondition: operation begun. */
static int go_on(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	int result = ckt_resume(worker, ret_bytes, ret_message, message_size);
	if (!result) {
		ckt_operation.swapped = false;
		ckt_operation_set_paused(worker, false);
		ckt_operation_thaw(worker);
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
	ckt_operation_begin();
	if (ckt_operation_is_tied(message, sizeof message)) {
		res.status = -EBUSY;
	} else if (ckt_operation.swapped) {
		/* The memory is not on the GPU any more; only what ends it changes. */
		ckt_operation_set_paused(worker, true);
		ckt_operation.swapped = false;
		res.status = 0;
	} else if (!ckt_worker_control_started() || worker->checkpoint.paused) {
		snprintf(message, sizeof message,
			worker->checkpoint.paused ? "the session is already paused"
						  : "the worker has no session yet");
	} else {
		ckt_content_threads_prepare();
		res.status =
			ckt_operation_freeze(worker, args.deadline_ms, message, sizeof message);
		if (!res.status) {
			res.status = ckt_pause(worker, &bytes, message, sizeof message);
			ckt_operation_set_paused(worker, !res.status);
			ckt_operation_thaw(worker);
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
	ckt_operation_end();
	return result;
}

static int unpause(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message, .status = -EINVAL};
	uint64_t bytes = 0;
	ckt_operation_begin();
	if (ckt_operation_is_tied(message, sizeof message)) {
		res.status = -EBUSY;
	} else if (!worker->checkpoint.paused) {
		snprintf(message, sizeof message, "the session is not paused");
	} else {
		res.status = go_on(worker, &bytes, message, sizeof message);
	}
	ckt_operation_end();
	res.bytes = bytes;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
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
	ckt_operation_begin();
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
	ckt_operation_end();
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

/* Precondition: operation begun, or not started. */
static int memory(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_image_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_image_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message};
	ckt_operation_begin();
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
	ckt_operation_end();
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
	case CKT_WORKER_TOGETHER:
		return ckt_control_together(request);
	default:
		return ckt_control_swap_serve(request, proc);
	}
}
