/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of objects of a session, as images have them (checkpoint/object_kind.h).  Each table is
 * in the kind's own file; object_kinds.c lists them in the order of loading.
 */
#pragma once

#include "checkpoint/object_kind.h"

/* objects/ */
extern const struct ckt_object_kind ckt_context_kind, ckt_stream_kind, ckt_event_kind,
	ckt_array_kind, ckt_texture_kind;
/* module/ */
extern const struct ckt_object_kind ckt_module_kind, ckt_function_kind, ckt_seen_kind,
	ckt_blob_kind;
/* memory/ */
extern const struct ckt_object_kind ckt_memory_kind, ckt_physical_kind, ckt_hostmem_kind,
	ckt_pool_kind;
/* session/ */
extern const struct ckt_object_kind ckt_identity_kind, ckt_reply_kind;
/* graph/, ipc/, libs/, session/ */
extern const struct ckt_object_kind ckt_graph_kind, ckt_shared_kind, ckt_library_kind,
	ckt_code_kind, ckt_notification_kind;

/* stream_image.c.  The step of the journal that makes streams or events ahead. */
int ckt_objects_made_ahead(struct ckt_loading *l, const ckt_image_journal *entry);
