/* SPDX-License-Identifier: Apache-2.0 */
/* Spare memory for frozen state; see spare_memory.h. */
#include "checkpoint/freeze/spare_memory.h"

#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"

CUresult ckt_spare_memory_use(struct ckt_worker *worker)
{
	return ckt_driver.cuCtxSetCurrent(ckt_session_operations.first_context(worker));
}

void ckt_spare_memory_take(struct ckt_worker *worker, struct ckt_spare *ret_spare)
{
	/* The part that stays free for the program while the image is written. */
	enum { RESERVE_SHARE = 16 };
	size_t free_bytes = 0, total = 0;
	*ret_spare = (struct ckt_spare){0};
	/* Sessions with more devices stay frozen while they are saved. */
	if (ckt_device_count(worker) != 1 || ckt_checkpoint_of(worker)->old_image ||
		ckt_spare_memory_use(worker) || ckt_driver.cuMemGetInfo_v2(&free_bytes, &total))
		return;
	uint64_t size = ckt_memory_operations.held_bytes(worker, 0) + CKT_MEMORY_EXTENT;
	size = (size + CKT_MEMORY_EXTENT - 1) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	if (size > CKT_SCRATCH_SIZE / 2 || size + total / RESERVE_SHARE > free_bytes)
		return;
	if (ckt_memory_operations.map(worker, 0, CKT_SPARE_BASE, size, &ret_spare->piece) ==
		CUDA_SUCCESS)
		ret_spare->size = size;
}

void ckt_spare_memory_give(struct ckt_worker *worker, struct ckt_spare *spare)
{
	(void)worker;
	if (spare->size)
		ckt_memory_operations.unmap(CKT_SPARE_BASE, spare->size, spare->piece);
	spare->size = 0;
}
