/* SPDX-License-Identifier: Apache-2.0 */
/* The launch of the BLAKE3 kernel (digest.cu); see digest.h. */
#include "checkpoint/kernels/digest.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/kernels/digest_ptx.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"

enum { THREADS = 256, UNIT = 1024, SIZE_MAX_ITEM = 2 << 20 };

static struct {
	CUcontext context;
	CUfunction function;
} kernels[CKT_DEVICES_MAX];

const char *ckt_digest_kernel(void)
{
	return digest_ptx;
}

bool ckt_digest_pays(uint64_t bytes)
{
	return bytes >= (uint64_t)512 << 20 || getenv("CKT_DIGEST_ANY");
}

static bool on_cpu(struct ckt_worker *worker, unsigned device)
{
	return !getenv("CKT_DIGEST_ANY") &&
		strncmp(ckt_memory_operations.describe(worker, device).name, "Cricket Soft GPU",
			strlen("Cricket Soft GPU")) == 0;
}

void ckt_digest_load(struct ckt_worker *worker, unsigned device)
{
	CUcontext context = ckt_session_operations.real_context(worker, ckt_handle_primary(device));
	CUmodule module;
	if (kernels[device].function || on_cpu(worker, device) || !context ||
		ckt_driver.cuCtxSetCurrent(context))
		return;
	CUresult result = ckt_driver.cuModuleLoadDataEx(&module, digest_ptx, 0, NULL, NULL);
	ckt_journal_add(&ckt_checkpoint_of(worker)->journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_DIGEST, .device = device});
	if (!result)
		result = ckt_session_operations.load_whole(module);
	if (!result)
		result = ckt_driver.cuModuleGetFunction(
			&kernels[device].function, module, "ckt_digest");
	kernels[device].context = context;
	if (result)
		ckt_info("cannot load the kernel that hashes images (CUDA error %d): "
			 "the CPU hashes instead",
			result);
}

bool ckt_digest_takes(unsigned device, uint64_t address, uint64_t size)
{
	return kernels[device].function && address % 16 == 0 && size % UNIT == 0 && size > 0 &&
		size <= SIZE_MAX_ITEM;
}

CUresult ckt_digest_launch(CUfunction function, CUstream stream, CUdeviceptr scratch,
	const struct ckt_hash_item *items, size_t count, struct ckt_digest *ret_digests)
{
	uint64_t table = scratch, out = scratch + count * sizeof *items;
	void *params[] = {&table, &out};
	CUresult result =
		ckt_driver.cuMemcpyHtoDAsync_v2(table, items, count * sizeof *items, stream);
	if (!result)
		result = ckt_driver.cuLaunchKernel(
			function, (unsigned)count, 1, 1, THREADS, 1, 1, 0, stream, params, NULL);
	if (!result)
		result = ckt_driver.cuMemcpyDtoHAsync_v2(
			ret_digests, out, count * sizeof *ret_digests, stream);
	CUresult waited = ckt_driver.cuStreamSynchronize(stream);
	return result ? result : waited;
}

CUresult ckt_digest_run(struct ckt_worker *worker, unsigned device, CUstream stream,
	const struct ckt_hash_item *items, size_t count, struct ckt_digest *ret_digests)
{
	uint64_t size = count * (sizeof *items + sizeof *ret_digests), piece;
	if (!count)
		return CUDA_SUCCESS;
	size = (size + CKT_MEMORY_EXTENT - 1) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	CUresult result = ckt_driver.cuCtxSetCurrent(kernels[device].context);
	if (!result)
		result = ckt_memory_operations.map(worker, device, CKT_SCRATCH_BASE, size, &piece);
	if (result)
		return result;
	result = ckt_digest_launch(
		kernels[device].function, stream, CKT_SCRATCH_BASE, items, count, ret_digests);
	ckt_memory_operations.unmap(CKT_SCRATCH_BASE, size, piece);
	return result;
}
