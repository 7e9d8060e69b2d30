/* SPDX-License-Identifier: Apache-2.0 */
/* Hints and queries about managed memory, and copies in batches. */
#include <string.h>

#include "client/cudart/api.h"

_Static_assert(sizeof(void *) == sizeof(CUdeviceptr), "lists of pointers are lists of addresses");
_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes), "one layout");

static CUmemLocation location_of(struct cudaMemLocation location)
{
	CUmemLocation driver;
	_Static_assert(sizeof driver == sizeof location, "one layout");
	memcpy(&driver, &location, sizeof driver);
	return driver;
}

CKT_RT_API cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
	struct cudaMemLocation location)
{
	CKT_RT_CALL(cuMemAdvise(
		ckt_rt_address(devPtr), count, (CUmem_advise)advice, location_of(location)));
}

CKT_RT_API cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count,
	struct cudaMemLocation location, unsigned int flags, cudaStream_t stream)
{
	CKT_RT_CALL(cuMemPrefetchAsync(
		ckt_rt_address(devPtr), count, location_of(location), flags, stream));
}

CKT_RT_API cudaError_t cudaMemPrefetchBatchAsync(void **dptrs, size_t *sizes, size_t count,
	struct cudaMemLocation *prefetchLocs, size_t *prefetchLocIdxs, size_t numPrefetchLocs,
	unsigned long long flags, cudaStream_t stream)
{
	CKT_RT_CALL(cuMemPrefetchBatchAsync((CUdeviceptr *)dptrs, sizes, count,
		(CUmemLocation *)prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, stream));
}

CKT_RT_API cudaError_t cudaMemDiscardBatchAsync(
	void **dptrs, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream)
{
	CKT_RT_CALL(cuMemDiscardBatchAsync((CUdeviceptr *)dptrs, sizes, count, flags, stream));
}

CKT_RT_API cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **dptrs, size_t *sizes,
	size_t count, struct cudaMemLocation *prefetchLocs, size_t *prefetchLocIdxs,
	size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream)
{
	CKT_RT_CALL(cuMemDiscardAndPrefetchBatchAsync((CUdeviceptr *)dptrs, sizes, count,
		(CUmemLocation *)prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, stream));
}

CKT_RT_API cudaError_t cudaMemRangeGetAttribute(void *data, size_t dataSize,
	enum cudaMemRangeAttribute attribute, const void *devPtr, size_t count)
{
	CKT_RT_CALL(cuMemRangeGetAttribute(
		data, dataSize, (CUmem_range_attribute)attribute, ckt_rt_address(devPtr), count));
}

CKT_RT_API cudaError_t cudaMemRangeGetAttributes(void **data, size_t *dataSizes,
	enum cudaMemRangeAttribute *attributes, size_t numAttributes, const void *devPtr,
	size_t count)
{
	CKT_RT_CALL(cuMemRangeGetAttributes(data, dataSizes, (CUmem_range_attribute *)attributes,
		numAttributes, ckt_rt_address(devPtr), count));
}

CKT_RT_API cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
	const size_t *sizes, size_t count, struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs,
	size_t numAttrs, cudaStream_t stream)
{
	CKT_RT_CALL(cuMemcpyBatchAsync((CUdeviceptr *)(uintptr_t)dsts,
		(CUdeviceptr *)(uintptr_t)srcs, (size_t *)(uintptr_t)sizes, count,
		(CUmemcpyAttributes *)attrs, attrsIdxs, numAttrs, stream));
}
