/* SPDX-License-Identifier: Apache-2.0 */
/* Spare memory for frozen state; see spare_memory.h. */
#include "checkpoint/freeze/spare_memory.h"

#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"

CUresult ckt_spare_memory_use(struct ckt_worker *worker, unsigned device)
{
	CUcontext context = device == 0
		? ckt_session_operations.first_context(worker)
		: ckt_session_operations.real_context(worker, ckt_handle_primary(device));
	return context ? ckt_driver.cuCtxSetCurrent(context) : CUDA_ERROR_INVALID_CONTEXT;
}

static void take_part(struct ckt_worker *worker, struct ckt_spare *spare, unsigned device)
{
	/* The part that stays free for the program while the image is written. */
	enum { RESERVE_SHARE = 16 };
	struct ckt_spare_part *part = &spare->parts[device];
	size_t free_bytes = 0, total = 0;
	if (ckt_spare_memory_use(worker, device) || ckt_driver.cuMemGetInfo_v2(&free_bytes, &total))
		return;
	uint64_t size = ckt_memory_operations.held_bytes(worker, device) + CKT_MEMORY_EXTENT;
	size = (size + CKT_MEMORY_EXTENT - 1) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	if (size > CKT_SCRATCH_SIZE / 2 - spare->size || size + total / RESERVE_SHARE > free_bytes)
		return;
	part->address = CKT_SPARE_BASE + spare->size;
	if (ckt_memory_operations.map(worker, device, part->address, size, &part->piece))
		return;
	part->size = size;
	spare->size += size;
}

void ckt_spare_memory_take(struct ckt_worker *worker, struct ckt_spare *ret_spare)
{
	*ret_spare = (struct ckt_spare){0};
	if (!ckt_checkpoint_of(worker)->old_image)
		take_part(worker, ret_spare, 0);
}

void ckt_spare_memory_take_others(struct ckt_worker *worker, struct ckt_spare *spare)
{
	for (unsigned d = 1; d < ckt_device_count(worker) && spare->size; d++)
		if (!spare->parts[d].size && ckt_memory_operations.held_bytes(worker, d))
			take_part(worker, spare, d);
}

void ckt_spare_memory_give(struct ckt_worker *worker, struct ckt_spare *spare)
{
	(void)worker;
	for (unsigned d = 0; d < CKT_DEVICES_MAX && spare->size; d++)
		if (spare->parts[d].size)
			ckt_memory_operations.unmap(spare->parts[d].address, spare->parts[d].size,
				spare->parts[d].piece);
	*spare = (struct ckt_spare){0};
}
