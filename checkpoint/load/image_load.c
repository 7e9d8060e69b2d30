/*
 * Making a session again from an image, in a worker that has just started: everything that can be
 * checked is checked first; any failure ends the process, so nothing of it stays.  The steps have
 * files of their own, load_*.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/fault.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/load/load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/save/chain.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/control_operations.h"

int ckt_load_refuse(struct ckt_loading *l, int error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(l->message, l->message_size, format, args);
	va_end(args);
	return error;
}

int ckt_load_fail(struct ckt_loading *l, CUresult result, const char *what, uint64_t id)
{
	const char *name = NULL;
	ckt_driver.cuGetErrorName(result, &name);
	return ckt_load_refuse(l, -EIO, "%s 0x%llx could not be made again: %s (%d)", what,
		(unsigned long long)id, name ? name : "CUDA error", result);
}

static int told_to_fail(struct ckt_loading *l, enum ckt_worker_fault point)
{
	return ckt_fault_fails(point) ? ckt_load_refuse(l, -EIO, "told to fail") : 0;
}

/* When it was pre-loaded. */
static bool is_loaded(struct ckt_loading *l, const ckt_image_blob *saved)
{
	const struct ckt_blob *blob = ckt_preload_active()
		? ckt_blobs_find(&l->worker->blobs, (const uint8_t *)saved->hash)
		: NULL;
	return blob && blob->size == saved->size;
}

static int load_blobs(struct ckt_loading *l)
{
	struct ckt_blobs *blobs = &l->worker->blobs;
	ckt_image *image = &l->image;
	uint8_t **data = calloc(image->blobs.blobs_len + 1, sizeof *data);
	if (!data)
		return -ENOMEM;
	int result = 0;
	for (unsigned i = 0; i < image->blobs.blobs_len && !result; i++) {
		uint64_t size = image->blobs.blobs_val[i].received;
		if (is_loaded(l, &image->blobs.blobs_val[i]))
			continue;
		if (size > CKT_BLOBS_BYTES_MAX ||
			!ckt_session_operations.charge(size, "modules of an image"))
			result = ckt_load_refuse(l, -ENOMEM,
				"the session's modules take more than this server allows (--session-host-memory)");
		else if (!(data[i] = calloc(size + 1, 1)))
			ckt_session_operations.uncharge(size);
		if (!result && !data[i])
			result = ckt_load_refuse(l, -ENOMEM, "no memory for the session's modules");
	}
	for (unsigned i = 0; i < image->chunks.chunks_len && !result; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		if (chunk->space && chunk->space <= image->blobs.blobs_len &&
			data[chunk->space - 1])
			result = ckt_image_reader_chunk(
				&l->reader, chunk, data[chunk->space - 1] + chunk->address);
		if (result)
			ckt_load_refuse(l, result, "the image is damaged: a module's contents: %s",
				strerror(-result));
	}
	for (unsigned i = 0; i < image->blobs.blobs_len; i++) {
		ckt_image_blob *blob = &image->blobs.blobs_val[i];
		bool refused = result != 0;
		if (!result)
			result = ckt_blobs_piece(blobs, (uint8_t *)blob->hash, blob->size, 0,
				data[i], blob->received);
		if (result == -ENOMEM && !refused)
			ckt_load_refuse(l, result,
				"the session's modules take more than this server allows (--session-host-memory)");
		else if (result && !refused)
			ckt_load_refuse(l, result,
				"the image is damaged: a module is not what its hash says");
		if (data[i])
			ckt_session_operations.uncharge(blob->received);
		free(data[i]);
	}
	free(data);
	return result;
}

/*
 * Programs hold the addresses of a module's variables anywhere, so a variable must lie where it
 * lay, or nobody must know.
 */
static int check_globals(struct ckt_loading *l)
{
	int error = ckt_moved_find(&l->moved, l->worker, &l->image, l->message, l->message_size);
	return error == -ENOMEM
		? ckt_load_refuse(l, error,
			  "the worker has no memory for the list of variables that lie elsewhere")
		: error;
}

static int load_contexts(struct ckt_loading *l)
{
	return ckt_load_objects(l, CKT_LOAD_CONTEXTS);
}

static int load_handles(struct ckt_loading *l)
{
	return ckt_load_objects(l, CKT_LOAD_HANDLES);
}

static int load_rest(struct ckt_loading *l)
{
	return ckt_load_objects(l, CKT_LOAD_REST);
}

static int load_identity(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	ckt_image *image = &l->image;
	snprintf(worker->session, sizeof worker->session, "%s", image->session);
	memcpy(worker->secret_hash, image->secret_hash, sizeof worker->secret_hash);
	worker->has_owner = true;
	/* A client that has seen this one refuses any older copy. */
	worker->generation = image->generation + 1;
	snprintf(worker->program_name, sizeof worker->program_name, "%s", image->program_name);
	snprintf(worker->client, sizeof worker->client, "%s", image->client);
	worker->client_pid = image->client_pid;
	worker->origin.uid = image->uid;
	worker->origin.generation = image->generation;
	memcpy(worker->origin.secret_hash, image->secret_hash, sizeof worker->origin.secret_hash);
	memcpy(worker->origin.key, image->key, sizeof worker->origin.key);
	memcpy(worker->origin.seal, image->seal, sizeof worker->origin.seal);
	worker->copy_before = image->copy;
	worker->started = image->started;
	atomic_store(&worker->replies.executed, image->executed);
	worker->replies.acked = image->acked;
	atomic_store(&worker->deferred, image->deferred);
	for (unsigned i = 0; i < image->replies.replies_len; i++) {
		ckt_image_reply *reply = &image->replies.replies_val[i];
		uint8_t *body = malloc(reply->body.body_len + 1);
		if (!body || ckt_replies_expect(&worker->replies, reply->seq, reply->proc, 0, 0)) {
			free(body);
			return -ENOMEM;
		}
		memcpy(body, reply->body.body_val, reply->body.body_len);
		pthread_mutex_lock(&worker->replies.lock);
		ckt_replies_store(&worker->replies, ckt_replies_find(&worker->replies, reply->seq),
			body, reply->body.body_len, reply->deferred, reply->accept_stat);
		pthread_mutex_unlock(&worker->replies.lock);
	}
	return 0;
}

enum { DECODED_FACTOR = 4 };

/*
 * What the manifest takes while it is read: its bytes, and at most three times as much for what
 * they describe.
 */
static int charge_manifest(struct ckt_loading *l, const int *places)
{
	int64_t bytes = l->worker->memory_count
		? ckt_image_manifest_bytes_open(l->worker->memory_fds[0])
		: ckt_image_manifest_bytes(places[0]);
	l->manifest_bytes = bytes > 0 ? (uint64_t)bytes * DECODED_FACTOR : 0;
	if (ckt_session_operations.charge(l->manifest_bytes, "the manifest of an image"))
		return 0;
	uint64_t mib = (uint64_t)bytes >> 20;
	l->manifest_bytes = 0;
	return ckt_load_refuse(l, -ENOMEM,
		"the image's manifest has %llu MiB, and reading it would take more than this server allows (--session-host-memory)",
		(unsigned long long)mib);
}

/* The brokers of the chain, or the open files of an image in memory. */
static int open_image(struct ckt_loading *l, const int *places, unsigned place_count)
{
	const struct ckt_worker *worker = l->worker;
	int charged = charge_manifest(l, places);
	if (charged)
		return charged;
	if (!worker->memory_count) {
		/* No more than was charged for. */
		int error = ckt_image_read_within(places[0], l->manifest_bytes / DECODED_FACTOR,
			&l->image, l->message, l->message_size);
		return error ? error
			     : ckt_image_reader_init(&l->reader, &l->image, places, place_count,
				       l->message, l->message_size);
	}
	int error = ckt_image_read_open(
		worker->memory_fds, worker->memory_count, &l->image, l->message, l->message_size);
	return error ? error
		     : ckt_image_reader_init_open(&l->reader, &l->image, worker->memory_fds,
			       worker->memory_count, l->message, l->message_size);
}

unsigned ckt_load_start(struct ckt_worker *worker, int image_fd)
{
	char message[CKT_MESSAGE_MAX] = "";
	const int place = worker->image_count ? worker->image_places[0] : image_fd;
	ckt_image image = {0};
	int error = worker->memory_count
		? ckt_image_read_open(
			  worker->memory_fds, worker->memory_count, &image, message, sizeof message)
		: ckt_image_read(place, &image, message, sizeof message);
	unsigned start = error ? 0 : image.start;
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	return start;
}

static void close_image(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	ckt_image_reader_fini(&l->reader);
	while (worker->image_count)
		if (worker->image_places[--worker->image_count] >= 0)
			close(worker->image_places[worker->image_count]);
	ckt_memory_files_close(worker);
	ckt_session_operations.uncharge(l->manifest_bytes);
	ckt_moved_fini(&l->moved);
	free(l->skip);
}

int ckt_worker_preload(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size)
{
	struct ckt_loading l = {.worker = worker,
		.message = ret_message,
		.message_size = message_size,
		.ahead = true};
	const int *places = worker->image_count ? worker->image_places : &broker;
	int error = open_image(&l, places, worker->image_count ? worker->image_count : 1);
	if (error)
		return error;
	static int (*const steps[])(struct ckt_loading *) = {load_blobs, ckt_load_check_code,
		ckt_load_journal, check_globals, ckt_load_memory_ahead};
	error = ckt_load_check(&l, args);
	if (!error)
		error = ckt_load_check_objects(&l);
	for (size_t i = 0; i < sizeof steps / sizeof *steps && !error; i++)
		error = steps[i](&l);
	if (!error)
		error = told_to_fail(&l, CKT_FAULT_PRELOADED);
	if (!error)
		error = ckt_preload_done(&l.image);
	close_image(&l);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&l.image);
	return error;
}

int ckt_worker_load(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size)
{
	struct ckt_loading l = {
		.worker = worker, .message = ret_message, .message_size = message_size};
	const int *places = worker->image_count ? worker->image_places : &broker;
	unsigned place_count = worker->image_count ? worker->image_count : 1;
	int error = open_image(&l, places, place_count);
	if (error)
		return error;
	static const struct {
		int (*load)(struct ckt_loading *);
		const char *what;
	} steps[] = {{load_blobs, "module contents"}, {ckt_load_check_code, "checking code"},
		{ckt_load_journal, "modules"}, {load_contexts, "contexts"},
		{check_globals, "variables"}, {load_handles, "functions, streams and events"},
		{ckt_load_memory, "memory"}, {load_rest, "the rest"}};
	error = ckt_load_check(&l, args);
	if (!error)
		error = ckt_load_check_objects(&l);
	if (!error)
		error = ckt_load_begin(&l);
	if (!error)
		error = told_to_fail(&l, CKT_FAULT_RESTORE_CHECKED);
	for (size_t i = 0; i < sizeof steps / sizeof *steps && !error; i++) {
		int64_t begun = ckt_now_ns();
		if (steps[i].load == ckt_load_memory)
			error = told_to_fail(&l, CKT_FAULT_RESTORE_OBJECTS);
		if (!error)
			error = steps[i].load(&l);
		ckt_debug("restore: %s: %.1f ms", steps[i].what,
			(double)(ckt_now_ns() - begun) * 1e-6);
	}
	ckt_journal_ahead_fini(worker);
	if (!error)
		error = told_to_fail(&l, CKT_FAULT_RESTORE_LOADED);
	if (!error && load_identity(&l))
		error = ckt_load_refuse(
			&l, -ENOMEM, "the worker has no memory for the replies in the image");
	if (!error) {
		struct ckt_object *primary;
		if (ckt_context_primary(worker, 0, &primary) == CUDA_SUCCESS)
			ckt_worker_use_context(worker, primary->id);
		ckt_info("session %s restored as generation %llu", worker->session,
			(unsigned long long)worker->generation);
	}
	close_image(&l);
	ckt_preload_fini();
	if (!error && l.image.chain)
		ckt_chain_adopt(worker, &l.image);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&l.image);
	return error;
}
