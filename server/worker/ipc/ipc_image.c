/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that share memory and events, in images; see ipc.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/ipc/ipc_state.h"
#include "server/worker/memory/vmm_image.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/device.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/session/group.h"

/* A session that left a notice may have much to read. */
enum { LOADING_MS = 1200000, LOOK_NS = 5000000, NAMED_MAX = 4 };

/*
 * Sessions of a job are restored in parallel, so an owner that leaves no notice for this long will
 * not come.
 */
unsigned ckt_ipc_absent_ms = 15000;

_Static_assert(CKT_IMAGE_SHARED_HANDLE == CKT_IPC_HANDLE, "one size");

/* ---- Whether a session can be saved */

/* Sessions that share something with this one and are not frozen with it. */
struct others {
	char named[NAMED_MAX][CKT_IPC_SESSION + 1];
	unsigned count;
};

static void add_other(struct others *others, const char session[CKT_IPC_SESSION])
{
	for (unsigned i = 0; i < others->count && i < NAMED_MAX; i++)
		if (memcmp(others->named[i], session, CKT_IPC_SESSION) == 0)
			return;
	if (others->count < NAMED_MAX) {
		memcpy(others->named[others->count], session, CKT_IPC_SESSION);
		others->named[others->count][CKT_IPC_SESSION] = 0;
	}
	others->count++;
}

static bool stands_with(struct ckt_worker *worker, const struct ckt_ipc_answer *other)
{
	pthread_mutex_lock(&worker->mail_lock);
	const char *with = ckt_hold_with(worker);
	bool result = worker->checkpoint.hold.wanted && other->held & CKT_IPC_WITH_JOB && *with &&
		strcmp(with, other->job) == 0;
	pthread_mutex_unlock(&worker->mail_lock);
	return result;
}

static bool is_own(const struct ckt_worker *worker, const char session[CKT_IPC_SESSION])
{
	return memcmp(worker->session, session, CKT_IPC_SESSION) == 0;
}

/* Asks those that have opened something; forgets those that have closed everything, or are gone. */
static void look_at_takers(struct ckt_worker *worker, struct others *others)
{
	struct ckt_ipc_question question = ckt_ipc_question(worker, CKT_IPC_OPEN, 0, NULL);
	for (size_t i = 0;;) {
		struct ckt_ipc_taker taker;
		struct ckt_ipc_answer answer;
		pthread_mutex_lock(&ckt_ipc.lock);
		bool more = i < ckt_ipc.taker_count;
		if (more)
			taker = ckt_ipc.takers[i];
		pthread_mutex_unlock(&ckt_ipc.lock);
		if (!more)
			return;
		int error = is_own(worker, taker.session)
			? -ESRCH
			: ckt_ipc_ask_session(taker.session, &question, &answer, NULL);
		/* Without a server to ask it may still have something. */
		if (error == -ENOTCONN || (!error && answer.found != CKT_IPC_NONE)) {
			if (error || !stands_with(worker, &answer))
				add_other(others, taker.session);
			i++;
			continue;
		}
		pthread_mutex_lock(&ckt_ipc.lock);
		/*
		 * It may have fetched something again meanwhile, but then under another number: the
		 * last entry took its place.
		 */
		if (i < ckt_ipc.taker_count &&
			memcmp(&ckt_ipc.takers[i], &taker, sizeof taker) == 0)
			ckt_ipc.takers[i] = ckt_ipc.takers[--ckt_ipc.taker_count];
		pthread_mutex_unlock(&ckt_ipc.lock);
	}
}

/* Checks the owners of everything that is open here.  False: one of them has freed it. */
static bool look_at_owners(
	struct ckt_worker *worker, struct others *others, char *ret_message, size_t message_size)
{
	for (struct ckt_ipc_import *import = ckt_ipc.imports; import; import = import->next) {
		struct ckt_ipc_answer answer = {0};
		struct ckt_ipc_question question = ckt_ipc_question(
			worker, CKT_IPC_STILL, import->handle.kind, import->handle.secret);
		if (is_own(worker, import->handle.session))
			continue;
		if (ckt_ipc_ask_session(import->handle.session, &question, &answer, NULL) ||
			answer.found != CKT_IPC_HERE) {
			snprintf(ret_message, message_size,
				"the session shares memory with other processes: it "
				"has opened %s that session %.12s has since freed, so "
				"nobody can recreate it; have the program close it "
				"first",
				import->handle.kind == CKT_IPC_EVENT ? "an event" : "memory",
				import->handle.session);
			return false;
		}
		import->copy = answer.copy;
		if (!stands_with(worker, &answer))
			add_other(others, import->handle.session);
	}
	return true;
}

bool ckt_ipc_is_shared(char *ret_message, size_t message_size)
{
	if (ckt_ipc.together || !ckt_ipc_shares())
		return false;
	snprintf(ret_message, message_size,
		"the session shares memory or events with other processes "
		"(cudaIpcGetMemHandle, cudaIpcOpenMemHandle, "
		"cuMemExportToShareableHandle, cudaIpcGetEventHandle): it must free "
		"what it exported and close what it opened first, or leave the GPU "
		"together with them, by cricketctl swap out");
	return true;
}

bool ckt_ipc_obstacle(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	struct others others = {.count = 0};
	char job[CKT_JOB_NAME_MAX + 1], names[NAMED_MAX * (CKT_IPC_SESSION + 2) + 32] = "";
	if (ckt_ipc.together || (!ckt_ipc.taker_count && !ckt_ipc.imports))
		return false;
	if (!look_at_owners(worker, &others, ret_message, message_size))
		return true;
	look_at_takers(worker, &others);
	if (!others.count)
		return false;
	for (unsigned i = 0, n = 0; i < others.count && i < NAMED_MAX; i++)
		n += (unsigned)snprintf(
			names + n, sizeof names - n, "%s%s", i ? ", " : "", others.named[i]);
	if (others.count > NAMED_MAX)
		strcat(names, " and others");
	pthread_mutex_lock(&worker->mail_lock);
	memcpy(job, worker->job, sizeof job);
	bool held = worker->checkpoint.hold.wanted, cut = *worker->checkpoint.hold.cut;
	pthread_mutex_unlock(&worker->mail_lock);
	if (cut)
		snprintf(ret_message, message_size,
			"the session shares memory with the processes of session %s, "
			"which is not of the same cut",
			names);
	else if (held)
		snprintf(ret_message, message_size,
			"the session shares memory with the processes of session %s, "
			"which is not held with job '%s': start all of them with "
			"CRICKET_JOB=%s, or have them close what they share",
			names, job, job);
	else
		snprintf(ret_message, message_size,
			"the session shares memory with the processes of session %s "
			"and can be saved only together with them: cricketctl "
			"checkpoint --job %s DIR%s",
			names, *job ? job : "NAME",
			*job ? "" : ", for programs that run with CRICKET_JOB=NAME");
	return true;
}

static void set_closed(bool closed)
{
	pthread_mutex_lock(&ckt_ipc.lock);
	ckt_ipc.closed = closed;
	pthread_mutex_unlock(&ckt_ipc.lock);
}

void ckt_ipc_close(void)
{
	set_closed(true);
}

void ckt_ipc_reopen(void)
{
	set_closed(false);
}

/* ---- Saving */

static int save_rest(struct ckt_saving *s)
{
	ckt_image *image = &s->image;
	size_t imports = 0;
	for (const struct ckt_ipc_import *import = ckt_ipc.imports; import; import = import->next)
		imports++;
	image->shared_exports.shared_exports_val =
		ckt_save_list(s, ckt_ipc.export_count, sizeof(ckt_image_export));
	image->shared_imports.shared_imports_val =
		ckt_save_list(s, imports, sizeof(ckt_image_import));
	if (s->no_memory)
		return ckt_save_has_memory(s);
	for (const struct ckt_ipc_export *e = ckt_ipc.exports; e; e = e->next) {
		ckt_image_export *saved =
			&image->shared_exports
				 .shared_exports_val[image->shared_exports.shared_exports_len++];
		saved->id = e->id;
		memcpy(saved->handle, &e->handle, sizeof saved->handle);
	}
	for (const struct ckt_ipc_import *import = ckt_ipc.imports; import; import = import->next) {
		ckt_image_import *saved =
			&image->shared_imports
				 .shared_imports_val[image->shared_imports.shared_imports_len++];
		*saved = (ckt_image_import){.id = import->id,
			.context = import->context,
			.device = import->device,
			.offset = import->offset,
			.size = import->size,
			.whole = import->whole,
			.copy = import->copy};
		memcpy(saved->handle, &import->handle, sizeof saved->handle);
	}
	/* There is room for one more in every list. */
	if (imports)
		image->mappings.mappings_val[image->mappings.mappings_len++] =
			(ckt_image_mapping){0};
	return 0;
}

/* ---- Loading */

static bool handle_good(const char *bytes, struct ckt_ipc_handle *ret)
{
	memcpy(ret, bytes, sizeof *ret);
	return memcmp(ret->magic, CKT_IPC_MAGIC, sizeof ret->magic) == 0 &&
		ret->kind >= CKT_IPC_BLOCK && ret->kind <= CKT_IPC_EVENT;
}

static int begin(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	struct ckt_ipc_handle handle;
	for (unsigned i = 0; i < image->shared_exports.shared_exports_len; i++)
		if (!handle_good(image->shared_exports.shared_exports_val[i].handle, &handle) ||
			strncmp(handle.session, image->session, sizeof handle.session))
			return ckt_load_refuse(l, -EBADMSG,
				"the image is damaged: memory or an event that the "
				"session shares has no handle");
	for (unsigned i = 0; i < image->shared_imports.shared_imports_len; i++)
		if (!handle_good(image->shared_imports.shared_imports_val[i].handle, &handle) ||
			image->shared_imports.shared_imports_val[i].device >=
				l->worker->device_count)
			return ckt_load_refuse(l, -EBADMSG,
				"the image is damaged: memory or an event that the "
				"session opened has no handle, or no GPU");
	if (!image->shared_exports.shared_exports_len)
		return 0;
	pthread_mutex_lock(&ckt_ipc.lock);
	ckt_ipc.loading = true;
	ckt_ipc.restored_copy = image->copy;
	memcpy(ckt_ipc.session, image->session, strnlen(image->session, sizeof ckt_ipc.session));
	pthread_mutex_unlock(&ckt_ipc.lock);
	const struct ckt_group_name name =
		ckt_group_session(ckt_ipc.session, sizeof ckt_ipc.session);
	int error = ckt_group_claim(&name, NULL);
	if (error)
		ckt_warning("other sessions cannot find what this one shared with them: %s",
			strerror(-error));
	return 0;
}

static int load_export(struct ckt_loading *l, const ckt_image_export *saved, bool imported)
{
	struct ckt_worker *worker = l->worker;
	struct ckt_ipc_handle handle;
	struct ckt_ipc_export *e;
	struct ckt_object *object = NULL;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;
	handle_good(saved->handle, &handle);
	if (handle.kind == CKT_IPC_PHYSICAL) {
		object = ckt_objects_find_kind(&worker->objects, saved->id, CKT_KIND_PHYSICAL);
		/*
		 * Memory of another session that this session passed on is available once this
		 * session has it again.
		 */
		if (object ? object->physical.imported != imported : !imported)
			return 0;
		if (object)
			result = ckt_ipc_export_physical(object, &handle, &e);
	} else if (imported) {
		return 0;
	} else if (handle.kind == CKT_IPC_BLOCK) {
		result = ckt_ipc_export_block(worker, saved->id, &handle, &e);
	} else if ((object = ckt_objects_find_kind(&worker->objects, saved->id, CKT_KIND_EVENT))) {
		result = ckt_worker_use_context(worker, object->context);
		if (!result)
			result = ckt_ipc_export_event(object, &handle, &e);
	}
	return result ? ckt_load_fail(l, result, "what is shared with other processes:", saved->id)
		      : 0;
}

static int load_exports(struct ckt_loading *l, bool imported)
{
	int error = 0;
	for (unsigned i = 0; i < l->image.shared_exports.shared_exports_len && !error; i++)
		error = load_export(l, &l->image.shared_exports.shared_exports_val[i], imported);
	return error;
}

/* Waits until the owner has the memory or event. */
static int fetch(struct ckt_loading *l, const struct ckt_ipc_import *import,
	struct ckt_ipc_answer *ret, int *ret_fd)
{
	struct ckt_ipc_question question = ckt_ipc_question(
		l->worker, CKT_IPC_FETCH, import->handle.kind, import->handle.secret);
	const char *owner = import->handle.session;
	int64_t begun = ckt_net_now_ms();
	bool seen = false;
	question.restoring = true;
	memcpy(question.session, l->image.session,
		strnlen(l->image.session, sizeof question.session));
	for (;;) {
		int error = ckt_ipc_ask_session(owner, &question, ret, ret_fd);
		int64_t passed = ckt_net_now_ms() - begun;
		if (!error && ret->found == CKT_IPC_NONE)
			return ckt_load_refuse(l, -ENOENT,
				"the session had opened %s of session %.12s, but that "
				"session's image does not share it: restore the images "
				"of one checkpoint of the job",
				import->handle.kind == CKT_IPC_EVENT ? "an event" : "memory",
				owner);
		if (!error && ret->found == CKT_IPC_HERE)
			break;
		if ((error && seen) || passed > LOADING_MS)
			return ckt_load_refuse(l, -ENOENT,
				"the session had opened memory or events of session "
				"%.12s, but that session could not be restored",
				owner);
		if (error && passed > ckt_ipc_absent_ms)
			return ckt_load_refuse(l, -ENOENT,
				"the session had opened memory or events of session "
				"%.12s, which is not restored at this server for the "
				"same user: restore all sessions of the job together "
				"(cricketctl restore --job DIR), those that share "
				"memory at one server",
				owner);
		seen |= !error;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	if (ckt_ipc_answer_good(ret, import->handle.kind, *ret_fd) && ret->copy == import->copy &&
		ret->offset == import->offset && ret->size == import->size &&
		ret->whole == import->whole)
		return 0;
	if (*ret_fd >= 0)
		close(*ret_fd);
	*ret_fd = -1;
	return ckt_load_refuse(l, -ESTALE,
		"the session had opened %" PRIu64 " bytes of session %.12s, which now has %" PRIu64
		" bytes there%s: restore the images of one checkpoint of the job",
		import->size, owner, ret->size,
		ret->copy == import->copy ? "" : ", and is restored from an image of another time");
}

static CUresult make(struct ckt_worker *worker, struct ckt_ipc_import *import,
	const struct ckt_ipc_answer *answer, int fd)
{
	uint64_t piece;
	CUresult result = ckt_worker_use_context(
		worker, import->context ? import->context : ckt_handle_primary(import->device));
	if (import->handle.kind == CKT_IPC_EVENT && !result)
		return ckt_ipc_make_event(worker, import, &answer->event, fd);
	uint64_t base = import->id - import->offset;
	struct ckt_worker_device *here =
		import->handle.kind == CKT_IPC_BLOCK ? ckt_worker_device_of(worker, base) : NULL;
	if (!result && import->handle.kind == CKT_IPC_BLOCK && (!here || !base))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result) {
		if (fd >= 0)
			close(fd);
		return result;
	}
	result = ckt_ipc_take_memory(worker, fd, import, &piece);
	if (result)
		return result;
	import->piece = piece;
	return here ? ckt_ipc_map_block(worker, import, (unsigned)(here - worker->devices), base)
		    : ckt_ipc_make_physical(worker, import, piece);
}

static int load_import(struct ckt_loading *l, const ckt_image_import *saved)
{
	struct ckt_ipc_answer answer = {0};
	int fd = -1;
	struct ckt_ipc_import *import = calloc(1, sizeof *import);
	if (!import)
		return ckt_load_refuse(l, -ENOMEM,
			"the worker has no memory for what the session shares with "
			"others");
	*import = (struct ckt_ipc_import){.id = saved->id,
		.context = saved->context,
		.device = saved->device,
		.offset = saved->offset,
		.size = saved->size,
		.whole = saved->whole,
		.copy = saved->copy};
	handle_good(saved->handle, &import->handle);
	int error = fetch(l, import, &answer, &fd);
	if (!error) {
		CUresult result = make(l->worker, import, &answer, fd);
		if (result)
			error = ckt_load_fail(
				l, result, "what was open of another session:", saved->id);
	}
	if (error)
		free(import);
	else
		ckt_ipc_enter_import(import);
	return error;
}

static int load(struct ckt_loading *l)
{
	int error = load_exports(l, false);
	pthread_mutex_lock(&ckt_ipc.lock);
	/*
	 * Only what it passed on for others is still missing: questions for anything else fail at
	 * once, so two sessions do not wait for each other.
	 */
	ckt_ipc.loading = ckt_ipc.export_count < l->image.shared_exports.shared_exports_len;
	pthread_mutex_unlock(&ckt_ipc.lock);
	for (unsigned i = 0; i < l->image.shared_imports.shared_imports_len && !error; i++)
		error = load_import(l, &l->image.shared_imports.shared_imports_val[i]);
	if (!error && l->image.shared_imports.shared_imports_len)
		error = ckt_vmm_load_imported(l);
	if (!error)
		error = load_exports(l, true);
	pthread_mutex_lock(&ckt_ipc.lock);
	ckt_ipc.loading = false;
	pthread_mutex_unlock(&ckt_ipc.lock);
	return error;
}

/*
 * begin: other sessions can find this one once it is certain to be restored.  load: gives others
 * what they had, and takes theirs.
 */
const struct ckt_object_kind ckt_shared_kind = {
	.name = "shared memory",
	.save_rest = save_rest,
	.begin = begin,
	.stage = CKT_LOAD_REST,
	.load_rest = load,
};
