/* SPDX-License-Identifier: Apache-2.0 */
/* All kinds of objects of a session, in the order in which a restore makes them again. */
#include "server/worker/objects/object_kinds.h"

const struct ckt_object_kind *const ckt_object_kinds[] = {
	/* Tables ahead of all objects, which come back when everything else is there. */
	&ckt_identity_kind,
	&ckt_reply_kind,
	&ckt_context_kind,
	&ckt_digest_kind,
	&ckt_module_kind,
	&ckt_function_kind,
	&ckt_stream_kind,
	&ckt_event_kind,
	/* Addresses of device memory and of host memory, before contents come. */
	&ckt_memory_kind,
	/* In an image, modules' contents stand behind those of device memory. */
	&ckt_blob_kind,
	&ckt_physical_kind,
	&ckt_hostmem_kind,
	/* Others wait for what this session shares: as soon as its contents are there. */
	&ckt_shared_kind,
	&ckt_pool_kind,
	&ckt_array_kind,
	/* They read arrays. */
	&ckt_texture_kind,
	&ckt_library_kind,
	&ckt_code_kind,
	/* They launch functions, copy memory and arrays, and hold captured calls of libraries. */
	&ckt_graph_kind,
	&ckt_seen_kind,
	&ckt_notification_kind,
	NULL,
};
