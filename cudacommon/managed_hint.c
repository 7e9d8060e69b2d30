/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints about managed memory.  Neither library moves memory because of hints.  It checks them as
 * CUDA does, and stores them (managed_range.c).
 */
#include "cudacommon/advice.h"

CUresult ckt_managed_check(CUdeviceptr address, size_t size)
{
	uint64_t base, whole;
	CUresult result = ckt_cudacommon_managed(address, &base, &whole);
	return !result && (!size || size > whole - (address - base)) ? CUDA_ERROR_INVALID_VALUE
								     : result;
}

static CUresult check_location(CUmemLocation location)
{
	switch (location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return ckt_cudacommon_device(location.id);
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUmemLocation location_of(CUdevice device)
{
	return device == CU_DEVICE_CPU
		? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST}
		: (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

static void fetched(struct ckt_advice *advice, const void *location)
{
	advice->fetched = *(const CUmemLocation *)location;
}

CKT_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location,
	unsigned int flags, CUstream stream)
{
	uint64_t id;
	CUresult result = ckt_managed_check(address, size);
	if (!result)
		result = flags ? CUDA_ERROR_INVALID_VALUE : check_location(location);
	if (!result)
		result = ckt_stream_resolve(stream, &id);
	return result ? result : ckt_advice_change(address, size, fetched, &location);
}

CKT_EXPORT CUresult cuMemPrefetchAsync(
	CUdeviceptr address, size_t size, CUdevice device, CUstream stream)
{
	return cuMemPrefetchAsync_v2(address, size, location_of(device), 0, stream);
}

struct advising {
	CUmem_advise advice;
	CUmemLocation location;
};

static void advise(struct ckt_advice *advice, const void *data)
{
	const struct advising *a = data;
	bool host = a->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
	uint64_t device = host ? 0 : 1ull << a->location.id;
	switch (a->advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		advice->read_mostly = a->advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		advice->preferred = a->location;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		advice->preferred = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		advice->by_devices |= device;
		advice->by_host |= host;
		break;
	default:
		advice->by_devices &= ~device;
		advice->by_host &= !host;
		break;
	}
}

CKT_EXPORT CUresult cuMemAdvise_v2(
	CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)
{
	CUresult result = ckt_managed_check(address, size);
	if (result)
		return result;
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		/* An unknown device is only an invalid value (seen on an H200). */
		if (check_location(location) ||
			(advice == CU_MEM_ADVISE_SET_ACCESSED_BY &&
				location.type > CU_MEM_LOCATION_TYPE_HOST))
			result = CUDA_ERROR_INVALID_VALUE;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return result ? result
		      : ckt_advice_change(address, size, advise,
				&(struct advising){.advice = advice, .location = location});
}

CKT_EXPORT CUresult cuMemAdvise(
	CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device)
{
	return cuMemAdvise_v2(address, size, advice, location_of(device));
}

/* Everybody can access all managed memory at any time, so attaching memory needs no work. */
CKT_EXPORT CUresult cuStreamAttachMemAsync(
	CUstream stream, CUdeviceptr address, size_t size, unsigned int flags)
{
	uint64_t id, base, whole;
	CUresult result = ckt_stream_resolve(stream, &id);
	if (!result)
		result = ckt_cudacommon_managed(address, &base, &whole);
	if (result)
		return result;
	if (base != address || (size && size != whole) ||
		(flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
			flags != CU_MEM_ATTACH_SINGLE) ||
		(flags == CU_MEM_ATTACH_SINGLE && !stream))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* ---- Batches: each range is handled separately */

static CUresult check_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count,
	unsigned long long flags, CUstream stream)
{
	if (!addresses || !sizes || !count || flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_stream_check_batch(stream);
	for (size_t i = 0; i < count && !result; i++)
		result = ckt_managed_check(addresses[i], sizes[i]);
	return result;
}

CKT_EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
	CUmemLocation *locations, size_t *indices, size_t location_count, unsigned long long flags,
	CUstream stream)
{
	CUresult result = check_batch(addresses, sizes, count, flags, stream);
	if (result)
		return result;
	if (!locations || !indices || !location_count || location_count > count || indices[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; k < location_count && !result; k++) {
		if (indices[k] >= count || (k && indices[k] <= indices[k - 1]))
			return CUDA_ERROR_INVALID_VALUE;
		result = check_location(locations[k]);
	}
	for (size_t i = 0, k = 0; i < count && !result; i++) {
		while (k + 1 < location_count && indices[k + 1] <= i)
			k++;
		result = cuMemPrefetchAsync_v2(addresses[i], sizes[i], locations[k], 0, stream);
	}
	return result;
}

/* Discarding contents is optional. */
CKT_EXPORT CUresult cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
	unsigned long long flags, CUstream stream)
{
	return check_batch(addresses, sizes, count, flags, stream);
}

CKT_EXPORT CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes,
	size_t count, CUmemLocation *locations, size_t *indices, size_t location_count,
	unsigned long long flags, CUstream stream)
{
	return cuMemPrefetchBatchAsync(
		addresses, sizes, count, locations, indices, location_count, flags, stream);
}
