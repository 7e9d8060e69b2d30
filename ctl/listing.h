/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server tells of sessions beside LIST, for cricketctl ps: all pages of one procedure, as they came.
 *
 * Errors: what cannot be read is left out.  Threading: no shared state.
 */
#pragma once

#include <rpc/rpc.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/command.h"

struct ckt_ctl_listing_kind {
	uint32_t procedure; /* its arguments are ckt_control_list_args */
	xdrproc_t xdr;      /* of a page */
	size_t page_size, entry_size;
	/* Where a page has the number of its entries, the entries, and whether more follow. */
	size_t count_at, entries_at, more_at;
};

/* entries: the array of the page.  Each entry begins with the name of its session, and they are sorted by it. */
#define CKT_CTL_LISTING_KIND(procedure, page, entries)                              \
	{                                                                           \
		(procedure), (xdrproc_t)xdr_##page, sizeof(page),                   \
			sizeof *((page *)NULL)->entries.entries##_val,              \
			offsetof(page, entries.entries##_len),                      \
			offsetof(page, entries.entries##_val), offsetof(page, more) \
	}

struct ckt_ctl_listing {
	const struct ckt_ctl_listing_kind *kind;
	void **pages;
	size_t count;
};

/* Over a connection of its own, which an older server ends: then there is no page.  Freed by the caller. */
void ckt_ctl_listing_read(const struct ckt_ctl_args *args, const struct ckt_ctl_listing_kind *kind,
	struct ckt_ctl_listing *ret_listing);
void ckt_ctl_listing_free(struct ckt_ctl_listing *listing);
/* The session's entry after `before`, or its first one if that is NULL; NULL: there is none. */
const void *ckt_ctl_listing_next(
	const struct ckt_ctl_listing *listing, const char *session, const void *before);
