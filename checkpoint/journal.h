/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: every step that moved the driver's own addresses, in order, including steps for
 * objects that are gone.  A restore repeats the steps, so that variables of modules get their old
 * addresses, and enters each in its own journal.
 *
 * The journal is kept short: streams and events count only if more of them live at once than ever
 * before (the driver reuses destroyed ones), repetitions of one step are one entry, and an array
 * that was made and destroyed with no module loaded in between has none. Measurements showed that
 * pinned memory and small graphs move nothing.
 *
 * Threading: the executor, or the thread that restores.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ckt_journal_kind {
	CKT_JOURNAL_MODULE_LOAD = 1,
	CKT_JOURNAL_MODULE_UNLOAD = 2,
	CKT_JOURNAL_CONTEXT_CREATE = 3,
	CKT_JOURNAL_CONTEXT_DESTROY = 4,
	/* device: the kernel that hashes contents was loaded there */
	CKT_JOURNAL_DIGEST = 5,
	/* flags: CUlimit, id: value; growth of local memory is one of these */
	CKT_JOURNAL_LIMIT = 6,
	/* id: how many, beyond those made at the start; flags, device: flags and priority */
	CKT_JOURNAL_STREAMS = 7,
	CKT_JOURNAL_EVENTS = 8,       /* id: how many; flags: theirs */
	CKT_JOURNAL_ARRAY_CREATE = 9, /* flags: levels; the image has a list of arrays */
	CKT_JOURNAL_ARRAY_DESTROY = 10,
	/*
	 * flags: enum ckt_lib, id: number of the step that made its first object in the context;
	 * see libs/state.h
	 */
	CKT_JOURNAL_LIBRARY = 12,
	CKT_JOURNAL_CODE = 13, /* id: a first use of a library's code, see libs/code.h */
	/* device: its primary context; the first device's is made at the start */
	CKT_JOURNAL_PRIMARY = 11,
};

struct ckt_journal_entry {
	enum ckt_journal_kind kind;
	uint64_t id, context;
	uint8_t hash[32];
	uint32_t flags, device;
	CUDA_ARRAY3D_DESCRIPTOR desc; /* of an array that the step makes */
};

struct ckt_journal {
	struct ckt_journal_entry *list;
	size_t count, room;
	/* so many stand in an image that others build on: they are only added to */
	size_t saved;
};

/*
 * False if the journal is full or there is no memory: then the step is missing, and restores do
 * without it.
 */
bool ckt_journal_add(struct ckt_journal *journal, struct ckt_journal_entry entry);
/*
 * An array that came and went with no module loaded meanwhile leaves no trace, unless an image that
 * others build on has it.
 */
void ckt_journal_array_ended(struct ckt_journal *journal, uint64_t id);
