/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that moved; see moved_variables.h. */
#include "checkpoint/load/moved_variables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/sorted.h"
#include "checkpoint/kernels/scan.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"

static int add(struct ckt_moved *moved, struct ckt_moved_variable variable)
{
	int error = CKT_GROW(moved->list, moved->count, moved->room, 64);
	if (!error)
		moved->list[moved->count++] = variable;
	return error;
}

static bool is_seen(const ckt_image *image, uint64_t module, const char *name)
{
	for (unsigned i = 0; i < image->seen.seen_len; i++)
		if (image->seen.seen_val[i].module == module &&
			!strcmp(image->seen.seen_val[i].name, name))
			return true;
	return !image->seen_known;
}

static int compare(struct ckt_moved *moved, CUmodule real, const ckt_image *image,
	const ckt_image_module *module, ckt_image_global *global, char *ret_message,
	size_t message_size)
{
	CUdeviceptr address;
	size_t size;
	CUresult result = ckt_driver.cuModuleGetGlobal_v2(&address, &size, real, global->name);
	if (result || size != global->size) {
		snprintf(ret_message, message_size,
			"variable %.256s of module 0x%llx is missing or has another "
			"size (CUDA error %d)",
			global->name, (unsigned long long)module->id, result);
		return -EIO;
	}
	ckt_debug("variable %.64s of module 0x%llx, %llu bytes: at 0x%llx, was at 0x%llx",
		global->name, (unsigned long long)module->id, (unsigned long long)size,
		(unsigned long long)address, (unsigned long long)global->address);
	if (address == global->address)
		return 0;
	if (is_seen(image, module->id, global->name)) {
		snprintf(ret_message, message_size,
			"variable %.256s of module 0x%llx, whose address the program "
			"knows, is at 0x%llx now and was at 0x%llx: the driver's "
			"allocation history differs; restore with the same driver and "
			"GPU, and with address space randomisation off",
			global->name, (unsigned long long)module->id, (unsigned long long)address,
			(unsigned long long)global->address);
		return -EADDRNOTAVAIL;
	}
	return add(moved,
		(struct ckt_moved_variable){.module = module,
			.global = global,
			.from = global->address,
			.size = size,
			.to = address});
}

static int by_place(const void *a, const void *b)
{
	const struct ckt_moved_variable *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

/*
 * Each chunk once, by its old address: a variable's new address may be another one's old address.
 */
static void relocate(struct ckt_moved *moved, ckt_image *image)
{
	qsort(moved->list, moved->count, sizeof *moved->list, by_place);
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		size_t at = CKT_SORTED_UPPER(moved->list, moved->count, from, chunk->address);
		const struct ckt_moved_variable *variable = at ? &moved->list[at - 1] : NULL;
		if (!chunk->space && variable && chunk->address - variable->from < variable->size)
			chunk->address += variable->to - variable->from;
	}
	for (size_t i = 0; i < moved->count; i++)
		((ckt_image_global *)moved->list[i].global)->address = moved->list[i].to;
}

int ckt_moved_find(struct ckt_moved *moved, struct ckt_worker *worker, ckt_image *image,
	char *ret_message, size_t message_size)
{
	for (unsigned m = 0; m < image->modules.modules_len; m++) {
		const ckt_image_module *module = &image->modules.modules_val[m];
		CUmodule real = ckt_session_operations.real_module(worker, module->id);
		if (!real || ckt_session_operations.use_context(worker, module->context)) {
			snprintf(ret_message, message_size,
				"the image is damaged: its journal does not load "
				"module 0x%llx",
				(unsigned long long)module->id);
			return -EBADMSG;
		}
		for (unsigned i = 0; i < module->globals.globals_len; i++) {
			int error = compare(moved, real, image, module,
				&module->globals.globals_val[i], ret_message, message_size);
			if (error)
				return error;
		}
	}
	if (moved->count)
		relocate(moved, image);
	return 0;
}

void ckt_moved_fini(struct ckt_moved *moved)
{
	free(moved->list);
	*moved = (struct ckt_moved){0};
}

/* ---- What points there */

struct items {
	struct ckt_scan_item *list;
	size_t count, room;
};

/* In pieces, a block of threads each. */
static int cut(struct items *items, uint64_t address, uint64_t size)
{
	uint64_t end = address + size;
	for (uint64_t at = (address + 7) & ~7ull; at < end && end - at >= sizeof(uint64_t);
		at += CKT_IMAGE_CHUNK) {
		if (CKT_GROW(items->list, items->count, items->room, 1024))
			return -ENOMEM;
		uint64_t left = (end - at) & ~7ull;
		items->list[items->count++] =
			(struct ckt_scan_item){at, left < CKT_IMAGE_CHUNK ? left : CKT_IMAGE_CHUNK};
	}
	return 0;
}

/* Memory that belongs to the context; the device's memory counts as its primary context's. */
static int collect(struct items *items, const ckt_image *image, const ckt_image_context *context)
{
	const ckt_image_device *device = context->device < image->devices.devices_len
		? &image->devices.devices_val[context->device]
		: NULL;
	int error = 0;
	for (unsigned i = 0;
		device && context->primary && !error && i < device->extents.extents_len; i++)
		error = cut(items, device->extents.extents_val[i].address,
			device->extents.extents_val[i].size);
	for (unsigned i = 0; context->primary && !error && i < image->physicals.physicals_len; i++)
		if (image->physicals.physicals_val[i].device == context->device)
			error = cut(items, image->physicals.physicals_val[i].contents,
				image->physicals.physicals_val[i].size);
	for (unsigned m = 0; m < image->modules.modules_len && !error; m++) {
		const ckt_image_module *module = &image->modules.modules_val[m];
		for (unsigned i = 0;
			!error && module->context == context->id && i < module->globals.globals_len;
			i++)
			error = cut(items, module->globals.globals_val[i].address,
				module->globals.globals_val[i].size);
	}
	return error;
}

static CUresult scan(struct ckt_worker *worker, const ckt_image *image,
	const struct ckt_scan_range *ranges, size_t count, struct ckt_scan_hit *hits)
{
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; i < image->contexts.contexts_len && !result; i++) {
		const ckt_image_context *context = &image->contexts.contexts_val[i];
		CUcontext real = ckt_session_operations.real_context(worker, context->id);
		struct items items = {0};
		if (collect(&items, image, context))
			result = CUDA_ERROR_OUT_OF_MEMORY;
		else if (real)
			result = ckt_scan_run(worker, real, context->device, ranges, count,
				items.list, items.count, hits);
		free(items.list);
	}
	for (unsigned i = 0; i < image->graphs.graphs_len; i++)
		ckt_scan_host(image->graphs.graphs_val[i].data.data_val,
			image->graphs.graphs_val[i].data.data_len, ranges, count, hits);
	return result;
}

int ckt_moved_check(const struct ckt_moved *moved, struct ckt_worker *worker,
	const ckt_image *image, char *ret_message, size_t message_size)
{
	int error = 0;
	if (!moved->count)
		return 0;
	struct ckt_scan_range *ranges = calloc(moved->count, sizeof *ranges);
	struct ckt_scan_hit *hits = calloc(moved->count, sizeof *hits);
	for (size_t i = 0; i < moved->count && ranges && hits; i++) {
		ranges[i] = (struct ckt_scan_range){moved->list[i].from, moved->list[i].size};
		hits[i].first = UINT64_MAX;
	}
	CUresult result = ranges && hits ? scan(worker, image, ranges, moved->count, hits)
					 : CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		snprintf(ret_message, message_size,
			"variables of modules have moved, and Cricket cannot find out "
			"what points to them: CUDA error %d",
			result);
		error = -EIO;
	}
	for (size_t i = 0; i < moved->count && !error; i++) {
		const struct ckt_moved_variable *variable = &moved->list[i];
		if (!hits[i].count)
			continue;
		snprintf(ret_message, message_size,
			"variable %.256s of module 0x%llx is at 0x%llx now and was at "
			"0x%llx, and %llu words of the session point to its old "
			"address (the first at 0x%llx): restore with the same driver "
			"and GPU, and with address space randomisation off",
			variable->global->name, (unsigned long long)variable->module->id,
			(unsigned long long)variable->to, (unsigned long long)variable->from,
			(unsigned long long)hits[i].count, (unsigned long long)hits[i].first);
		error = -EADDRNOTAVAIL;
	}
	if (!error)
		ckt_session_operations.note(worker,
			"%zu variables of modules have moved since the image was "
			"written (the first is %.128s); nothing points to their old "
			"addresses",
			moved->count, moved->list[0].global->name);
	free(ranges);
	free(hits);
	return error;
}
