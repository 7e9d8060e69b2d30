/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events shared between sessions; see ipc.h. */
#include "server/worker/ipc/ipc.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/ipc/ipc_state.h"
#include "server/worker/memory/window.h"
#include "server/worker/module/blob.h"
#include "server/worker/objects/device.h"
#include "server/worker/session/activity.h"
#include "server/worker/session/group.h"
#include "server/worker/session/handlers.h"

enum { EXPORTS_MAX = 4096, TAKERS_MAX = 1024, LATER_MS = 60000, LATER_LOOK_NS = 2000000 };

struct ckt_ipc ckt_ipc = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- The owner's side */

bool ckt_ipc_same_secret(const uint8_t *a, const uint8_t *b)
{
	unsigned difference = 0;
	for (unsigned i = 0; i < CKT_IPC_SECRET; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

/* Precondition: lock held. */
struct ckt_ipc_export *ckt_ipc_find_secret(uint32_t kind, const uint8_t *secret)
{
	struct ckt_ipc_export *e = ckt_ipc.exports;
	while (e && (e->handle.kind != kind || !ckt_ipc_same_secret(e->handle.secret, secret)))
		e = e->next;
	return e;
}

/* Precondition: lock held.  A question to a worker that is gone finds that out. */
static bool note_taker(const struct ckt_ipc_question *question)
{
	for (size_t i = 0; i < ckt_ipc.taker_count; i++) {
		struct ckt_ipc_taker *taker = &ckt_ipc.takers[i];
		if (memcmp(taker->session, question->session, sizeof taker->session) == 0)
			return true;
	}
	if (ckt_ipc.taker_count >= TAKERS_MAX ||
		CKT_GROW(ckt_ipc.takers, ckt_ipc.taker_count, ckt_ipc.taker_room, 8))
		return false;
	struct ckt_ipc_taker *taker = &ckt_ipc.takers[ckt_ipc.taker_count++];
	memcpy(taker->session, question->session, sizeof taker->session);
	return true;
}

/* Precondition: lock held. */
static enum ckt_ipc_found have_open_of(const char session[CKT_IPC_SESSION])
{
	enum ckt_ipc_found found = CKT_IPC_NONE;
	for (const struct ckt_ipc_import *import = ckt_ipc.imports; import; import = import->next)
		if (memcmp(import->handle.session, session, CKT_IPC_SESSION) != 0 || import->lost)
			continue;
		else if (import->away)
			return CKT_IPC_LATER;
		else
			found = CKT_IPC_HERE;
	return found;
}

/* Precondition: lock held.  *ret_fd is the caller's. */
static void answer_fetch(
	const struct ckt_ipc_question *question, struct ckt_ipc_answer *answer, int *ret_fd)
{
	struct ckt_ipc_export *e = ckt_ipc_find_secret(question->kind, question->secret);
	bool again = question->want == CKT_IPC_AGAIN;
	if (ckt_ipc.together)
		ckt_ipc.wanted = true;
	if ((ckt_ipc.closed && !again) || (!e && ckt_ipc.loading) ||
		(e && ckt_ipc.together && e->fd < 0 && question->kind != CKT_IPC_EVENT)) {
		answer->found = CKT_IPC_LATER;
		return;
	}
	if (!e || (question->restoring && !ckt_ipc.restored_copy) || !note_taker(question))
		return;
	*ret_fd = e->fd < 0 ? -1 : fcntl(e->fd, F_DUPFD_CLOEXEC, 3);
	answer->found = *ret_fd >= 0 || e->fd < 0 ? CKT_IPC_HERE : CKT_IPC_NONE;
	e->taken = true;
	answer->whole = e->answer.whole;
	answer->offset = e->answer.offset;
	answer->size = e->answer.size;
	answer->event = e->answer.event;
}

void ckt_ipc_serve(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	(void)name;
	struct ckt_ipc_question question;
	struct ckt_ipc_answer answer = {0};
	int fd = -1;
	if (ckt_ipc_hear(connection, &question)) {
		if (question.want == CKT_IPC_LEFT)
			ckt_ipc_count_left(
				worker, question.session, question.kind, question.secret);
		pthread_mutex_lock(&worker->mail_lock);
		answer.held = worker->checkpoint.hold.wanted ? CKT_IPC_WITH_JOB : 0;
		snprintf(answer.job, sizeof answer.job, "%s", ckt_hold_with(worker));
		answer.copy = worker->copy;
		pthread_mutex_unlock(&worker->mail_lock);
		pthread_mutex_lock(&ckt_ipc.lock);
		/* While it is restored, the worker has no id yet. */
		memcpy(answer.session, *ckt_ipc.session ? ckt_ipc.session : worker->session,
			sizeof answer.session);
		if (question.restoring)
			answer.copy = ckt_ipc.restored_copy;
		answer.held |= ckt_ipc.together && !ckt_ipc.alone ? CKT_IPC_TOGETHER : 0;
		if (question.want == CKT_IPC_FETCH || question.want == CKT_IPC_AGAIN)
			answer_fetch(&question, &answer, &fd);
		else if (question.want == CKT_IPC_STILL)
			answer.found = ckt_ipc_find_secret(question.kind, question.secret)
				? CKT_IPC_HERE
				: CKT_IPC_NONE;
		else if (question.want == CKT_IPC_OPEN)
			answer.found = have_open_of(question.session);
		pthread_mutex_unlock(&ckt_ipc.lock);
		ckt_ipc_reply(connection, &answer, fd);
	}
	if (fd >= 0)
		close(fd);
}

static struct ckt_ipc_export *find_export(uint32_t kind, uint64_t id)
{
	struct ckt_ipc_export *e = ckt_ipc.exports;
	while (e && (e->id != id || e->handle.kind != kind))
		e = e->next;
	return e;
}

/* The handle of what a call of the program shares for the first time: the same in a replay. */
static struct ckt_ipc_handle new_handle(const struct ckt_wcall *call, uint32_t kind, uint64_t id)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ipc_handle handle = {.kind = kind};
	uint8_t hash[CKT_SECRET_HASH_SIZE], from[sizeof hash + 4 + 8 + 8], *p = from;
	pthread_mutex_lock(&worker->mail_lock);
	memcpy(p, worker->secret_hash, sizeof worker->secret_hash);
	pthread_mutex_unlock(&worker->mail_lock);
	p = ckt_put_u32(p + sizeof worker->secret_hash, kind);
	ckt_put_u64(ckt_put_u64(p, call->header.seq), id);
	ckt_blob_hash(from, sizeof from, hash);
	memcpy(handle.magic, CKT_IPC_MAGIC, sizeof handle.magic);
	memcpy(handle.session, worker->session, sizeof handle.session);
	memcpy(handle.secret, hash, sizeof handle.secret);
	return handle;
}

/* Takes over the descriptor, -1 for none. */
static CUresult enter(struct ckt_ipc_export entry, const struct ckt_ipc_handle *handle,
	struct ckt_ipc_export **ret_export)
{
	struct ckt_ipc_export *e = malloc(sizeof *e);
	if (!e) {
		if (entry.fd >= 0)
			close(entry.fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	entry.handle = *handle;
	pthread_mutex_lock(&ckt_ipc.lock);
	*e = entry;
	e->next = ckt_ipc.exports;
	ckt_ipc.exports = e;
	ckt_ipc.export_count++;
	pthread_mutex_unlock(&ckt_ipc.lock);
	ckt_activity_shares();
	*ret_export = e;
	return CUDA_SUCCESS;
}

/* The entry of an earlier export, or a new one. */
static CUresult export_memory(struct ckt_ipc_export entry, uint64_t piece,
	const struct ckt_ipc_handle *handle, struct ckt_ipc_export **ret_export)
{
	*ret_export = find_export(handle->kind, entry.id);
	if (*ret_export)
		return CUDA_SUCCESS;
	if (!ckt_group_joined() || !ckt_driver.cuMemExportToShareableHandle ||
		ckt_ipc.export_count >= EXPORTS_MAX)
		return CKT_WORKER_UNSUPPORTED(
			"memory for other processes: too much of it, or no server that shares");
	CUresult result = ckt_driver.cuMemExportToShareableHandle(
		&entry.fd, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	return result ? result : enter(entry, handle, ret_export);
}

CUresult ckt_ipc_export_block(struct ckt_worker *worker, uint64_t address,
	const struct ckt_ipc_handle *handle, struct ckt_ipc_export **ret)
{
	struct ckt_ipc_export entry = {.id = address};
	uint64_t piece, extent;
	struct ckt_worker_device *device = ckt_worker_device_of(worker, address);
	if (!device ||
		!ckt_memory_locate(&device->memory, address, &entry.answer.size, &entry.context,
			&extent, &entry.answer.whole, &piece))
		return CUDA_ERROR_INVALID_VALUE;
	if (!piece) {
		CUresult result = ckt_window_join(worker, (unsigned)(device - worker->devices),
			extent, entry.answer.whole, &piece);
		if (result)
			return result;
	}
	entry.answer.offset = address - extent;
	return export_memory(entry, piece, handle, ret);
}

CUresult ckt_ipc_export_physical(
	struct ckt_object *object, const struct ckt_ipc_handle *handle, struct ckt_ipc_export **ret)
{
	struct ckt_ipc_export entry = {.id = object->id,
		.context = object->context,
		.answer = {.whole = object->physical.size, .size = object->physical.size}};
	return export_memory(entry, object->physical.handle, handle, ret);
}

CUresult ckt_ipc_export_event(
	struct ckt_object *object, const struct ckt_ipc_handle *handle, struct ckt_ipc_export **ret)
{
	struct ckt_ipc_export entry = {.id = object->id, .fd = -1};
	*ret = find_export(CKT_IPC_EVENT, object->id);
	if (*ret)
		return CUDA_SUCCESS;
	if (!ckt_group_joined() || !ckt_driver.cuIpcGetEventHandle ||
		ckt_ipc.export_count >= EXPORTS_MAX)
		return CKT_WORKER_UNSUPPORTED(
			"an event for other processes: too many of them, or no server that shares");
	CUresult result = ckt_driver.cuIpcGetEventHandle(&entry.answer.event, object->real);
	if (!result)
		result = ckt_ipc_event_page(&entry.answer.event, &entry.fd);
	return result ? result : enter(entry, handle, ret);
}

static void forget(struct ckt_worker *worker, bool (*gone)(const struct ckt_ipc_export *, uint64_t),
	uint64_t what)
{
	struct ckt_ipc_export *forgotten = NULL;
	pthread_mutex_lock(&ckt_ipc.lock);
	for (struct ckt_ipc_export **place = &ckt_ipc.exports; *place;) {
		struct ckt_ipc_export *e = *place;
		if (gone(e, what)) {
			*place = e->next;
			ckt_ipc.export_count--;
			e->next = forgotten;
			forgotten = e;
		} else {
			place = &e->next;
		}
	}
	pthread_mutex_unlock(&ckt_ipc.lock);
	ckt_ipc_leave(worker, forgotten);
}

static bool is_it(const struct ckt_ipc_export *e, uint64_t id)
{
	return e->id == id;
}

static bool is_of(const struct ckt_ipc_export *e, uint64_t context)
{
	return e->handle.kind == CKT_IPC_BLOCK && e->context == context;
}

void ckt_ipc_forget(struct ckt_worker *worker, uint64_t address_or_id)
{
	if (ckt_ipc.export_count)
		forget(worker, is_it, address_or_id);
}

/* ---- The other side */

bool ckt_ipc_answer_good(const struct ckt_ipc_answer *answer, uint32_t kind, int fd)
{
	if (answer->found != CKT_IPC_HERE ||
		(fd >= 0) != (kind != CKT_IPC_EVENT || ckt_ipc_event_has_page(&answer->event)))
		return false;
	return kind == CKT_IPC_EVENT ||
		(answer->whole && answer->whole % CKT_MEMORY_EXTENT == 0 &&
			answer->offset <= answer->whole && answer->size &&
			answer->size <= answer->whole - answer->offset);
}

/*
 * Asks the owner's worker; while that is frozen for its image, tries later.  False if it fails.
 * *ret_fd: the caller's; -1 for an event of NVIDIA's driver.
 */
static bool fetch(struct ckt_worker *worker, const struct ckt_ipc_handle *handle,
	struct ckt_ipc_answer *ret, int *ret_fd)
{
	struct ckt_ipc_question question =
		ckt_ipc_question(worker, CKT_IPC_FETCH, handle->kind, handle->secret);
	int64_t deadline = ckt_net_now_ms() + LATER_MS;
	int error;
	while (!(error = ckt_ipc_ask_session(handle->session, &question, ret, ret_fd)) &&
		ret->found == CKT_IPC_LATER && ckt_net_now_ms() < deadline)
		nanosleep(&(struct timespec){.tv_nsec = LATER_LOOK_NS}, NULL);
	if (!error && ckt_ipc_answer_good(ret, handle->kind, *ret_fd))
		return true;
	if (*ret_fd >= 0)
		close(*ret_fd);
	return false;
}

/*
 * The session's number of the GPU that holds the memory; the given one if the driver does not tell,
 * or names another.
 */
static unsigned device_of(struct ckt_worker *worker, uint64_t piece, unsigned otherwise)
{
	CUmemAllocationProp prop = {0};
	if (ckt_driver.cuMemGetAllocationPropertiesFromHandle &&
		!ckt_driver.cuMemGetAllocationPropertiesFromHandle(&prop, piece))
		for (unsigned d = 0; d < worker->device_count; d++)
			if (worker->devices[d].ordinal == prop.location.id)
				return d;
	return otherwise;
}

CUresult ckt_ipc_take_memory(
	struct ckt_worker *worker, int fd, struct ckt_ipc_import *import, uint64_t *ret_piece)
{
	CUmemGenericAllocationHandle piece;
	CUresult result = ckt_driver.cuMemImportFromShareableHandle
		? ckt_driver.cuMemImportFromShareableHandle(
			  &piece, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		: CKT_WORKER_UNSUPPORTED("memory of other processes with the server's driver");
	close(fd);
	if (result)
		return result;
	import->device = device_of(worker, piece, import->device);
	*ret_piece = piece;
	return CUDA_SUCCESS;
}

static CUresult import_memory(
	struct ckt_worker *worker, struct ckt_ipc_import *import, uint64_t *ret_piece)
{
	struct ckt_ipc_answer answer;
	int fd;
	if (!fetch(worker, &import->handle, &answer, &fd))
		return CUDA_ERROR_INVALID_VALUE;
	import->offset = answer.offset;
	import->size = answer.size;
	import->whole = answer.whole;
	return ckt_ipc_take_memory(worker, fd, import, ret_piece);
}

CUresult ckt_ipc_map_block(
	struct ckt_worker *worker, struct ckt_ipc_import *import, unsigned here, uint64_t address)
{
	struct ckt_memory *memory = &worker->devices[here].memory;
	uint64_t base;
	CUresult result = ckt_memory_reserve(memory, import->whole, 0, address, &base);
	if (!result && address && base != address) {
		ckt_memory_unreserve(memory, base, import->whole);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!result) {
		result = ckt_driver.cuMemMap(base, import->whole, 0, import->piece, 0);
		if (!result &&
			(result = ckt_window_give_access(
				 worker, import->device, base, import->whole)))
			ckt_driver.cuMemUnmap(base, import->whole);
		if (result)
			ckt_memory_unreserve(memory, base, import->whole);
	}
	if (result)
		ckt_driver.cuMemRelease(import->piece);
	else
		import->id = base + import->offset;
	return result;
}

CUresult ckt_ipc_make_physical(
	struct ckt_worker *worker, struct ckt_ipc_import *import, uint64_t piece)
{
	struct ckt_object *object;
	CUresult result =
		ckt_objects_add(&worker->objects, import->id, CKT_KIND_PHYSICAL, false, &object);
	if (result) {
		ckt_driver.cuMemRelease(piece);
		return result;
	}
	object->physical.device = import->device;
	object->physical.size = import->whole;
	object->physical.handle = piece;
	object->physical.imported = true;
	return CUDA_SUCCESS;
}

void ckt_ipc_enter_import(struct ckt_ipc_import *import)
{
	pthread_mutex_lock(&ckt_ipc.lock);
	import->next = ckt_ipc.imports;
	ckt_ipc.imports = import;
	pthread_mutex_unlock(&ckt_ipc.lock);
	ckt_activity_shares();
}

/* Removes it from the list; NULL if there is none.  The caller's. */
static struct ckt_ipc_import *remove_import(uint32_t kind, uint64_t id)
{
	struct ckt_ipc_import *import = NULL;
	pthread_mutex_lock(&ckt_ipc.lock);
	for (struct ckt_ipc_import **place = &ckt_ipc.imports; *place && !import;)
		if ((*place)->handle.kind == kind && (*place)->id == id) {
			import = *place;
			*place = import->next;
		} else {
			place = &(*place)->next;
		}
	pthread_mutex_unlock(&ckt_ipc.lock);
	return import;
}

static void drop(struct ckt_worker *worker, struct ckt_ipc_import *import)
{
	uint64_t base = import->id - import->offset;
	if (!import->away) {
		ckt_driver.cuMemUnmap(base, import->whole);
		ckt_driver.cuMemRelease(import->piece);
	}
	ckt_memory_unreserve(&ckt_worker_device_of(worker, base)->memory, base, import->whole);
	ckt_ipc_closed(worker, import);
	free(import);
}

void ckt_ipc_forget_context(struct ckt_worker *worker, uint64_t context)
{
	if (ckt_ipc.export_count)
		forget(worker, is_of, context);
	for (;;) {
		struct ckt_ipc_import *import = ckt_ipc.imports;
		while (import &&
			(import->context != context || import->handle.kind != CKT_IPC_BLOCK))
			import = import->next;
		if (!import)
			return;
		drop(worker, remove_import(CKT_IPC_BLOCK, import->id));
	}
}

void ckt_ipc_physical_gone(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_ipc_import *import = remove_import(CKT_IPC_PHYSICAL, id);
	if (import)
		ckt_ipc_closed(worker, import);
	free(import);
}

void ckt_ipc_event_gone(uint64_t id)
{
	free(remove_import(CKT_IPC_EVENT, id));
}

/* ---- Handlers */

int ckt_worker_ipc_mem_get(struct ckt_wcall *call)
{
	struct ckt_ipc_mem_get_args args;
	struct ckt_ipc_export *e;
	if (!ckt_ipc_mem_get_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_ipc_handle handle = new_handle(call, CKT_IPC_BLOCK, args.address);
	CUresult result = ckt_ipc_export_block(call->worker, args.address, &handle, &e);
	if (result)
		return result;
	struct ckt_ipc_mem_get_res res = {
		.handle = (const uint8_t *)&e->handle, .handle_len = sizeof e->handle};
	ckt_ipc_mem_get_res_put(ckt_wcall_results(call, ckt_ipc_mem_get_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* The entry for a handle; NULL if the handle is invalid, or there is no memory. */
static struct ckt_ipc_import *new_import(
	struct ckt_worker *worker, const uint8_t *bytes, uint32_t length, uint32_t kind)
{
	struct ckt_ipc_handle handle;
	if (length != sizeof handle)
		return NULL;
	memcpy(&handle, bytes, sizeof handle);
	if (memcmp(handle.magic, CKT_IPC_MAGIC, sizeof handle.magic) || handle.kind != kind)
		return NULL;
	struct ckt_ipc_import *import = calloc(1, sizeof *import);
	if (!import)
		return NULL;
	import->handle = handle;
	import->device = worker->current ? worker->current->ctx.device : 0;
	import->context = worker->current ? worker->current->id : 0;
	return import;
}

int ckt_worker_ipc_mem_open(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ipc_mem_open_args args;
	if (!ckt_ipc_mem_open_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct ckt_ipc_import *import =
		new_import(worker, args.handle, args.handle_len, CKT_IPC_BLOCK);
	if (!import)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = import_memory(worker, import, &import->piece);
	unsigned here = worker->current->ctx.device;
	/* What the program got lies behind the beginning of the mapping. */
	if (!result && worker->impose.seq && worker->impose.address)
		ckt_memory_impose(
			&worker->devices[here].memory, worker->impose.address - import->offset);
	if (!result)
		result = ckt_ipc_map_block(worker, import, here, 0);
	if (result) {
		free(import);
		return result;
	}
	ckt_ipc_enter_import(import);
	struct ckt_ipc_mem_open_res res = {.address = import->id, .size = import->size};
	ckt_ipc_mem_open_res_put(ckt_wcall_results(call, ckt_ipc_mem_open_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* The client has waited for the work that uses it. */
int ckt_worker_ipc_mem_close(struct ckt_wcall *call)
{
	struct ckt_ipc_mem_close_args args;
	if (!ckt_ipc_mem_close_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_ipc_import *import = remove_import(CKT_IPC_BLOCK, args.address);
	if (!import)
		return CUDA_ERROR_INVALID_VALUE;
	drop(call->worker, import);
	return CUDA_SUCCESS;
}

int ckt_worker_physical_export(struct ckt_wcall *call)
{
	struct ckt_physical_export_args args;
	struct ckt_ipc_export *e;
	if (!ckt_physical_export_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&call->worker->objects, args.physical, CKT_KIND_PHYSICAL);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_ipc_handle handle = new_handle(call, CKT_IPC_PHYSICAL, object->id);
	CUresult result = ckt_ipc_export_physical(object, &handle, &e);
	if (result)
		return result;
	struct ckt_physical_export_res res = {
		.handle = (const uint8_t *)&e->handle, .handle_len = sizeof e->handle};
	ckt_physical_export_res_put(
		ckt_wcall_results(call, ckt_physical_export_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* A session opens its own memory under the id that it has. */
int ckt_worker_physical_import(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_physical_import_args args;
	struct ckt_physical_import_res res = {0};
	uint64_t piece;
	if (!ckt_physical_import_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_ipc_import *import =
		new_import(worker, args.handle, args.handle_len, CKT_IPC_PHYSICAL);
	if (!import)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_ipc_export *own =
		ckt_ipc_find_secret(CKT_IPC_PHYSICAL, import->handle.secret);
	if (own) {
		res.id = own->id;
		free(import);
	} else {
		import->id = args.id;
		CUresult result = import_memory(worker, import, &piece);
		if (!result)
			result = ckt_ipc_make_physical(worker, import, piece);
		if (result) {
			free(import);
			return result;
		}
		ckt_ipc_enter_import(import);
		res = (struct ckt_physical_import_res){
			.id = args.id, .size = import->whole, .device = import->device};
	}
	ckt_physical_import_res_put(
		ckt_wcall_results(call, ckt_physical_import_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_ipc_event_get(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ipc_event_get_args args;
	struct ckt_ipc_export *e;
	if (!ckt_ipc_event_get_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, args.event, CKT_KIND_EVENT);
	if (!object || object->event.imported)
		return CUDA_ERROR_INVALID_HANDLE;
	struct ckt_ipc_handle handle = new_handle(call, CKT_IPC_EVENT, object->id);
	CUresult result = ckt_ipc_export_event(object, &handle, &e);
	if (result)
		return result;
	struct ckt_ipc_event_get_res res = {
		.handle = (const uint8_t *)&e->handle, .handle_len = sizeof e->handle};
	ckt_ipc_event_get_res_put(ckt_wcall_results(call, ckt_ipc_event_get_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_ipc_event_open(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ipc_event_open_args args;
	struct ckt_ipc_answer answer;
	int fd;
	if (!ckt_ipc_event_open_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct ckt_ipc_import *import =
		new_import(worker, args.handle, args.handle_len, CKT_IPC_EVENT);
	if (!import || !fetch(worker, &import->handle, &answer, &fd)) {
		free(import);
		return CUDA_ERROR_MAP_FAILED;
	}
	import->id = args.id;
	CUresult result = ckt_ipc_make_event(worker, import, &answer.event, fd);
	if (result)
		free(import);
	else
		ckt_ipc_enter_import(import);
	return result;
}
