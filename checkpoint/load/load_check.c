/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a session can resume here: the window, the GPUs, their memory, code for them. */
#include <errno.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/object_kind.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"

struct sum {
	unsigned device;
	uint64_t bytes;
};

static void add_bytes(const struct ckt_contents *contents, void *opaque)
{
	struct sum *sum = opaque;
	if (contents->taken && contents->device == sum->device)
		sum->bytes += contents->size;
}

uint64_t ckt_load_bytes_on(const ckt_image *image, unsigned d)
{
	struct sum sum = {.device = d};
	ckt_contents_visit_all(image, add_bytes, &sum);
	return sum.bytes;
}

/*
 * Whether the program created its context among other steps that move addresses: then the restore
 * repeats the step.
 */
static bool in_journal(const ckt_image *image, unsigned d)
{
	for (unsigned i = 0; i < image->journal.journal_len; i++)
		if (image->journal.journal_val[i].kind == CKT_JOURNAL_PRIMARY &&
			image->journal.journal_val[i].device == d)
			return true;
	return false;
}

int ckt_load_check_memory(struct ckt_loading *l, unsigned d)
{
	size_t free_bytes, total;
	uint64_t need = ckt_load_bytes_on(&l->image, d);
	if (!need)
		return 0;
	if (ckt_session_operations.use_primary(l->worker, d) ||
		ckt_driver.cuMemGetInfo_v2(&free_bytes, &total))
		return ckt_load_refuse(l, -ENODEV, "GPU %u does not respond", d);
	/* Most of a preloaded session is already here; the rest fits, or fails later. */
	if (free_bytes < need && !ckt_preload_active())
		return ckt_load_refuse(l, -ENOMEM,
			"the session needs %llu MiB of GPU memory, but %s has only "
			"%llu MiB free: %llu MiB are missing",
			(unsigned long long)(need >> 20),
			ckt_memory_operations.describe(l->worker, d).name,
			(unsigned long long)(free_bytes >> 20),
			(unsigned long long)(need - free_bytes + (1 << 20) - 1) >> 20);
	return 0;
}

static int check_device(struct ckt_loading *l, unsigned d)
{
	const struct ckt_device_description device = ckt_memory_operations.describe(l->worker, d);
	const ckt_image_device *saved = &l->image.devices.devices_val[d];
	if (saved->major != device.major || saved->minor != device.minor) {
		l->other_model = true;
		ckt_session_operations.note(l->worker,
			"was saved on %.64s (capability %d.%d) and resumes on %.64s "
			"(%d.%d): the program still sees the first GPU's properties",
			saved->name, saved->major, saved->minor, device.name, device.major,
			device.minor);
	}
	return in_journal(&l->image, d) ? 0 : ckt_load_check_memory(l, d);
}

int ckt_load_check(struct ckt_loading *l, const ckt_worker_start_args *args)
{
	struct ckt_worker *worker = l->worker;
	ckt_image *image = &l->image;
	const struct ckt_memory_layout layout = ckt_memory_operations.layout(worker);
	const int driver_version = ckt_memory_operations.driver_version(worker);
	if (!ckt_memory_operations.window_holds(image->window_base, image->window_bytes))
		return ckt_load_refuse(l, -EINVAL,
			"the session's memory is at 0x%llx, but this Cricket's window "
			"is at 0x%llx: restore it with the build that saved it",
			(unsigned long long)image->window_base,
			(unsigned long long)CKT_WINDOW_BASE);
	if (image->devices.devices_len > layout.device_count)
		return ckt_load_refuse(l, -ENODEV,
			"the session has %u GPUs, but this server gives it %u",
			image->devices.devices_len, layout.device_count);
	if (args->memory_limit_bytes)
		for (unsigned d = 0; d < image->devices.devices_len; d++)
			if (ckt_load_bytes_on(image, d) > args->memory_limit_bytes)
				return ckt_load_refuse(l, -ENOMEM,
					"the session holds %llu MiB, but this server "
					"allows %llu (--session-memory)",
					(unsigned long long)(ckt_load_bytes_on(image, d) >> 20),
					(unsigned long long)(args->memory_limit_bytes >> 20));
	if (ckt_preload_active()) {
		if (layout.device_count != image->devices.devices_len ||
			layout.slice_size != image->slice_bytes ||
			layout.base != image->window_base)
			return ckt_load_refuse(
				l, -ESTALE, "this is not the session that was preloaded");
		for (unsigned d = 0; d < ckt_device_count(worker); d++) {
			int error = check_device(l, d);
			if (error)
				return error;
		}
		return 0;
	}
	/* The session does not see more GPUs than it had, so that its slices stay the same. */
	ckt_memory_operations.place(worker,
		&(struct ckt_memory_layout){.device_count = image->devices.devices_len,
			.base = image->window_base,
			.size = image->window_bytes,
			.slice_size = image->slice_bytes});
	/* The limit is this server's present one, never the image's. */
	for (unsigned d = 0; d < ckt_device_count(worker); d++) {
		int error = check_device(l, d);
		if (error)
			return error;
	}
	if (ckt_memory_operations.make_pools(worker))
		return ckt_load_refuse(
			l, -ENOMEM, "the worker has no memory for the pools of its GPUs");
	if (image->driver_version && image->driver_version != driver_version)
		ckt_session_operations.note(worker,
			"was saved with a driver for CUDA %d.%d and resumes with %s "
			"one, for CUDA %d.%d",
			image->driver_version / 1000, image->driver_version % 1000 / 10,
			image->driver_version < driver_version ? "a newer" : "an older",
			driver_version / 1000, driver_version % 1000 / 10);
	return 0;
}
