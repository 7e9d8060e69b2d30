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
	CUevent event_base;   /* times of events count from this one; NULL: none is known yet */
	uint8_t **array_data; /* contents of arrays, by their place in the image */
	unsigned array_count;
	uint8_t **host_data; /* of host memory that is not shared, likewise */
	bool early;          /* still frozen: what has no copy */
	bool no_memory;      /* a table could not be made; `message` says so */
};

/*
 * save_tables.c.  Cleared memory with room for one more, and copies of strings.  NULL where there
 * is no memory, and `no_memory` is set, so that a few in a row need one look.
 */
void *ckt_save_list(struct ckt_saving *s, size_t count, size_t size);
char *ckt_save_string(struct ckt_saving *s, const char *text);
/* 0, or -ENOMEM and a sentence in `message` where a list or a string was not to be had. */
int ckt_save_has_memory(struct ckt_saving *s);
/* In pieces of a chunk's size: `data`, or the memory of that device where it is NULL. */
/* 0 or -ENOMEM. */
int ckt_save_add_pieces(struct ckt_saving *s, unsigned space, unsigned device, uint64_t address,
	const uint8_t *data, uint64_t size);
int ckt_save_tables(struct ckt_saving *s);

/* save_objects.c: walks over the kinds of objects.  0 or -errno and a sentence in `message`. */
int ckt_save_objects(struct ckt_saving *s);
/* So that the session may go on: memory that was mapped for the image alone, and the like. */
void ckt_save_give_back(struct ckt_saving *s);
/* Before the image is freed. */
void ckt_save_free_objects(struct ckt_saving *s);

/* save_contents.c */
/*
 * Copies what is to be written into spare memory of its device as far as that goes, and writes the
 * rest at once: then nothing of the session is needed any more, and it goes on.
 */
int ckt_save_let_go(struct ckt_saving *s);
int ckt_save_contents(struct ckt_saving *s);
