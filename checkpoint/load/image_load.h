/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of making a session again from an image (image_load.c).
 *
 *	check -> blobs -> check_code -> journal -> contexts -> variables -> functions, streams, events -> memory and contents -> the rest
 *
 * object_kind.h says how each kind of object is loaded.
 *
 * Each returns 0, or -errno and a sentence in `message`; then the process ends.  Threading: the
 * thread that restores.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/store.h"
#include "checkpoint/load/moved_variables.h"
#include "checkpoint/object_kind.h"
#include "rpc/worker.h"

struct ckt_worker;

struct ckt_loading {
	struct ckt_worker *worker;
	ckt_image image;
	struct ckt_image_reader reader;
	struct ckt_moved moved;
	bool other_model; /* than the session had: another capability */
	bool ahead;       /* pre-loaded only */
	bool *skip;       /* chunks that are already loaded; NULL: none */
	_Atomic size_t next;
	_Atomic int driver_error;
	char *message;
	size_t message_size;
	uint64_t manifest_bytes; /* charged for the manifest */
	/* see libs/state_image.c; NULL: nothing was looked for yet */
	const ckt_image_library_step *next_capture;
};

/*
 * How the worker that wrote the image was started (CKT_IMAGE_START_*); 0 for images before 1.15.
 * Before anything is opened.
 */
unsigned ckt_load_start(struct ckt_worker *worker, int image_fd);
/* Records the reason, and returns the error. */
int ckt_load_refuse(struct ckt_loading *l, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for an error of the driver. */
int ckt_load_fail(struct ckt_loading *l, CUresult result, const char *what, uint64_t id);

/* load_check.c */
uint64_t ckt_load_bytes_on(const ckt_image *image, unsigned d);
/* Whether the session fits in here; gives the worker the devices that the session had. */
int ckt_load_check(struct ckt_loading *l, const ckt_worker_start_args *args);
/* Precondition: the device's context may be made. */
int ckt_load_check_memory(struct ckt_loading *l, unsigned d);

/* load_journal.c */
int ckt_load_journal(struct ckt_loading *l);

/* load_objects.c: walks over the kinds of objects. */
int ckt_load_check_objects(struct ckt_loading *l);
int ckt_load_begin(struct ckt_loading *l);
int ckt_load_check_code(struct ckt_loading *l);
int ckt_load_objects(struct ckt_loading *l, enum ckt_load_stage stage);
int ckt_load_contents_loaded(struct ckt_loading *l);

int ckt_load_ahead(struct ckt_loading *l);

/* load_memory.c */
/* As physical memory asked for it. */
unsigned ckt_load_compression(const ckt_image *image, uint64_t physical);
int ckt_load_clear_memory(struct ckt_loading *l);

/* load_contents.c */
int ckt_load_memory(struct ckt_loading *l);
/* Of a session that still runs elsewhere. */
int ckt_load_memory_ahead(struct ckt_loading *l);
