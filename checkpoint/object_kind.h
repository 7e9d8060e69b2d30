/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of object of a session, as images have it: a table of operations for each kind.  The table
 * stands beside the kind's own code; ckt_object_kinds, which the user of checkpoint/ defines, lists
 * all of them.  Saving, loading and the journal walk that list and know no kind by name.
 *
 *	save	save_table of each kind -> prepare of each kind -> save of each object, in the order of its making -> save_rest of each kind
 *		-> contents -> give_back of each kind (the session may go on) -> free of each kind
 *	load	check of each kind -> begin of each kind -> the first stage -> check_code of each kind -> the journal's steps
 *		-> load of each entry and load_rest of each kind, stage by stage -> contents_loaded of each kind
 *
 * Within a stage the list gives the order.  It is part of the history of addresses: another order
 * of driver calls makes images of today's sessions come back with other addresses.
 *
 * Every operation may be NULL: nothing is to be done then.  Operations return 0, or -errno and a
 * sentence in the message of `s` or `l`.  Threading: the thread that saves or restores.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/image.h"
#include "checkpoint/journal.h"

struct ckt_loading;
struct ckt_object;
struct ckt_saving;

/* What must exist before a kind is loaded. */
enum ckt_load_stage {
	CKT_LOAD_CODE,     /* nothing; code is checked and the journal replayed behind this */
	CKT_LOAD_CONTEXTS, /* the journal is replayed */
	CKT_LOAD_HANDLES,  /* contexts exist, and variables of modules have their final addresses */
	CKT_LOAD_MEMORY,   /* device memory of the allocator exists; contents follow */
	CKT_LOAD_REST,     /* all contents of memory are there */
	CKT_LOAD_IDENTITY, /* everything is there */
};

/* How an entry of the journal combines with the one before it, if only their ids differ. */
enum ckt_journal_merge {
	CKT_JOURNAL_APART,    /* not at all: both stay */
	CKT_JOURNAL_REPLACES, /* the later id counts */
	CKT_JOURNAL_ADDS,     /* the ids are numbers, and are added */
};

struct ckt_journal_step {
	enum ckt_journal_kind kind;
	enum ckt_journal_merge merge;
	/* Repeats the step; entry: of the image. */
	int (*replay)(struct ckt_loading *l, const ckt_image_journal *entry);
};

/*
 * A range of contents that an image describes.  Its chunks are known by owner and offset: in a
 * range without an owner, and in variables (of their module), the offset is the address.
 */
struct ckt_contents {
	uint64_t owner;   /* an object's id; 0: device memory of the allocator */
	uint64_t offset;  /* of its beginning */
	uint64_t address; /* its address in device memory; 0: it has none */
	uint64_t size;
	unsigned device; /* UINT32_MAX: the image does not say */
	/* in which it can be cleared; 0: its owner clears it */
	uint64_t context;
	bool taken; /* memory that a restore allocates from the device only for it */
};
typedef void ckt_contents_visit(const struct ckt_contents *contents, void *opaque);

/* Where a piece of an object without an address goes to or comes from. */
enum ckt_piece_way { CKT_PIECE_TO_HOST, CKT_PIECE_FROM_HOST, CKT_PIECE_TO_DEVICE };

struct ckt_object_kind {
	/* The plural, for logs. */
	const char *name;
	/* Handles that name such objects (a bit 1 << enum ckt_kind for each); 0: none do. */
	uint64_t handles;
	/* Steps of the journal that make and end such objects; the last has no replay function. */
	const struct ckt_journal_step *steps;

	/* Saves what stands in the image ahead of all objects. */
	int (*save_table)(struct ckt_saving *s);
	/* Makes room in the lists of the image.  objects: all of the session, in order. */
	int (*prepare)(struct ckt_saving *s, struct ckt_object *const *objects, size_t count);
	int (*save)(struct ckt_saving *s, struct ckt_object *object);
	/* Saves what belongs to no object. */
	int (*save_rest)(struct ckt_saving *s);
	/* Returns what saving took of the session.  May be called twice. */
	void (*give_back)(struct ckt_saving *s);
	/* Frees what saving needed, even if prepare was not reached. */
	void (*free)(struct ckt_saving *s);

	/*
	 * Whether the session can resume here, before anything is made; also for preloaded images.
	 */
	int (*check)(struct ckt_loading *l);
	/* All checks have passed; not for preloaded images. */
	int (*begin)(struct ckt_loading *l);
	/* Whether the code fits, once the modules' contents are loaded. */
	int (*check_code)(struct ckt_loading *l);
	enum ckt_load_stage stage;
	/* The image's list of them (CKT_IMAGE_LIST); load recreates entry i. */
	size_t list;
	int (*load)(struct ckt_loading *l, unsigned i);
	/* Runs after all entries. */
	int (*load_rest)(struct ckt_loading *l);
	int (*contents_loaded)(struct ckt_loading *l);

	/* Visits the ranges of contents that the image has of such objects. */
	void (*contents)(const ckt_image *image, ckt_contents_visit *visit, void *opaque);
	/* Loads contents without an address from a preloaded image. */
	int (*load_ahead)(struct ckt_loading *l);
	/*
	 * Moves a piece of such contents, by its offset, between the object and memory, in the
	 * order of the stream.  Precondition: the piece is inside the object.
	 */
	CUresult (*move_piece)(const struct ckt_object *object, uint64_t offset, uint64_t size,
		enum ckt_piece_way way, uint64_t at, CUstream stream);
};

#define CKT_IMAGE_LIST(name) offsetof(ckt_image, name.name##_len)
#define CKT_HANDLES(kind) ((uint64_t)1 << CKT_KIND_##kind)

/* Defined by the user of checkpoint/, in the order of loading; the last is NULL. */
extern const struct ckt_object_kind *const ckt_object_kinds[];

/* load_contents.c.  The kernels that hash belong to checkpoint/ and have a step. */
extern const struct ckt_object_kind ckt_digest_kind;

/* The kind of objects with such handles (enum ckt_kind); NULL: none. */
const struct ckt_object_kind *ckt_object_kind_of(unsigned handle_kind);
/* Of all kinds. */
void ckt_contents_visit_all(const ckt_image *image, ckt_contents_visit *visit, void *opaque);
/* By the kind of the object. */
CUresult ckt_piece_move(const struct ckt_object *object, uint64_t id, uint64_t offset,
	uint64_t size, enum ckt_piece_way way, uint64_t at, CUstream stream);
/* NULL if no kind knows the step. */
const struct ckt_journal_step *ckt_journal_step_of(unsigned kind);
