/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of the allocator in an image: no objects, but contents; and the session's GPUs. */
#include <errno.h>

#include "checkpoint/fault.h"
#include "checkpoint/freeze/pause.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/worker.h"

static int save_table(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	s->image.devices.devices_val =
		ckt_save_list(s, worker->device_count, sizeof(ckt_image_device));
	if (!s->image.devices.devices_val)
		return ckt_save_has_memory(s);
	s->image.devices.devices_len = worker->device_count;
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_worker_device *from = &worker->devices[d];
		struct ckt_memory *memory = &from->memory;
		ckt_image_device *device = &s->image.devices.devices_val[d];
		device->name = ckt_save_string(s, from->name);
		device->major = from->major;
		device->minor = from->minor;
		device->total_bytes = from->total;
		device->extents.extents_val =
			ckt_save_list(s, memory->extent_count, sizeof(ckt_image_extent));
		device->blocks.blocks_val =
			ckt_save_list(s, memory->block_count, sizeof(ckt_image_block));
		int error = ckt_save_has_memory(s);
		for (size_t i = 0; i < memory->extent_count && !error; i++) {
			struct ckt_extent *e = &memory->extents[i];
			/* What libraries have for themselves they take again: memory.h. */
			if (e->use == CKT_EXTENT_CACHED || ckt_memory_extent_is_library(memory, i))
				continue;
			device->extents.extents_val[device->extents.extents_len++] =
				(ckt_image_extent){e->address, e->size, e->use};
			for (uint64_t at = 0; at < e->size && !error; at += CKT_MEMORY_PART) {
				uint64_t left = e->size - at;
				error = ckt_save_add_pieces(s, 0, d, e->address + at,
					ckt_pause_copy(e->address + at, 0),
					left < CKT_MEMORY_PART ? left : CKT_MEMORY_PART);
			}
		}
		if (error)
			return error;
		for (size_t i = 0; i < memory->block_count; i++) {
			struct ckt_block *b = &memory->blocks[i];
			if (b->owner & CKT_MEMORY_LIBRARY)
				continue;
			device->blocks.blocks_val[device->blocks.blocks_len++] =
				(ckt_image_block){b->address, b->size, b->owner};
		}
	}
	return 0;
}

static int load(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	for (unsigned d = 0; d < worker->device_count; d++) {
		const ckt_image_device *saved = &l->image.devices.devices_val[d];
		struct ckt_memory *memory = &worker->devices[d].memory;
		for (unsigned i = 0; i < saved->extents.extents_len; i++) {
			const ckt_image_extent *e = &saved->extents.extents_val[i];
			CUresult result = ckt_memory_adopt_extent(
				memory, e->address, e->size, (enum ckt_extent_use)e->use);
			if (result)
				return ckt_load_fail(l, result, "memory at", e->address);
		}
		for (unsigned i = 0; i < saved->blocks.blocks_len; i++) {
			const ckt_image_block *b = &saved->blocks.blocks_val[i];
			CUresult result =
				ckt_memory_adopt_block(memory, b->address, b->size, b->owner);
			if (result)
				return ckt_load_fail(l, result, "the allocation at", b->address);
		}
		if (ckt_memory_is_over(memory))
			return ckt_load_refuse(l, -ENOMEM,
				"the session's memory, modules and limits take %llu "
				"MiB, but this server allows %llu (--session-memory)",
				(unsigned long long)(memory->held >> 20),
				(unsigned long long)(memory->limit >> 20));
	}
	return ckt_fault_fails(CKT_FAULT_RESTORE_MEMORY)
		? ckt_load_refuse(l, -ENOMEM, "CRICKET_FAULT made this allocation fail")
		: 0;
}

static void visit_extents(const ckt_image *image, ckt_contents_visit *visit, void *opaque)
{
	for (unsigned d = 0; d < image->devices.devices_len; d++)
		for (unsigned i = 0; i < image->devices.devices_val[d].extents.extents_len; i++) {
			const ckt_image_extent *e =
				&image->devices.devices_val[d].extents.extents_val[i];
			visit(&(struct ckt_contents){.offset = e->address,
				      .address = e->address,
				      .size = e->size,
				      .device = d,
				      .taken = true},
				opaque);
		}
}

const struct ckt_object_kind ckt_memory_kind = {
	.name = "device memory",
	.save_table = save_table,
	.stage = CKT_LOAD_MEMORY,
	.load_rest = load,
	.contents = visit_extents,
};
