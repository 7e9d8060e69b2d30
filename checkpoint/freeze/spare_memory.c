/*
 * Spare memory for frozen state; see struct ckt_spare.  Threading: one operation at a time.
 */
#include "checkpoint/content_threads.h"
#include "checkpoint/freeze/spare_memory.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/memory/window.h"
#include "server/worker/worker.h"

CUresult ckt_worker_spare_use(struct ckt_worker *worker)
{
	return ckt_driver.cuCtxSetCurrent(worker->first_context);
}

static uint64_t held_bytes(struct ckt_memory *memory)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&memory->lock);
	for (size_t i = 0; i < memory->extent_count; i++)
		bytes += memory->extents[i].use == CKT_EXTENT_CACHED ? 0 : memory->extents[i].size;
	pthread_mutex_unlock(&memory->lock);
	return bytes;
}

void ckt_worker_spare_take(struct ckt_worker *worker, struct ckt_spare *ret_spare)
{
	/* What stays free for the program while the image is written. */
	enum { RESERVE_SHARE = 16 };
	size_t free_bytes = 0, total = 0;
	*ret_spare = (struct ckt_spare){0};
	/* More devices are saved frozen. */
	if (worker->device_count != 1 || worker->old_image || ckt_worker_spare_use(worker) ||
		ckt_driver.cuMemGetInfo_v2(&free_bytes, &total))
		return;
	uint64_t size = held_bytes(&worker->devices[0].memory) +
		ckt_memory_charged(&worker->devices[0].memory) + CKT_MEMORY_EXTENT;
	size = (size + CKT_MEMORY_EXTENT - 1) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	if (size > CKT_SCRATCH_SIZE / 2 || size + total / RESERVE_SHARE > free_bytes)
		return;
	if (ckt_window_map(worker, 0, CKT_SPARE_BASE, size, &ret_spare->piece) == CUDA_SUCCESS)
		ret_spare->size = size;
}

void ckt_worker_spare_give(struct ckt_worker *worker, struct ckt_spare *spare)
{
	(void)worker;
	if (spare->size)
		ckt_window_unmap(CKT_SPARE_BASE, spare->size, spare->piece);
	spare->size = 0;
}
