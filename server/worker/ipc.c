/* Memory and events shared between sessions; see ipc.h. */
#include "server/worker/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/log.h"
#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/handlers.h"
#include "server/worker/worker.h"

enum { TALK_MS = 2000, EXPORTS_MAX = 4096 };

struct question {
	char magic[8];
	uint8_t secret[CKT_IPC_SECRET];
	uint32_t uid;
	uint32_t kind;
};

struct answer {
	uint32_t found;
	uint32_t pad;
	uint64_t whole;			/* bytes behind the descriptor */
	uint64_t offset, size;		/* of the allocation */
	CUipcEventHandle event;		/* the driver's: of an event, which has no descriptor */
};

struct export {
	struct export *next;
	uint64_t id;			/* address of a block, or physical memory, or an event */
	uint64_t context;
	uint32_t kind;
	uint8_t secret[CKT_IPC_SECRET];
	int fd;				/* -1: none */
	struct answer answer;
};

struct import {
	struct import *next;
	uint64_t address;		/* the program's; the mapping begins `offset` before it */
	uint64_t context;
	uint64_t offset, whole;
	uint64_t piece;
	unsigned device;
};

static struct {
	pthread_mutex_t lock;		/* exports */
	struct export *exports;
	unsigned export_count;
	struct import *imports;
	unsigned physicals, events;	/* imported ones that live */
	int fd;
	char name[CKT_IPC_SOCKET];
} ipc = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- The owner's side */

int ckt_ipc_listen(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(sa_family_t);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Bound to no name, it gets one from the kernel that nobody else can have meanwhile. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16))
		goto none;
	size = sizeof address;
	if (getsockname(fd, (struct sockaddr *)&address, &size) || size <= sizeof(sa_family_t) + 1 || size - sizeof(sa_family_t) - 1 > sizeof ipc.name)
		goto none;
	memcpy(ipc.name, address.sun_path + 1, size - sizeof(sa_family_t) - 1);
	return ipc.fd = fd;
none:
	ckt_debug("no socket for shared memory: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool same_user(int connection)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
}

static void limit_wait(int connection)
{
	struct timeval limit = {.tv_sec = TALK_MS / 1000};
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static bool same_secret(const uint8_t *a, const uint8_t *b)
{
	unsigned difference = 0;
	for (unsigned i = 0; i < CKT_IPC_SECRET; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

static void send_answer(int connection, const struct answer *answer, int fd)
{
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = (void *)answer, .iov_len = sizeof *answer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_net_fd_put(&message, &room, fd);
	sendmsg(connection, &message, MSG_NOSIGNAL);
}

void ckt_ipc_serve(struct ckt_worker *worker)
{
	struct question question;
	struct answer answer = {0};
	int fd = -1, connection = accept4(ipc.fd, NULL, NULL, SOCK_CLOEXEC);
	if (connection < 0)
		return;
	limit_wait(connection);
	pthread_mutex_lock(&worker->mail_lock);
	uint32_t uid = worker->uid;
	pthread_mutex_unlock(&worker->mail_lock);
	/* The asking worker speaks for its session's user; workers of one server run as one. */
	if (same_user(connection) && recv(connection, &question, sizeof question, MSG_TRUNC) == sizeof question &&
	    memcmp(question.magic, CKT_IPC_MAGIC, sizeof question.magic) == 0 && question.uid == uid) {
		pthread_mutex_lock(&ipc.lock);
		for (struct export *e = ipc.exports; e; e = e->next)
			if (e->kind == question.kind && same_secret(e->secret, question.secret)) {
				answer = e->answer;
				fd = e->fd < 0 ? -1 : fcntl(e->fd, F_DUPFD_CLOEXEC, 3);
				answer.found = fd >= 0 || e->fd < 0;
			}
		pthread_mutex_unlock(&ipc.lock);
		send_answer(connection, &answer, fd);
	}
	if (fd >= 0)
		close(fd);
	close(connection);
}

static struct export *find_export(uint32_t kind, uint64_t id)
{
	struct export *e = ipc.exports;
	while (e && (e->id != id || e->kind != kind))
		e = e->next;
	return e;
}

/* Takes over the descriptor, -1 for none. */
static CUresult enter(struct export entry, struct export **ret_export)
{
	struct export *e = malloc(sizeof *e);
	CUresult result = e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (!result && getrandom(entry.secret, sizeof entry.secret, 0) != sizeof entry.secret)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (result) {
		if (entry.fd >= 0)
			close(entry.fd);
		free(e);
		return result;
	}
	pthread_mutex_lock(&ipc.lock);
	*e = entry;
	e->next = ipc.exports;
	ipc.exports = e;
	ipc.export_count++;
	pthread_mutex_unlock(&ipc.lock);
	*ret_export = e;
	return CUDA_SUCCESS;
}

static void put_handle(const struct ckt_worker *worker, const struct export *e, struct ckt_ipc_handle *ret)
{
	*ret = (struct ckt_ipc_handle){.kind = e->kind};
	memcpy(ret->magic, CKT_IPC_MAGIC, sizeof ret->magic);
	memcpy(ret->session, worker->session, sizeof ret->session);
	memcpy(ret->socket, ipc.name, sizeof ret->socket);
	memcpy(ret->secret, e->secret, sizeof ret->secret);
}

/* The entry of what was exported before, or a new one. */
static CUresult export_memory(struct ckt_worker *worker, uint32_t kind, uint64_t id, uint64_t context, uint64_t piece, const struct answer *answer,
			      struct ckt_ipc_handle *ret)
{
	struct export *e = find_export(kind, id);
	if (!e) {
		int fd;
		if (ipc.fd < 0 || !ckt_driver.cuMemExportToShareableHandle || ipc.export_count >= EXPORTS_MAX)
			return CKT_WORKER_UNSUPPORTED("memory for other processes: too much of it, or no server that shares");
		CUresult result = ckt_driver.cuMemExportToShareableHandle(&fd, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		if (!result)
			result = enter((struct export){.id = id, .context = context, .kind = kind, .fd = fd, .answer = *answer}, &e);
		if (result)
			return result;
	}
	put_handle(worker, e, ret);
	return CUDA_SUCCESS;
}

static void forget(bool (*gone)(const struct export *, uint64_t), uint64_t what)
{
	pthread_mutex_lock(&ipc.lock);
	for (struct export **place = &ipc.exports; *place;) {
		struct export *e = *place;
		if (gone(e, what)) {
			*place = e->next;
			ipc.export_count--;
			if (e->fd >= 0)
				close(e->fd);
			free(e);
		} else {
			place = &e->next;
		}
	}
	pthread_mutex_unlock(&ipc.lock);
}

static bool is_it(const struct export *e, uint64_t id)
{
	return e->id == id;
}

static bool is_of(const struct export *e, uint64_t context)
{
	return e->kind == CKT_IPC_BLOCK && e->context == context;
}

void ckt_ipc_forget(uint64_t address_or_id)
{
	if (ipc.export_count)
		forget(is_it, address_or_id);
}

/* ---- The other side */

/* False where it is not to be had.  *ret_fd: -1 for an event. */
static bool receive(int connection, uint32_t kind, struct answer *ret, int *ret_fd)
{
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = ret, .iov_len = sizeof *ret};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_net_fd_expect(&message, &room);
	ssize_t n = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
	int fd = n < 0 ? -1 : ckt_net_fd_take(&message);
	bool good = n == sizeof *ret && ret->found && (fd >= 0) == (kind != CKT_IPC_EVENT);
	if (kind != CKT_IPC_EVENT)
		good &= ret->whole && ret->whole % CKT_MEMORY_EXTENT == 0 && ret->offset <= ret->whole && ret->size &&
			ret->size <= ret->whole - ret->offset;
	if (!good && fd >= 0)
		close(fd);
	*ret_fd = fd;
	return good;
}

/* Asks the owner's worker. */
static bool fetch(struct ckt_worker *worker, const struct ckt_ipc_handle *handle, struct answer *ret, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strnlen(handle->socket, sizeof handle->socket);
	bool got = false;
	int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connection < 0)
		return false;
	limit_wait(connection);
	memcpy(address.sun_path + 1, handle->socket, length);
	struct question question = {.kind = handle->kind};
	memcpy(question.magic, CKT_IPC_MAGIC, sizeof question.magic);
	memcpy(question.secret, handle->secret, sizeof question.secret);
	pthread_mutex_lock(&worker->mail_lock);
	question.uid = worker->uid;
	pthread_mutex_unlock(&worker->mail_lock);
	if (length && connect(connection, (struct sockaddr *)&address, (socklen_t)(sizeof(sa_family_t) + 1 + length)) == 0 && same_user(connection) &&
	    send(connection, &question, sizeof question, MSG_NOSIGNAL) == sizeof question)
		got = receive(connection, handle->kind, ret, ret_fd);
	close(connection);
	return got;
}

/* The session's number of the GPU that the memory lies on; the one given where the driver does not tell, or names another. */
static unsigned device_of(struct ckt_worker *worker, uint64_t piece, unsigned otherwise)
{
	CUmemAllocationProp prop = {0};
	if (ckt_driver.cuMemGetAllocationPropertiesFromHandle && !ckt_driver.cuMemGetAllocationPropertiesFromHandle(&prop, piece))
		for (unsigned d = 0; d < worker->device_count; d++)
			if (worker->devices[d].ordinal == prop.location.id)
				return d;
	return otherwise;
}

static CUresult import_memory(struct ckt_worker *worker, const struct ckt_ipc_handle *handle, uint64_t *ret_piece, struct answer *ret_answer)
{
	CUmemGenericAllocationHandle piece;
	int fd;
	if (!fetch(worker, handle, ret_answer, &fd))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_driver.cuMemImportFromShareableHandle ?
				  ckt_driver.cuMemImportFromShareableHandle(&piece, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) :
				  CKT_WORKER_UNSUPPORTED("memory of other processes with the server's driver");
	close(fd);
	if (!result)
		*ret_piece = piece;
	return result;
}

static CUresult open_block(struct ckt_worker *worker, const struct ckt_ipc_handle *handle, struct import *import, uint64_t *ret_size)
{
	struct answer answer;
	uint64_t base;
	unsigned here = worker->current->ctx.device;
	CUresult result = import_memory(worker, handle, &import->piece, &answer);
	if (result)
		return result;
	import->device = device_of(worker, import->piece, here);
	result = ckt_memory_reserve(&worker->devices[here].memory, answer.whole, 0, 0, &base);
	if (!result) {
		result = ckt_driver.cuMemMap(base, answer.whole, 0, import->piece, 0);
		if (!result && (result = ckt_window_give_access(worker, import->device, base, answer.whole)))
			ckt_driver.cuMemUnmap(base, answer.whole);
		if (result)
			ckt_memory_unreserve(&worker->devices[here].memory, base, answer.whole);
	}
	if (result) {
		ckt_driver.cuMemRelease(import->piece);
		return result;
	}
	import->address = base + answer.offset;
	import->offset = answer.offset;
	import->whole = answer.whole;
	import->context = worker->current->id;
	*ret_size = answer.size;
	return CUDA_SUCCESS;
}

static void drop(struct ckt_worker *worker, struct import *import)
{
	uint64_t base = import->address - import->offset;
	ckt_driver.cuMemUnmap(base, import->whole);
	ckt_driver.cuMemRelease(import->piece);
	ckt_memory_unreserve(&ckt_worker_device_of(worker, base)->memory, base, import->whole);
	free(import);
}

void ckt_ipc_forget_context(struct ckt_worker *worker, uint64_t context)
{
	if (ipc.export_count)
		forget(is_of, context);
	for (struct import **place = &ipc.imports; *place;) {
		struct import *import = *place;
		if (import->context == context) {
			*place = import->next;
			drop(worker, import);
		} else {
			place = &import->next;
		}
	}
}

bool ckt_ipc_obstacle(char *ret_message, size_t message_size)
{
	if (!ipc.export_count && !ipc.imports && !ipc.physicals && !ipc.events)
		return false;
	snprintf(ret_message, message_size, "the session shares memory with other processes, or events (cudaIpcGetMemHandle, cudaIpcOpenMemHandle, "
		 "cuMemExportToShareableHandle, cudaIpcGetEventHandle): it must free what it exported and close what it opened first");
	return true;
}

void ckt_ipc_physical_gone(void)
{
	ipc.physicals--;
}

void ckt_ipc_event_gone(void)
{
	ipc.events--;
}

/* ---- Handlers */

int ckt_worker_ipc_mem_get(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ipc_mem_get_args args;
	struct ckt_ipc_handle handle;
	struct answer answer = {0};
	uint64_t piece, extent, context;
	if (!ckt_ipc_mem_get_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_device *device = ckt_worker_device_of(worker, args.address);
	if (!device || !ckt_memory_locate(&device->memory, args.address, &answer.size, &context, &extent, &answer.whole, &piece))
		return CUDA_ERROR_INVALID_VALUE;
	answer.offset = args.address - extent;
	CUresult result = export_memory(worker, CKT_IPC_BLOCK, args.address, context, piece, &answer, &handle);
	struct ckt_ipc_mem_get_res res = {.handle = (const uint8_t *)&handle, .handle_len = sizeof handle};
	if (!result)
		ckt_ipc_mem_get_res_put(ckt_wcall_results(call, ckt_ipc_mem_get_res_size(&res)), &res);
	return result;
}

static bool read_handle(const uint8_t *bytes, uint32_t length, uint32_t kind, struct ckt_ipc_handle *ret)
{
	if (length != sizeof *ret)
		return false;
	memcpy(ret, bytes, sizeof *ret);
	return memcmp(ret->magic, CKT_IPC_MAGIC, sizeof ret->magic) == 0 && ret->kind == kind;
}

int ckt_worker_ipc_mem_open(struct ckt_wcall *call)
{
	struct ckt_ipc_mem_open_args args;
	struct ckt_ipc_mem_open_res res;
	struct ckt_ipc_handle handle;
	if (!ckt_ipc_mem_open_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!call->worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!read_handle(args.handle, args.handle_len, CKT_IPC_BLOCK, &handle))
		return CUDA_ERROR_INVALID_VALUE;
	struct import *import = calloc(1, sizeof *import);
	if (!import)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = open_block(call->worker, &handle, import, &res.size);
	if (result) {
		free(import);
		return result;
	}
	import->next = ipc.imports;
	ipc.imports = import;
	res.address = import->address;
	ckt_ipc_mem_open_res_put(ckt_wcall_results(call, ckt_ipc_mem_open_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* The client has waited for the work that uses it. */
int ckt_worker_ipc_mem_close(struct ckt_wcall *call)
{
	struct ckt_ipc_mem_close_args args;
	if (!ckt_ipc_mem_close_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	for (struct import **place = &ipc.imports; *place; place = &(*place)->next) {
		struct import *import = *place;
		if (import->address != args.address)
			continue;
		*place = import->next;
		drop(call->worker, import);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

int ckt_worker_physical_export(struct ckt_wcall *call)
{
	struct ckt_physical_export_args args;
	struct ckt_ipc_handle handle;
	if (!ckt_physical_export_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object = ckt_objects_find_kind(&call->worker->objects, args.physical, CKT_KIND_PHYSICAL);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	struct answer answer = {.whole = object->physical.size, .size = object->physical.size};
	CUresult result = export_memory(call->worker, CKT_IPC_PHYSICAL, object->id, object->context, object->physical.handle, &answer, &handle);
	struct ckt_physical_export_res res = {.handle = (const uint8_t *)&handle, .handle_len = sizeof handle};
	if (!result)
		ckt_physical_export_res_put(ckt_wcall_results(call, ckt_physical_export_res_size(&res)), &res);
	return result;
}

/* Its own memory a session gets under the id that it has. */
int ckt_worker_physical_import(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_physical_import_args args;
	struct ckt_physical_import_res res = {0};
	struct ckt_ipc_handle handle;
	struct ckt_object *object;
	struct answer answer;
	uint64_t piece;
	if (!ckt_physical_import_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!read_handle(args.handle, args.handle_len, CKT_IPC_PHYSICAL, &handle))
		return CUDA_ERROR_INVALID_VALUE;
	for (struct export *e = ipc.exports; e && !res.id; e = e->next)
		if (e->kind == CKT_IPC_PHYSICAL && same_secret(e->secret, handle.secret))
			res.id = e->id;
	if (!res.id) {
		CUresult result = import_memory(worker, &handle, &piece, &answer);
		if (!result && (result = ckt_objects_add(&worker->objects, args.id, CKT_KIND_PHYSICAL, false, &object)))
			ckt_driver.cuMemRelease(piece);
		if (result)
			return result;
		object->physical.device = device_of(worker, piece, worker->current ? worker->current->ctx.device : 0);
		object->physical.size = answer.whole;
		object->physical.handle = piece;
		object->physical.imported = true;
		ipc.physicals++;
		res.id = args.id;
		res.size = answer.whole;
		res.device = object->physical.device;
	}
	ckt_physical_import_res_put(ckt_wcall_results(call, ckt_physical_import_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_ipc_event_get(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ipc_event_get_args args;
	struct ckt_ipc_handle handle;
	if (!ckt_ipc_event_get_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, args.event, CKT_KIND_EVENT);
	if (!object || object->event.imported)
		return CUDA_ERROR_INVALID_HANDLE;
	struct export *e = find_export(CKT_IPC_EVENT, object->id);
	if (!e) {
		struct export entry = {.id = object->id, .kind = CKT_IPC_EVENT, .fd = -1};
		if (ipc.fd < 0 || !ckt_driver.cuIpcGetEventHandle || ipc.export_count >= EXPORTS_MAX)
			return CKT_WORKER_UNSUPPORTED("an event for other processes: too many of them, or no server that shares");
		CUresult result = ckt_driver.cuIpcGetEventHandle(&entry.answer.event, object->real);
		if (!result)
			result = enter(entry, &e);
		if (result)
			return result;
	}
	put_handle(worker, e, &handle);
	struct ckt_ipc_event_get_res res = {.handle = (const uint8_t *)&handle, .handle_len = sizeof handle};
	ckt_ipc_event_get_res_put(ckt_wcall_results(call, ckt_ipc_event_get_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_ipc_event_open(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ipc_event_open_args args;
	struct ckt_ipc_handle handle;
	struct ckt_object *object;
	struct answer answer;
	CUevent event;
	int fd;
	if (!ckt_ipc_event_open_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ckt_driver.cuIpcOpenEventHandle)
		return CKT_WORKER_UNSUPPORTED("an event of another process with the server's driver");
	if (!read_handle(args.handle, args.handle_len, CKT_IPC_EVENT, &handle) || !fetch(worker, &handle, &answer, &fd))
		return CUDA_ERROR_MAP_FAILED;
	CUresult result = ckt_driver.cuIpcOpenEventHandle(&event, answer.event);
	if (result)
		return result;
	result = ckt_objects_add(&worker->objects, args.id, CKT_KIND_EVENT, false, &object);
	if (result) {
		ckt_driver.cuEventDestroy_v2(event);
		return result;
	}
	object->real = event;
	object->context = worker->current->id;
	object->event.flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
	object->event.imported = true;
	ipc.events++;
	return CUDA_SUCCESS;
}
