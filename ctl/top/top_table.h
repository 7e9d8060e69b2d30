/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of cricketctl top: what they hold, which fit into a width, and how they sort.
 *
 * Threading: no state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/top/top_sample.h"

struct ckt_top_column {
	const char *name;
	const char *meaning; /* for the help */
	char key;            /* sorts by it */
	bool left;           /* a text; numbers stand at the right, and sort from the largest */
	int width, width_max;
	int rank; /* the higher, the earlier it is left out */
	void (*text)(const struct ckt_top_session *session, char *ret_text, size_t size);
	/* Below, at or above 0, as a number sorts or a text does. */
	int (*compare)(const struct ckt_top_session *a, const struct ckt_top_session *b);
};

enum { CKT_TOP_COLUMNS = 15, CKT_TOP_WIDTH_MAX = 400 };
extern const struct ckt_top_column ckt_top_columns[CKT_TOP_COLUMNS];

/* The width of each column in a line of that many characters; 0: it is left out. */
void ckt_ctl_top_layout(int width, int ret_widths[CKT_TOP_COLUMNS]);
/* A line without its end.  session NULL: the names of the columns. */
void ckt_ctl_top_line(const int widths[CKT_TOP_COLUMNS], const struct ckt_top_session *session,
	char *ret_line, size_t size);
/* Sorts by that column, then by session. */
void ckt_ctl_top_sort(struct ckt_top_sample *sample, unsigned column, bool reverse);
/* The column with that key, or -1. */
int ckt_ctl_top_column(int key);
/* "1.5G", "12M", "0": at most five characters. */
void ckt_ctl_top_size(double bytes, char *ret_text, size_t size);
