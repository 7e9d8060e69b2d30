/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of gen_inside.py: the names of the pass-through libcuda.so.1, and the name that
 * cuGetProcAddress returns for each request.
 */
#pragma once

struct ckt_inside_name {
	const char *name;
	/* the export of that name: a jump through the slot of the same number */
	void *stub;
};

struct ckt_inside_entry {
	/*
	 * as a caller of cuGetProcAddress gives it; entries of one name follow each other, oldest
	 * first
	 */
	const char *name;
	int version;                 /* the first CUDA version that has it */
	unsigned legacy, per_thread; /* indexes of names */
};

extern const struct ckt_inside_name ckt_inside_names[]; /* sorted */
extern const unsigned ckt_inside_name_count;
extern const struct ckt_inside_entry ckt_inside_entries[];
extern const unsigned ckt_inside_entry_count;
/* The targets of the stubs, by number of the name. */
extern void *ckt_inside_slots[];
