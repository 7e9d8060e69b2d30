/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async notifications.  The worker sends those of its driver, and a thread of this library calls
 * the program's callbacks.
 *
 * Each server has one such thread while a callback is registered.  The thread reads the connection
 * while no other thread does, so notifications arrive even if the program makes no CUDA calls.  A
 * callback may call CUDA, except to register or unregister.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/fork.h"
#include "client/conn/conn.h"
#include "client/cuda/call.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "cudacommon/interface.h"

struct CUasyncCallbackEntry_st {
	struct CUasyncCallbackEntry_st *next;
	uint64_t number;
	CUdevice device;
	unsigned server; /* the connection's number */
	CUasyncCallback call;
	void *data;
	uint64_t instance;            /* of the latest; the worker may send it again */
	CUasyncNotificationInfo info; /* the latest notification */
	bool arrived, running;
};

struct listener {
	struct ckt_conn *conn;
	unsigned registered;
	bool running;
};

static CKT_LOCK(lock);
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
static struct CUasyncCallbackEntry_st *entries;
static struct listener listeners[CKT_SERVERS_MAX]; /* by the connection's number */
static uint64_t next_number;
static __thread bool in_callback __attribute__((tls_model("initial-exec")));

/* The child of a fork has no such thread, no session and no registered callbacks. */
static void forked(void)
{
	returned = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	entries = NULL;
	for (unsigned i = 0; i < CKT_SERVERS_MAX; i++)
		listeners[i] = (struct listener){0};
	in_callback = false;
}
CKT_IN_CHILD(forked);

/* ---- The thread */

/* Precondition: locked. */
static struct CUasyncCallbackEntry_st *next_arrived(const struct listener *listener)
{
	struct CUasyncCallbackEntry_st *entry = entries;
	while (entry && (!entry->arrived || entry->server != listener->conn->number))
		entry = entry->next;
	return entry;
}

static bool is_over(const struct ckt_conn *conn)
{
	int state = atomic_load(&((struct ckt_conn *)conn)->state);
	return state == CKT_CONN_LOST || state == CKT_CONN_FORKED;
}

static bool something_to_do(void *data)
{
	const struct listener *listener = data;
	pthread_mutex_lock(&lock);
	bool there = !listener->registered || next_arrived(listener) || is_over(listener->conn);
	pthread_mutex_unlock(&lock);
	return there;
}

static void *listen_thread(void *opaque)
{
	struct listener *listener = opaque;
	pthread_mutex_lock(&lock);
	struct ckt_conn *conn = listener->conn;
	ckt_call_conn = conn;
	for (;;) {
		struct CUasyncCallbackEntry_st *entry = next_arrived(listener);
		if (entry) {
			CUasyncNotificationInfo info = entry->info;
			entry->arrived = false;
			entry->running = true;
			pthread_mutex_unlock(&lock);
			in_callback = true;
			entry->call(&info, entry->data, entry);
			in_callback = false;
			pthread_mutex_lock(&lock);
			entry->running = false;
			pthread_cond_broadcast(&returned);
			continue;
		}
		if (!listener->registered || is_over(conn))
			break;
		pthread_mutex_unlock(&lock);
		ckt_conn_listen_until(conn, something_to_do, listener);
		pthread_mutex_lock(&lock);
	}
	listener->running = false;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/*
 * Runs in the thread that reads the socket, so it only stores the notification.  An unknown number
 * belongs to an entry that has been unregistered.
 */
static void notify(struct ckt_conn *conn, const struct ckt_notify_args *args)
{
	pthread_mutex_lock(&lock);
	for (struct CUasyncCallbackEntry_st *entry = entries; entry; entry = entry->next) {
		if (entry->number != args->number || entry->server != conn->number ||
			args->instance <= entry->instance)
			continue;
		entry->instance = args->instance;
		entry->info =
			(CUasyncNotificationInfo){.type = (CUasyncNotificationType)args->type};
		entry->info.info.overBudget.bytesOverBudget = args->over_bytes;
		entry->arrived = true;
	}
	pthread_mutex_unlock(&lock);
}

/* Precondition: locked. */
static bool start_thread(struct listener *listener)
{
	sigset_t all, before;
	pthread_t thread;
	if (listener->running)
		return true;
	sigfillset(&all);
	/* The thread itself must receive its faults: accesses to managed memory cause them. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	listener->running = pthread_create(&thread, NULL, listen_thread, listener) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (listener->running)
		pthread_detach(thread);
	return listener->running;
}

/* Registers the entry.  False if the thread cannot start. */
static bool add(struct CUasyncCallbackEntry_st *entry)
{
	struct listener *listener = &listeners[entry->server];
	pthread_mutex_lock(&lock);
	ckt_conn_notify = notify;
	listener->conn = ckt_call_conn;
	listener->registered++;
	bool added = start_thread(listener);
	if (added) {
		entry->number = ++next_number;
		entry->next = entries;
		entries = entry;
	} else {
		listener->registered--;
	}
	pthread_mutex_unlock(&lock);
	return added;
}

/*
 * Removes the entry, and waits until its callback has returned.  False if there is no such entry.
 */
static bool take(CUasyncCallbackHandle handle, CUdevice device)
{
	pthread_mutex_lock(&lock);
	struct CUasyncCallbackEntry_st **link = &entries;
	while (*link && (*link != handle || (*link)->device != device))
		link = &(*link)->next;
	bool found = *link != NULL;
	if (found) {
		*link = handle->next;
		listeners[handle->server].registered--;
		while (handle->running)
			pthread_cond_wait(&returned, &lock);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- The API */

CKT_EXPORT CUresult cuDeviceRegisterAsyncNotification(
	CUdevice device, CUasyncCallback call, void *data, CUasyncCallbackHandle *ret_handle)
{
	CUresult result;
	if (in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	if (!call || !ret_handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(device, &result))
		return result;
	CKT_ROUTE_DEVICE(device);
	struct CUasyncCallbackEntry_st *entry = malloc(sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*entry = (struct CUasyncCallbackEntry_st){
		.device = device, .server = ckt_call_conn->number, .call = call, .data = data};
	if (!add(entry)) {
		free(entry);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = CKT_WAITED(device_notify, DEVICE_NOTIFY, CKT_CALL_F_ANYWAY | CKT_CALL_F_NUMBERED,
		NULL, .device = ckt_call_device((unsigned)device), .number = entry->number);
	if (!result) {
		*ret_handle = entry;
	} else if (take(entry, device)) {
		free(entry);
	}
	return result;
}

CKT_EXPORT CUresult cuDeviceUnregisterAsyncNotification(
	CUdevice device, CUasyncCallbackHandle handle)
{
	CUresult result;
	if (in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	if (!ckt_client_device_get(device, &result))
		return result;
	CKT_ROUTE_DEVICE(device);
	if (!take(handle, device))
		return CUDA_ERROR_INVALID_VALUE;
	result = CKT_WAITED(device_notify_end, DEVICE_NOTIFY_END,
		CKT_CALL_F_ANYWAY | CKT_CALL_F_NUMBERED, NULL, .number = handle->number);
	free(handle);
	return result;
}
