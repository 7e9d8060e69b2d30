/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory of the client in images: where it lies, and what it holds where the client has no
 * pages of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/worker.h"

/* The program may continue before the rest is written. */
static int save_rest(struct ckt_saving *s)
{
	const struct ckt_hostmem *host = &s->worker->host;
	bool elsewhere = ckt_hostmem_is_elsewhere(host);
	s->image.host.host_val = ckt_save_list(s, host->count, sizeof(ckt_image_host));
	s->host_data = ckt_save_list(s, host->count, sizeof *s->host_data);
	if (s->no_memory)
		return ckt_save_has_memory(s);
	for (size_t i = 0; i < host->count; i++) {
		const struct ckt_host_mapping *m = &host->mappings[i];
		s->image.host.host_val[s->image.host.host_len++] =
			(ckt_image_host){m->address, m->size, elsewhere};
		if (elsewhere)
			continue;
		size_t piece = s->piece_count;
		uint8_t *data = s->host_data[i] = malloc(m->size);
		if (!data) {
			snprintf(s->message, s->message_size,
				"no memory for the %llu bytes of host memory at 0x%llx",
				(unsigned long long)m->size, (unsigned long long)m->address);
			return -ENOMEM;
		}
		memcpy(data, (const void *)(uintptr_t)m->address, m->size);
		int error = ckt_save_add_pieces(s, 0, 0, m->address, data, m->size);
		if (error)
			return error;
		while (piece < s->piece_count)
			s->pieces[piece++].hashable = false;
	}
	return 0;
}

static void free_data(struct ckt_saving *s)
{
	for (unsigned i = 0; i < s->image.host.host_len; i++)
		free(s->host_data[i]);
	free(s->host_data);
}

/* Private until the client comes. */
static int load(struct ckt_loading *l, unsigned i)
{
	const ckt_image_host *h = &l->image.host.host_val[i];
	CUresult result = ckt_hostmem_restore(l->worker, h->address, h->size, h->shared);
	return result ? ckt_load_fail(l, result, "host memory at", h->address) : 0;
}

const struct ckt_object_kind ckt_hostmem_kind = {
	.name = "host memory",
	.save_rest = save_rest,
	.free = free_data,
	.stage = CKT_LOAD_MEMORY,
	.list = CKT_IMAGE_LIST(host),
	.load = load,
};
