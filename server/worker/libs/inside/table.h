/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gen_inside.py makes: the names of the pass-through libcuda.so.1, and who gets which by
 * cuGetProcAddress.
 */
#pragma once

struct ckt_inside_name {
	const char *name;
	/* what the library exports under it: a jump through the slot of the same number */
	void *stub;
};

struct ckt_inside_entry {
	/* as cuGetProcAddress is asked; entries of one name follow each other, oldest first */
	const char *name;
	int version;                 /* first CUDA version that has it */
	unsigned legacy, per_thread; /* numbers of names */
};

extern const struct ckt_inside_name ckt_inside_names[]; /* sorted */
extern const unsigned ckt_inside_name_count;
extern const struct ckt_inside_entry ckt_inside_entries[];
extern const unsigned ckt_inside_entry_count;
/* Where the stubs jump to, by number of the name. */
extern void *ckt_inside_slots[];
