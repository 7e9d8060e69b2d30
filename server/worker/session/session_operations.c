/* SPDX-License-Identifier: Apache-2.0 */
/* What checkpoint/ needs of a session, by the worker; see checkpoint/session.h. */
#include <string.h>

#include "checkpoint/session.h"
#include "rpc/net.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/nccl/nccl_members.h"
#include "server/worker/memory/fixed_address.h"
#include "server/worker/memory/kernel_heap.h"
#include "server/worker/module/module_loading.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/counted_handles.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/session/control_operations.h"
#include "server/worker/session/drain.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/parting.h"
#include "server/worker/session/start.h"
#include "server/worker/session/metrics.h"
#include "server/worker/session/waiting_call.h"
#include "server/worker/worker.h"

/* A build without NCCL's headers lacks these. */
uint64_t ckt_worker_nccl_issued(struct ckt_worker *worker) __attribute__((weak));
bool ckt_worker_nccl_has_peers(char *ret_text, size_t text_size) __attribute__((weak));
int ckt_worker_nccl_cut_check(struct ckt_worker *worker, char *ret_message, size_t message_size)
	__attribute__((weak));

/* ---- The mailbox */

static pthread_mutex_t *lock(struct ckt_worker *worker)
{
	return &worker->mail_lock;
}

static pthread_cond_t *changed(struct ckt_worker *worker)
{
	return &worker->mail_cond;
}

static void wake(struct ckt_worker *worker)
{
	atomic_store(&worker->mail, true);
	ckt_executor_wake(worker);
}

/* ---- Contexts and objects */

static CUresult use_primary(struct ckt_worker *worker, unsigned device)
{
	struct ckt_object *context;
	CUresult result = ckt_context_primary(worker, device, &context);
	return result ? result : ckt_worker_use_context(worker, context->id);
}

static uint64_t current_context(struct ckt_worker *worker)
{
	return worker->current ? worker->current->id : 0;
}

static CUcontext real_context(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_object *context = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_CONTEXT);
	return context ? context->real : NULL;
}

static CUcontext first_context(struct ckt_worker *worker)
{
	return worker->first_context;
}

static unsigned device_of(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_object *context = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_CONTEXT);
	return context ? context->ctx.device : 0;
}

static CUmodule real_module(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_object *module = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_MODULE);
	return module ? module->real : NULL;
}

static struct ckt_object **objects_in_order(struct ckt_worker *worker, size_t *ret_count)
{
	return ckt_objects_in_order(&worker->objects, ret_count);
}

static uint64_t object_id(const struct ckt_object *object)
{
	return object->id;
}

/* ---- Standing still */

static uint64_t executed(struct ckt_worker *worker)
{
	return atomic_load(&worker->replies.executed);
}

/* One that came back without the memory it needs waits for it: its client sends it again. */
static int finish_calls(struct ckt_worker *worker, int64_t deadline_ms)
{
	int error = ckt_long_call_drain(worker, deadline_ms);
	if (!error)
		ckt_waiting_calls_look(worker, true);
	return error;
}

static int finish_waits(struct ckt_worker *worker, int64_t deadline_ms)
{
	return ckt_pending_drain(worker, NULL, deadline_ms);
}

static void send_record(
	struct ckt_worker *worker, uint64_t epoch, const uint8_t *record, size_t size)
{
	uint8_t *p = ckt_output_begin(&worker->output, epoch, size);
	if (!p)
		return;
	memcpy(p, record, size);
	ckt_output_end(&worker->output);
}

static bool calls_open(void)
{
	return ckt_wcalls_open() != 0;
}

static void begin_sleep(struct ckt_worker *worker)
{
	ckt_lookahead_asleep(&worker->lookahead, true);
}

static void end_sleep(struct ckt_worker *worker, bool session_ends)
{
	ckt_lookahead_asleep(&worker->lookahead, false);
	/* A client that was told to be quiet has had no chance to come back so far. */
	worker->detached_ms = ckt_net_now_ms();
	if (session_ends)
		worker->state = CKT_STATE_ENDING;
	ckt_worker_metrics_state(worker);
}

static uint64_t collectives_issued(struct ckt_worker *worker)
{
	return ckt_worker_nccl_issued ? ckt_worker_nccl_issued(worker) : 0;
}

static bool has_peers(char *ret_text, size_t text_size)
{
	return ckt_worker_nccl_has_peers && ckt_worker_nccl_has_peers(ret_text, text_size);
}

static bool is_shared_with_running(
	struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	return ckt_ipc_obstacle(worker, ret_message, message_size) ||
		(ckt_worker_nccl_cut_check &&
			ckt_worker_nccl_cut_check(worker, ret_message, message_size));
}

static const char *job(struct ckt_worker *worker)
{
	return worker->job;
}

static bool is_image_of(struct ckt_worker *worker, const ckt_image *image)
{
	return !strcmp(image->session, worker->session) &&
		!memcmp(image->secret_hash, worker->secret_hash, sizeof image->secret_hash);
}

const struct ckt_session_operations ckt_session_operations = {
	.lock = lock,
	.changed = changed,
	.wake = wake,
	.note = ckt_worker_note,
	.use_context = ckt_worker_use_context,
	.use_primary = use_primary,
	.current_context = current_context,
	.real_context = real_context,
	.first_context = first_context,
	.device_of = device_of,
	.real_module = real_module,
	.load_whole = ckt_loading_whole,
	.objects_in_order = objects_in_order,
	.object_id = object_id,
	.end_ahead = ckt_counted_ahead_fini,
	.executed = executed,
	.finish_waits = finish_waits,
	.finish_streams = ckt_streams_drain,
	.streams_work = ckt_streams_busy,
	.calls_open = calls_open,
	.deliver = ckt_pending_deliver,
	.flush = ckt_parting_flush,
	.send_record = send_record,
	.part = ckt_parting_end,
	.begin_sleep = begin_sleep,
	.end_sleep = end_sleep,
	.wait_client = ckt_executor_wait_client,
	.come_in = ckt_operation_come_in,
	.job = job,
	.is_image_of = is_image_of,
	.charge = ckt_budget_charge,
	.uncharge = ckt_budget_uncharge,
	.map_place = ckt_fixed_address_map,
	.waits_for_others = ckt_blocking_call_is_busy,
	.finish_calls = finish_calls,
	.host_function_runs = ckt_hostcalls_waiting,
	.host_functions_ended = ckt_hostcalls_ended,
	.settle_notes = ckt_inside_notes_settle,
	.collectives_issued = collectives_issued,
	.is_shared = ckt_ipc_is_shared,
	.is_shared_with_running = is_shared_with_running,
	.close_sharing = ckt_ipc_close,
	.reopen_sharing = ckt_ipc_reopen,
	.has_peers = has_peers,
	.check_saved = ckt_heap_check,
};
