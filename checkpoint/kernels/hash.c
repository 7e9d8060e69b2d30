/* SPDX-License-Identifier: Apache-2.0 */
/* The launch of the hash kernel (hash.cu); see hash.h. */
#include "checkpoint/kernels/hash.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/kernels/hash_ptx.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"
#include "rpc/not_supported.h"

enum { THREADS = 256 };

static struct {
	bool reserved;
	CUfunction functions[CKT_DEVICES_MAX];
} hashes;

void ckt_hash_reserve(struct ckt_worker *worker)
{
	CUdeviceptr at = 0;
	(void)worker;
	if (ckt_driver.cuMemAddressReserve(&at, CKT_SCRATCH_SIZE, 0, CKT_SCRATCH_BASE, 0) ||
		at != CKT_SCRATCH_BASE) {
		if (at)
			ckt_driver.cuMemAddressFree(at, CKT_SCRATCH_SIZE);
		ckt_warning("no device addresses for hashes: every image will be complete");
		return;
	}
	hashes.reserved = true;
}

void ckt_hash_load(struct ckt_worker *worker, unsigned device)
{
	CUmodule module;
	if (!hashes.reserved || ckt_checkpoint_of(worker)->old_image)
		return;
	CUresult result = ckt_driver.cuModuleLoadDataEx(&module, hash_ptx, 0, NULL, NULL);
	if (!result)
		result = ckt_session_operations.load_whole(module);
	if (!result)
		result = ckt_driver.cuModuleGetFunction(
			&hashes.functions[device], module, "ckt_hash");
	if (result)
		ckt_warning(
			"cannot load the hash kernel (CUDA error %d): every image will be complete",
			result);
}

static CUresult run(CUfunction function, uint64_t scratch, const uint64_t key[4],
	const struct ckt_hash_item *items, size_t count, struct ckt_hash_value *ret_values)
{
	uint64_t table = scratch, out = scratch + count * sizeof *items, k[4];
	memcpy(k, key, sizeof k);
	void *params[] = {&table, &out, &k[0], &k[1], &k[2], &k[3]};
	CUresult result = ckt_driver.cuMemcpyHtoD_v2(table, items, count * sizeof *items);
	if (!result)
		result = ckt_driver.cuLaunchKernel(
			function, (unsigned)count, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
	if (!result)
		result = ckt_driver.cuMemcpyDtoH_v2(ret_values, out, count * sizeof *ret_values);
	return result;
}

CUresult ckt_hash_run(struct ckt_worker *worker, unsigned device, const uint64_t key[4],
	const struct ckt_hash_item *items, size_t count, struct ckt_hash_value *ret_values)
{
	CUcontext context = ckt_session_operations.real_context(worker, ckt_handle_primary(device));
	if (!count)
		return CUDA_SUCCESS;
	if (!context || !hashes.functions[device])
		return CKT_INTERNAL_NOT_SUPPORTED;
	uint64_t size = count * (sizeof *items + sizeof *ret_values), piece;
	size = (size + CKT_MEMORY_EXTENT - 1) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	CUresult result = ckt_driver.cuCtxSetCurrent(context);
	if (!result)
		result = ckt_memory_operations.map(worker, device, CKT_SCRATCH_BASE, size, &piece);
	if (result)
		return result;
	result = run(hashes.functions[device], CKT_SCRATCH_BASE, key, items, count, ret_values);
	ckt_memory_operations.unmap(CKT_SCRATCH_BASE, size, piece);
	return result;
}
