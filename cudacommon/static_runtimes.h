/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the entry points of the static CUDA runtime lie, for every release known when
 * gen_static_runtimes.py last ran.  Constant data; no threads, no errors.
 *
 * A release's entry points are two runs of code that the linker moves as a whole.  A run has this
 * layout in memory, even in a stripped program:
 *
 *	zero ------------------ anchor ------------------------------- last entry
 *	| slot | slot | slot    | slot: its first 16 bytes are found by content
 *	`-- every slot starts at a multiple of 16 and is at least 16 bytes long
 *
 * cudaGetExportTable lies ckt_static_export_table_bytes before the zero of the head.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	CKT_STATIC_SLOT = 16,         /* alignment and least size of an entry */
	CKT_STATIC_EXPORT_PREFIX = 9, /* bytes of cudaGetExportTable before its first call */
};

struct ckt_static_slot {
	uint16_t name; /* index into ckt_static_names */
	/*
	 * distance from the slot before it in units of 16; 1 for the first, counted from zero - 16
	 */
	uint16_t gap;
};

struct ckt_static_block {
	const char *releases; /* "13.0.48 13.0.88": the releases that share it */
	unsigned major;       /* 12 or 13: which ABI its callers were compiled for */
	bool is_head;         /* the registration functions; otherwise the ordinary API */
	unsigned count;
	uint32_t anchor_offset; /* of the anchor's slot from zero */
	unsigned anchor;        /* index into ckt_static_anchors */
	/* FNV-1a over the fixed prefixes of all entries, in order */
	uint64_t hash;
	const struct ckt_static_slot *slots;
};

extern const char ckt_static_releases[]; /* "12.0 to 13.5", for messages */
extern const unsigned ckt_static_names_count;
extern const char *const ckt_static_names[];
/* How many bytes at the start of the function the linker never changes; 16 at most. */
extern const uint8_t ckt_static_fixed[];
extern const unsigned ckt_static_anchors_count;
extern const uint64_t ckt_static_anchors[][2];
extern const unsigned ckt_static_blocks_count;
extern const struct ckt_static_block ckt_static_blocks[];
extern const unsigned ckt_static_export_table_bytes;
extern const uint8_t ckt_static_export_table_prefix[CKT_STATIC_EXPORT_PREFIX];
