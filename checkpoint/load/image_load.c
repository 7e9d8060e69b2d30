/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a session from an image into a worker that has just started.  It checks everything that can
 * be checked first; any failure ends the process, so nothing remains.  The steps have files of
 * their own, load_*.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/fault.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/save/chain.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"

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
	return ckt_load_refuse(l, -EIO, "cannot recreate %s 0x%llx: %s (%d)", what,
		(unsigned long long)id, name ? name : "CUDA error", result);
}

static int told_to_fail(struct ckt_loading *l, enum ckt_worker_fault point)
{
	return ckt_fault_fails(point)
		? ckt_load_refuse(l, -EIO, "CRICKET_FAULT made this step fail")
		: 0;
}

/*
 * Programs keep the addresses of a module's variables anywhere, so a variable must get its old
 * address, or nothing may know the old one.
 */
static int check_globals(struct ckt_loading *l)
{
	int error = ckt_moved_find(&l->moved, l->worker, &l->image, l->message, l->message_size);
	return error == -ENOMEM
		? ckt_load_refuse(
			  l, error, "the worker has no memory for the list of moved variables")
		: error;
}

static int load_code(struct ckt_loading *l)
{
	return ckt_load_objects(l, CKT_LOAD_CODE);
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

static struct ckt_image_source *source_of(const struct ckt_loading *l)
{
	return &ckt_checkpoint_of(l->worker)->source;
}

enum { DECODED_FACTOR = 4 };

/*
 * The memory for reading the manifest: its bytes, and at most three times as much for what they
 * describe.
 */
static int charge_manifest(struct ckt_loading *l, const int *places)
{
	int64_t bytes = source_of(l)->memory_count
		? ckt_image_manifest_bytes_open(source_of(l)->memory_fds[0])
		: ckt_image_manifest_bytes(places[0], 0);
	l->manifest_bytes = bytes > 0 ? (uint64_t)bytes * DECODED_FACTOR : 0;
	if (ckt_session_operations.charge(l->manifest_bytes, "the manifest of an image"))
		return 0;
	uint64_t mib = (uint64_t)bytes >> 20;
	l->manifest_bytes = 0;
	return ckt_load_refuse(l, -ENOMEM,
		"the image's manifest has %llu MiB, and reading it would exceed what "
		"this server allows (--session-host-memory)",
		(unsigned long long)mib);
}

static int read_id(int place, unsigned directory, char ret_id[CKT_IMAGE_ID])
{
	int64_t bytes = ckt_image_manifest_bytes(place, directory);
	uint64_t charged = bytes > 0 ? (uint64_t)bytes * DECODED_FACTOR : 0;
	if (bytes < 0)
		return (int)bytes;
	if (!ckt_session_operations.charge(charged, "the manifest of an image"))
		return -ENOMEM;
	int result = ckt_image_read_id(place, directory, (uint64_t)bytes, ret_id);
	ckt_session_operations.uncharge(charged);
	return result;
}

/*
 * An image does not name those of its chain of which it uses nothing; whoever does not read its
 * manifest gives the places of all.  From here on it names all up to the last that it uses.
 */
static int name_all(struct ckt_loading *l, const int *places, unsigned place_count)
{
	ckt_image *image = &l->image;
	unsigned named = image->ancestors.ancestors_len, found = 0, all = 0;
	unsigned numbers[CKT_IMAGE_ANCESTORS];
	if (place_count <= 1 + named)
		return 0;
	ckt_image_ancestor *ids = calloc(place_count, sizeof *ids);
	if (!ids)
		return ckt_load_refuse(l, -ENOMEM, "no memory for the chain of the image");
	for (; found < named && all < place_count - 1; all++) {
		int error = read_id(places[1 + all], 1 + all, ids[all].id);
		if (error) {
			free(ids);
			return ckt_load_refuse(l, error,
				"the image builds on others, and the manifest of number %u of its "
				"chain cannot be read: %s",
				1 + all, strerror(-error));
		}
		if (memcmp(ids[all].id, image->ancestors.ancestors_val[found].id, CKT_IMAGE_ID) ==
			0)
			numbers[found++] = all;
	}
	if (found < named) {
		free(ids);
		return ckt_load_refuse(
			l, -EBADMSG, "the image builds on another that its chain does not have");
	}
	for (unsigned i = 0; i < image->elsewhere.elsewhere_len; i++) {
		ckt_image_file *file = &image->elsewhere.elsewhere_val[i];
		file->ancestor = numbers[file->ancestor];
	}
	free(image->ancestors.ancestors_val);
	image->ancestors.ancestors_val = ids;
	image->ancestors.ancestors_len = all;
	return 0;
}

/* The brokers of the chain, or the open files of an image in memory. */
static int open_image(struct ckt_loading *l, const int *places, unsigned place_count)
{
	const struct ckt_image_source *source = source_of(l);
	int charged = charge_manifest(l, places);
	if (charged)
		return charged;
	if (!source->memory_count) {
		/* No more than was charged. */
		int error = ckt_image_read_within(places[0], l->manifest_bytes / DECODED_FACTOR,
			&l->image, l->message, l->message_size);
		if (!error)
			error = name_all(l, places, place_count);
		return error ? error
			     : ckt_image_reader_init(&l->reader, &l->image, places, place_count,
				       l->message, l->message_size);
	}
	int error = ckt_image_read_open(
		source->memory_fds, source->memory_count, &l->image, l->message, l->message_size);
	return error ? error
		     : ckt_image_reader_init_open(&l->reader, &l->image, source->memory_fds,
			       source->memory_count, l->message, l->message_size);
}

unsigned ckt_load_start(struct ckt_worker *worker, int image_fd)
{
	const struct ckt_image_source *source = &ckt_checkpoint_of(worker)->source;
	char message[CKT_MESSAGE_MAX] = "";
	const int place = source->count ? source->places[0] : image_fd;
	ckt_image image = {0};
	int error = source->memory_count
		? ckt_image_read_open(
			  source->memory_fds, source->memory_count, &image, message, sizeof message)
		: ckt_image_read(place, &image, message, sizeof message);
	unsigned start = error ? 0 : image.start;
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	return start;
}

void ckt_image_source_close_memory(struct ckt_image_source *source)
{
	while (source->memory_count)
		close(source->memory_fds[--source->memory_count]);
}

static void close_image(struct ckt_loading *l)
{
	struct ckt_image_source *source = source_of(l);
	ckt_image_reader_fini(&l->reader);
	while (source->count)
		if (source->places[--source->count] >= 0)
			close(source->places[source->count]);
	ckt_image_source_close_memory(source);
	ckt_session_operations.uncharge(l->manifest_bytes);
	ckt_moved_fini(&l->moved);
	free(l->skip);
}

int ckt_checkpoint_preload(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size)
{
	struct ckt_loading l = {.worker = worker,
		.message = ret_message,
		.message_size = message_size,
		.ahead = true};
	const struct ckt_image_source *source = source_of(&l);
	int error = open_image(
		&l, source->count ? source->places : &broker, source->count ? source->count : 1);
	if (error)
		return error;
	static int (*const steps[])(struct ckt_loading *) = {load_code, ckt_load_check_code,
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

int ckt_checkpoint_load(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size)
{
	struct ckt_loading l = {
		.worker = worker, .message = ret_message, .message_size = message_size};
	const struct ckt_image_source *source = source_of(&l);
	int error = open_image(
		&l, source->count ? source->places : &broker, source->count ? source->count : 1);
	if (error)
		return error;
	static const struct {
		int (*load)(struct ckt_loading *);
		const char *what;
	} steps[] = {{load_code, "module contents"}, {ckt_load_check_code, "checking code"},
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
	ckt_session_operations.end_ahead(worker);
	if (!error)
		error = told_to_fail(&l, CKT_FAULT_RESTORE_LOADED);
	if (!error)
		error = ckt_load_objects(&l, CKT_LOAD_IDENTITY);
	if (!error) {
		ckt_session_operations.use_primary(worker, 0);
		ckt_info("session %s restored as generation %llu", l.image.session,
			(unsigned long long)l.image.generation + 1);
	}
	close_image(&l);
	ckt_preload_fini();
	if (!error && l.image.chain)
		ckt_chain_adopt(worker, &l.image);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&l.image);
	return error;
}
