/* SPDX-License-Identifier: Apache-2.0 */
/* Async notifications; see notify.h. */
#include "server/worker/session/notify.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/objects/device.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

struct registration {
	struct registration *next;
	uint64_t number; /* the client's */
	unsigned device;
	CUasyncCallbackHandle real;
	/* with the driver: not where a restored session's new one has no notifications */
	bool registered;
	uint64_t instance; /* of the latest; 0: none */
	uint32_t type;
	uint64_t over_bytes;
	bool waiting; /* to be sent */
};

/*
 * Guards the list and what came; nothing that may take long is done under it, because the driver's
 * threads take it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registration *first;
static unsigned count;
static uint64_t next_instance;

/* Precondition: locked.  The place where it stands, or the end of the list. */
static struct registration **find(uint64_t number)
{
	struct registration **link = &first;
	while (*link && (*link)->number != number)
		link = &(*link)->next;
	return link;
}

/*
 * On a thread of the driver, where its functions must not be called.  data: the number, since a
 * registration may go meanwhile.
 */
static void notified(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	struct ckt_worker *worker = &ckt_worker;
	(void)handle;
	pthread_mutex_lock(&lock);
	struct registration *r = *find((uintptr_t)data);
	if (r) {
		/* A restored session must not use a number that its client has seen. */
		r->instance = worker->generation << 40 | ++next_instance;
		r->type = info->type;
		r->over_bytes = info->type == CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET
			? info->info.overBudget.bytesOverBudget
			: 0;
		r->waiting = true;
		atomic_store(&worker->mail, true);
	}
	pthread_mutex_unlock(&lock);
	if (r)
		ckt_executor_wake(worker);
}

void ckt_notifications_send(struct ckt_worker *worker)
{
	uint64_t epoch = ckt_output_epoch(&worker->output);
	pthread_mutex_lock(&lock);
	for (struct registration *r = first; r && epoch; r = r->next) {
		if (!r->waiting)
			continue;
		uint8_t *p = ckt_output_begin(&worker->output, epoch, CKT_CALL_HEADER_SIZE + 28);
		if (!p)
			break;
		p = ckt_call_header_put(p,
			&(struct ckt_call_header){.prog = CRICKET_CALLBACK_PROG,
				.vers = 1,
				.proc = CKT_CALLBACK_NOTIFY});
		p = ckt_put_u64(p, r->number);
		p = ckt_put_u64(p, r->instance);
		p = ckt_put_u32(p, r->type);
		ckt_put_u64(p, r->over_bytes);
		ckt_output_end(&worker->output);
		r->waiting = false;
	}
	pthread_mutex_unlock(&lock);
}

void ckt_notifications_resend(struct ckt_worker *worker)
{
	pthread_mutex_lock(&lock);
	for (struct registration *r = first; r; r = r->next)
		r->waiting = r->instance != 0;
	pthread_mutex_unlock(&lock);
	ckt_notifications_send(worker);
}

/*
 * Takes it into the list and registers it: the driver may have something to tell before it
 * returns.  Leaves nothing behind on failure.
 */
static CUresult add(struct ckt_worker *worker, const struct registration *what, bool without)
{
	struct registration *r = count < CKT_NOTIFICATIONS_MAX ? malloc(sizeof *r) : NULL;
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*r = *what;
	pthread_mutex_lock(&lock);
	struct registration **end = find(what->number);
	bool taken = *end != NULL;
	if (!taken) {
		*end = r;
		count++;
	}
	pthread_mutex_unlock(&lock);
	if (taken) {
		free(r);
		return CUDA_ERROR_INVALID_VALUE;
	}
	CUresult result = ckt_driver.cuDeviceRegisterAsyncNotification &&
			ckt_driver.cuDeviceUnregisterAsyncNotification
		? ckt_driver.cuDeviceRegisterAsyncNotification(worker->devices[r->device].ordinal,
			  notified, (void *)(uintptr_t)r->number, &r->real)
		: CKT_WORKER_UNSUPPORTED(
			  "cuDeviceRegisterAsyncNotification with the server's driver");
	r->registered = result == CUDA_SUCCESS;
	if (result && !without) {
		pthread_mutex_lock(&lock);
		*find(r->number) = r->next;
		count--;
		pthread_mutex_unlock(&lock);
		free(r);
	}
	return result;
}

/* ---- Handlers */

int ckt_worker_device_notify(struct ckt_wcall *call)
{
	struct ckt_device_notify_args args;
	if (!ckt_device_notify_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!ckt_worker_device_find(call->worker, args.device))
		return CUDA_ERROR_INVALID_DEVICE;
	return add(call->worker,
		&(struct registration){.number = args.number, .device = args.device}, false);
}

int ckt_worker_device_notify_end(struct ckt_wcall *call)
{
	struct ckt_device_notify_end_args args;
	if (!ckt_device_notify_end_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	pthread_mutex_lock(&lock);
	struct registration **link = find(args.number), *r = *link;
	if (r) {
		*link = r->next;
		count--;
	}
	pthread_mutex_unlock(&lock);
	if (!r)
		return CUDA_ERROR_INVALID_VALUE;
	/* Not under the lock: the driver waits for a callback that runs. */
	CUresult result = r->registered ? ckt_driver.cuDeviceUnregisterAsyncNotification(
						  call->worker->devices[r->device].ordinal, r->real)
					: CUDA_SUCCESS;
	free(r);
	return result;
}

/* ---- Images */

static int save_rest(struct ckt_saving *s)
{
	pthread_mutex_lock(&lock);
	s->image.notifications.notifications_val =
		ckt_save_list(s, count, sizeof(ckt_image_notification));
	for (const struct registration *r = first; r && !s->no_memory; r = r->next)
		s->image.notifications
			.notifications_val[s->image.notifications.notifications_len++] =
			(ckt_image_notification){
				r->number, r->device, r->instance, r->type, r->over_bytes};
	pthread_mutex_unlock(&lock);
	return ckt_save_has_memory(s);
}

static int load(struct ckt_loading *l, unsigned i)
{
	const ckt_image_notification *saved = &l->image.notifications.notifications_val[i];
	if (!ckt_worker_device_find(l->worker, saved->device))
		return ckt_load_fail(l, CUDA_ERROR_INVALID_DEVICE, "notification", saved->number);
	CUresult result = add(l->worker,
		&(struct registration){.number = saved->number,
			.device = saved->device,
			.instance = saved->instance,
			.type = saved->type,
			.over_bytes = saved->over_bytes,
			.waiting = saved->instance != 0},
		true);
	if (result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_INVALID_VALUE)
		return ckt_load_fail(l, result, "notification", saved->number);
	if (result)
		ckt_warning("the driver has no notifications (%d): the program receives "
			    "none from now on",
			result);
	return 0;
}

const struct ckt_object_kind ckt_notification_kind = {
	.name = "notifications",
	.save_rest = save_rest,
	.stage = CKT_LOAD_REST,
	.list = CKT_IMAGE_LIST(notifications),
	.load = load,
};
