/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of writing a frozen session as an image (image_save.c).
 *
 *	tables -> objects, what the program mapped -> contents -> manifest
 *
 * Strings and lists belong to the image.  Threading: the control thread, and in contents the crew.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/content_threads.h"
#include "checkpoint/format/store.h"
#include "checkpoint/save/chain.h"
#include "checkpoint/save/save.h"

struct ckt_worker;

struct ckt_saving {
	struct ckt_worker *worker;
	struct ckt_save *save;
	ckt_image image;
	struct ckt_piece *pieces;
	size_t piece_count, piece_room;
	_Atomic size_t next;
	struct ckt_image_writer writers[CKT_CREW_SIZE];
	char *message;
	size_t message_size;
	_Atomic int driver_error;
	uint64_t key[4];
	bool hashed;
	bool vmm_given_back;
	CUevent event_base;   /* event times count from this event; NULL: none is known yet */
	uint8_t **array_data; /* contents of arrays, by their place in the image */
	unsigned array_count;
	uint8_t **host_data; /* of host memory that is not shared, likewise */
	bool early;          /* still frozen: pieces without a copy */
	bool no_memory;      /* a table could not be made; `message` says so */
};

/*
 * save_tables.c.  Cleared memory with room for one more, and copies of strings.  Without memory
 * they return NULL and set `no_memory`, so that several calls in a row need one check.
 */
void *ckt_save_list(struct ckt_saving *s, size_t count, size_t size);
char *ckt_save_string(struct ckt_saving *s, const char *text);
/* 0, or -ENOMEM and a sentence in `message` if a list or a string could not be allocated. */
int ckt_save_has_memory(struct ckt_saving *s);
/* In pieces of a chunk's size: `data`, or the memory of that device if `data` is NULL. */
/* 0 or -ENOMEM. */
int ckt_save_add_pieces(struct ckt_saving *s, unsigned space, unsigned device, uint64_t address,
	const uint8_t *data, uint64_t size);
int ckt_save_tables(struct ckt_saving *s);

/* save_objects.c: walks over the kinds of objects.  0 or -errno and a sentence in `message`. */
int ckt_save_objects(struct ckt_saving *s);
/* Before the session continues: unmaps memory that was mapped only for the image. */
void ckt_save_give_back(struct ckt_saving *s);
/* Before the image is freed. */
void ckt_save_free_objects(struct ckt_saving *s);

/* save_contents.c */
/*
 * Copies the contents to write into spare memory of their device, as far as it reaches, and writes
 * the rest at once. The session continues after that.
 */
int ckt_save_let_go(struct ckt_saving *s);
int ckt_save_contents(struct ckt_saving *s);
