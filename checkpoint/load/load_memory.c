/* SPDX-License-Identifier: Apache-2.0 */
/* Clears the memory of a session for which the image has no chunks. */
#include <errno.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"

unsigned ckt_load_compression(const ckt_image *image, uint64_t physical)
{
	for (unsigned i = 0; i < image->compressibles.compressibles_len; i++)
		if (image->compressibles.compressibles_val[i].physical == physical)
			return image->compressibles.compressibles_val[i].compression;
	return CU_MEM_ALLOCATION_COMP_NONE;
}

static CUresult clear(uint64_t address, uint64_t size)
{
	return ckt_driver.cuMemsetD8_v2(address, 0, size);
}

/*
 * In a preloaded session only memory that has become zeros needs clearing; that includes variables
 * of new modules.
 */
static int clear_ahead(struct ckt_loading *l, CUresult result)
{
	if (!result)
		result = ckt_preload_clear(l->worker);
	return result
		? ckt_load_refuse(l, -EIO, "cannot clear the GPU's memory: CUDA error %d", result)
		: 0;
}

/*
 * The image holds no chunks of zeros, and fresh memory and fresh variables hold arbitrary bytes.  A
 * fill is complete only when its own context has been synchronized, because later reads use other
 * streams.
 */
int ckt_load_clear_memory(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	CUresult result = CUDA_SUCCESS;
	for (unsigned d = 0; d < ckt_device_count(worker) && !result; d++) {
		const ckt_image_device *saved = &l->image.devices.devices_val[d];
		unsigned extents = l->skip ? 0 : saved->extents.extents_len;
		if (!ckt_load_bytes_on(&l->image, d))
			continue;
		result = ckt_session_operations.use_context(worker, ckt_handle_primary(d));
		for (unsigned i = 0; i < extents && !result; i++)
			result = clear(saved->extents.extents_val[i].address,
				saved->extents.extents_val[i].size);
		for (unsigned i = 0; i < l->image.physicals.physicals_len && !result; i++)
			if (l->image.physicals.physicals_val[i].device == d &&
				!(l->skip &&
					ckt_preload_knows(l->image.physicals.physicals_val[i].id)))
				result = clear(l->image.physicals.physicals_val[i].contents,
					l->image.physicals.physicals_val[i].size);
		if (!result)
			result = ckt_driver.cuCtxSynchronize();
	}
	if (l->skip)
		return clear_ahead(l, result);
	for (unsigned m = 0; m < l->image.modules.modules_len && !result; m++) {
		const ckt_image_module *module = &l->image.modules.modules_val[m];
		if (!module->globals.globals_len)
			continue;
		result = ckt_session_operations.use_context(worker, module->context);
		for (unsigned i = 0; i < module->globals.globals_len && !result; i++)
			result = clear(module->globals.globals_val[i].address,
				module->globals.globals_val[i].size);
		if (!result)
			result = ckt_driver.cuCtxSynchronize();
	}
	return result
		? ckt_load_refuse(l, -EIO, "cannot clear the GPU's memory: CUDA error %d", result)
		: 0;
}
