/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving the GPU together with the sessions that memory is shared with; see ipc.h.
 *
 *	all stand still -> each gives up what it opened, and closes the descriptors of its exports
 *	-> each leaves -> each comes in, and exports again under the same secrets -> each opens again what it had
 *
 * The entries stay meanwhile, so that the sessions find each other, and what they had.  Events stay: they hold
 * no memory of the GPU.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/ipc/ipc_state.h"
#include "server/worker/memory/window.h"
#include "server/worker/objects/device.h"
#include "server/worker/session/start.h"

bool ckt_ipc_shares(void)
{
	return ckt_ipc.export_count || ckt_ipc.imports;
}

bool ckt_ipc_owns(void)
{
	return ckt_ipc.export_count != 0;
}

static void set_together(bool together)
{
	pthread_mutex_lock(&ckt_ipc.lock);
	ckt_ipc.together = together;
	ckt_ipc.wanted = false;
	pthread_mutex_unlock(&ckt_ipc.lock);
}

void ckt_ipc_together_begin(void)
{
	set_together(true);
}

void ckt_ipc_together_end(void)
{
	set_together(false);
}

void ckt_ipc_together_lead(bool led)
{
	pthread_mutex_lock(&ckt_ipc.lock);
	ckt_ipc.alone = !led;
	pthread_mutex_unlock(&ckt_ipc.lock);
}

bool ckt_ipc_together_stands(void)
{
	pthread_mutex_lock(&ckt_ipc.lock);
	bool stands = ckt_ipc.together && !ckt_ipc.alone;
	pthread_mutex_unlock(&ckt_ipc.lock);
	return stands;
}

bool ckt_ipc_together_wanted(void)
{
	return ckt_ipc.wanted;
}

bool ckt_ipc_exports(uint64_t address, uint64_t size)
{
	bool found = false;
	pthread_mutex_lock(&ckt_ipc.lock);
	for (const struct ckt_ipc_export *e = ckt_ipc.exports; e && !found; e = e->next)
		found = e->handle.kind == CKT_IPC_BLOCK && e->id - e->answer.offset == address &&
			e->answer.whole == size;
	pthread_mutex_unlock(&ckt_ipc.lock);
	return found;
}

/* ---- Whether all stand still */

static bool is_own(const struct ckt_worker *worker, const char session[CKT_IPC_SESSION])
{
	return memcmp(worker->session, session, CKT_IPC_SESSION) == 0;
}

static int runs_on(const char session[CKT_IPC_SESSION], char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size,
		"the session shares memory with session %.12s, which cannot leave with it now",
		session);
	return -EBUSY;
}

static int check_owner(struct ckt_worker *worker, const struct ckt_ipc_import *import,
	char *ret_message, size_t message_size)
{
	const struct ckt_ipc_question question =
		ckt_ipc_question(worker, CKT_IPC_STILL, import->handle.kind, import->handle.secret);
	struct ckt_ipc_answer answer = {0};
	int error = ckt_ipc_ask_session(import->handle.session, &question, &answer, NULL);
	if (error == -ENOTCONN)
		return runs_on(import->handle.session, ret_message, message_size);
	if (error || answer.found != CKT_IPC_HERE) {
		snprintf(ret_message, message_size,
			"the session has opened memory that session %.12s has since freed, so nobody could bring it back: have the program close it first",
			import->handle.session);
		return -EBUSY;
	}
	return answer.held & CKT_IPC_TOGETHER
		? 0
		: runs_on(import->handle.session, ret_message, message_size);
}

/* 0 and what it has open of ours, or -errno; -ENOENT: it is gone. */
static int ask_taker(struct ckt_worker *worker, const struct ckt_ipc_taker *one,
	struct ckt_ipc_answer *ret_answer)
{
	const struct ckt_ipc_question question = ckt_ipc_question(worker, CKT_IPC_OPEN, 0, NULL);
	*ret_answer = (struct ckt_ipc_answer){0};
	return is_own(worker, one->session)
		? -ENOENT
		: ckt_ipc_ask_session(one->session, &question, ret_answer, NULL);
}

/* One that has closed everything, or is gone, does not matter. */
static int check_takers(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	struct ckt_ipc_answer answer;
	struct ckt_ipc_taker one;
	for (size_t i = 0; ckt_ipc_nth_taker(i, &one); i++) {
		int error = ask_taker(worker, &one, &answer);
		if (error == -ENOENT || (!error && answer.found == CKT_IPC_NONE))
			continue;
		if (error || !(answer.held & CKT_IPC_TOGETHER))
			return runs_on(one.session, ret_message, message_size);
	}
	return 0;
}

int ckt_ipc_together_check(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	int error = 0;
	for (const struct ckt_ipc_import *i = ckt_ipc.imports; i && !error; i = i->next)
		if (i->handle.kind != CKT_IPC_EVENT && !i->lost &&
			!is_own(worker, i->handle.session))
			error = check_owner(worker, i, ret_message, message_size);
	return error ? error : check_takers(worker, ret_message, message_size);
}

/* ---- Out */

static struct ckt_object *physical_of(struct ckt_worker *worker, uint64_t id)
{
	return ckt_objects_find_kind(&worker->objects, id, CKT_KIND_PHYSICAL);
}

static void give_up(struct ckt_worker *worker, struct ckt_ipc_import *import)
{
	struct ckt_object *object =
		import->handle.kind == CKT_IPC_PHYSICAL ? physical_of(worker, import->id) : NULL;
	if (object) {
		ckt_vmm_unmap_all(worker, import->id);
		ckt_driver.cuMemRelease(object->physical.handle);
		object->physical.away = true;
	} else if (import->handle.kind == CKT_IPC_BLOCK) {
		ckt_driver.cuMemUnmap(import->id - import->offset, import->whole);
		ckt_driver.cuMemRelease(import->piece);
	} else {
		return;
	}
	import->away = true;
}

void ckt_ipc_together_drop(struct ckt_worker *worker)
{
	pthread_mutex_lock(&ckt_ipc.lock);
	for (struct ckt_ipc_export *e = ckt_ipc.exports; e; e = e->next)
		if (e->handle.kind != CKT_IPC_EVENT && e->fd >= 0) {
			close(e->fd);
			e->fd = -1;
		}
	pthread_mutex_unlock(&ckt_ipc.lock);
	for (struct ckt_ipc_import *import = ckt_ipc.imports; import; import = import->next)
		if (!import->away)
			give_up(worker, import);
}

/* ---- In */

/* The physical memory behind it; 0: it is not there. */
static uint64_t piece_of(struct ckt_worker *worker, const struct ckt_ipc_export *e)
{
	uint64_t size, owner, extent, whole, piece;
	if (e->handle.kind == CKT_IPC_PHYSICAL) {
		const struct ckt_object *object = physical_of(worker, e->id);
		return object && !object->physical.away ? object->physical.handle : 0;
	}
	struct ckt_worker_device *device = ckt_worker_device_of(worker, e->id);
	return device &&
			ckt_memory_locate(
				&device->memory, e->id, &size, &owner, &extent, &whole, &piece) &&
			e->id - extent == e->answer.offset && whole == e->answer.whole
		? piece
		: 0;
}

/* What belongs to others, and was passed on, comes when that is here. */
void ckt_ipc_together_export(struct ckt_worker *worker)
{
	for (struct ckt_ipc_export *e = ckt_ipc.exports; e; e = e->next) {
		int fd;
		uint64_t piece =
			e->handle.kind == CKT_IPC_EVENT || e->fd >= 0 ? 0 : piece_of(worker, e);
		if (!piece)
			continue;
		CUresult result = ckt_driver.cuMemExportToShareableHandle(
			&fd, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		if (result) {
			ckt_worker_note(worker,
				"memory that it shared cannot be shared again: CUDA error %d",
				result);
			continue;
		}
		pthread_mutex_lock(&ckt_ipc.lock);
		e->fd = fd;
		pthread_mutex_unlock(&ckt_ipc.lock);
	}
}

static CUresult map_block(struct ckt_worker *worker, const struct ckt_ipc_import *import)
{
	uint64_t base = import->id - import->offset;
	CUresult result = ckt_driver.cuMemMap(base, import->whole, 0, import->piece, 0);
	if (!result &&
		(result = ckt_window_give_access(worker, import->device, base, import->whole)))
		ckt_driver.cuMemUnmap(base, import->whole);
	return result;
}

static CUresult map_physical(
	struct ckt_worker *worker, const struct ckt_ipc_import *import, uint64_t piece)
{
	struct ckt_object *object = physical_of(worker, import->id);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	object->physical.handle = piece;
	object->physical.away = false;
	CUresult result = ckt_vmm_map_again(worker, import->id);
	object->physical.away = result != CUDA_SUCCESS;
	return result;
}

/* fd is the callee's. */
static CUresult take(struct ckt_worker *worker, struct ckt_ipc_import *import, int fd)
{
	uint64_t piece;
	CUresult result = ckt_ipc_take_memory(worker, fd, import, &piece);
	if (result)
		return result;
	import->piece = piece;
	result = import->handle.kind == CKT_IPC_BLOCK ? map_block(worker, import)
						      : map_physical(worker, import, piece);
	if (result)
		ckt_driver.cuMemRelease(piece);
	else
		import->away = false;
	return result;
}

static int lose(struct ckt_worker *worker, struct ckt_ipc_import *import, const char *why)
{
	import->lost = true;
	ckt_worker_note(worker, "memory that it had opened of session %.12s is gone: %s",
		import->handle.session, why);
	return 0;
}

/* Nobody has its owner's name: a server that has just begun may not know it yet. */
static int await_owner(struct ckt_worker *worker, struct ckt_ipc_import *import)
{
	int64_t now = ckt_net_now_ms();
	if (!import->absent_since_ms)
		import->absent_since_ms = now;
	return now - import->absent_since_ms > ckt_ipc_absent_ms
		? lose(worker, import, "that session ended while it was off the GPU")
		: -EAGAIN;
}

static int fetch(struct ckt_worker *worker, struct ckt_ipc_import *import)
{
	const struct ckt_ipc_question question =
		ckt_ipc_question(worker, CKT_IPC_AGAIN, import->handle.kind, import->handle.secret);
	struct ckt_ipc_answer answer = {0};
	int fd, error = ckt_ipc_ask_session(import->handle.session, &question, &answer, &fd);
	if (error == -ENOENT)
		return await_owner(worker, import);
	import->absent_since_ms = 0;
	if (error || answer.found == CKT_IPC_LATER)
		return -EAGAIN;
	bool same = ckt_ipc_answer_good(&answer, import->handle.kind, fd) &&
		answer.whole == import->whole && answer.offset == import->offset;
	CUresult result = same ? take(worker, import, fd) : CUDA_ERROR_INVALID_VALUE;
	if (!same && fd >= 0)
		close(fd);
	return result ? lose(worker, import,
				same ? "the driver does not map it again"
				     : "that session does not share it any more")
		      : 0;
}

bool ckt_ipc_together_opened(struct ckt_worker *worker)
{
	struct ckt_ipc_answer answer;
	struct ckt_ipc_taker one;
	for (size_t i = 0; ckt_ipc_nth_taker(i, &one); i++) {
		int error = ask_taker(worker, &one, &answer);
		if (error ? error != -ENOENT : answer.found == CKT_IPC_LATER)
			return false;
	}
	return true;
}

int ckt_ipc_together_fetch(struct ckt_worker *worker)
{
	int error = 0;
	for (struct ckt_ipc_import *import = ckt_ipc.imports; import; import = import->next)
		if (import->away && !import->lost && fetch(worker, import))
			error = -EAGAIN;
	ckt_ipc_together_export(worker);
	return error;
}
