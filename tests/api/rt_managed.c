/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's managed and pinned memory: hints, ranges, batches, attachment, addresses and flags.
 */
#include "runtime.h"

enum { BYTES_OF_ALL = 1 << 20 };

static char *managed(size_t size)
{
	void *p = NULL;
	QUIET(cudaMallocManaged, &p, size, cudaMemAttachGlobal);
	return (char *)p;
}

static const struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0},
				    host = {cudaMemLocationTypeHost, 0};

static int asked(enum cudaMemRangeAttribute what, const void *p)
{
	int value = -77;
	CALL(cudaMemRangeGetAttribute, &value, sizeof(value), what, p, BYTES_OF_ALL);
	return value;
}

CASE(alloc)
{
	void *p = NULL;
	char *bytes;
	CALL(cudaMallocManaged, &p, 4096, cudaMemAttachGlobal);
	YES("some", p != NULL);
	bytes = (char *)p;
	memset(bytes, 3, 4096);
	CALL(cudaMemset, bytes + 8, 4, 8);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", bytes, 24);
	bytes[9] = 5;
	CALL(cudaMemcpy, bytes + 1, bytes + 8, 4, cudaMemcpyDefault);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", bytes, 24);
	CALL(cudaFree, p);
	CALL(cudaMallocManaged, &p, 4096, cudaMemAttachHost);
	CALL(cudaFree, p);
}

CASE(alloc_wrong)
{
	void *p = NULL;
	CALL(cudaMallocManaged, &p, 4096, 0);
	CALL(cudaMallocManaged, &p, 4096, cudaMemAttachSingle);
	CALL(cudaMallocManaged, &p, 4096, 0x80);
	CALL(cudaMallocManaged, NULL, 4096, cudaMemAttachGlobal);
	CALL(cudaMallocManaged, &p, (size_t)1 << 60, cudaMemAttachGlobal);
	CALL(cudaGetLastError);
}

CASE(advice)
{
	char *p = managed(BYTES_OF_ALL);
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetReadMostly, device);
	NUMBER("value", asked(cudaMemRangeAttributeReadMostly, p));
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseUnsetReadMostly, device);
	NUMBER("value", asked(cudaMemRangeAttributeReadMostly, p));
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetPreferredLocation, host);
	NUMBER("value", asked(cudaMemRangeAttributePreferredLocation, p));
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetPreferredLocation, device);
	NUMBER("value", asked(cudaMemRangeAttributePreferredLocation, p));
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseUnsetPreferredLocation, device);
	NUMBER("value", asked(cudaMemRangeAttributePreferredLocation, p));
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetAccessedBy, host);
	NUMBER("value", asked(cudaMemRangeAttributeAccessedBy, p));
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseUnsetAccessedBy, host);
	NUMBER("value", asked(cudaMemRangeAttributeAccessedBy, p));
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetAccessedBy, device);
	NUMBER("value", asked(cudaMemRangeAttributeAccessedBy, p));
	NUMBER("last", asked(cudaMemRangeAttributeLastPrefetchLocation, p));
}

CASE(advice_wrong)
{
	static char ordinary[4096];
	char *p = managed(BYTES_OF_ALL), *q = memory(4096);
	struct cudaMemLocation nowhere = {(enum cudaMemLocationType)99, 0},
			       no_device = {cudaMemLocationTypeDevice, 999};
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, (enum cudaMemoryAdvise)99, device);
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetPreferredLocation, nowhere);
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetPreferredLocation, no_device);
	CALL(cudaMemAdvise, p, 0, cudaMemAdviseSetReadMostly, device);
	CALL(cudaMemAdvise, p, (size_t)1 << 40, cudaMemAdviseSetReadMostly, device);
	CALL(cudaMemAdvise, NULL, 4096, cudaMemAdviseSetReadMostly, device);
	CALL(cudaMemAdvise, q, 4096, cudaMemAdviseSetReadMostly, device);
	CALL(cudaMemAdvise, ordinary, 4096, (enum cudaMemoryAdvise)99, device);
	CALL(cudaGetLastError);
}

CASE(ranges)
{
	char *p = managed(BYTES_OF_ALL);
	int mostly = -7, preferred = -77, last = -77, by[2] = {-77, -77};
	void *data[] = {&mostly, &preferred, by, &last};
	size_t sizes[] = {4, 4, 8, 4};
	enum cudaMemRangeAttribute names[] = {cudaMemRangeAttributeReadMostly,
		cudaMemRangeAttributePreferredLocation, cudaMemRangeAttributeAccessedBy,
		cudaMemRangeAttributeLastPrefetchLocation};
	CALL(cudaMemRangeGetAttributes, data, sizes, names, 4, p, BYTES_OF_ALL);
	NUMBER("read mostly", mostly);
	NUMBER("preferred", preferred);
	NUMBER("by", by[0]);
	NUMBER("by", by[1]);
	NUMBER("last", last);
	QUIET(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetAccessedBy, host);
	QUIET(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetReadMostly, host);
	CALL(cudaMemRangeGetAttributes, data, sizes, names, 3, p, BYTES_OF_ALL);
	NUMBER("read mostly", mostly);
	NUMBER("preferred", preferred);
	NUMBER("by", by[0]);
	NUMBER("by", by[1]);
}

CASE(ranges_wrong)
{
	char *p = managed(BYTES_OF_ALL);
	int value = -7;
	void *data[] = {&value};
	size_t sizes[] = {4};
	enum cudaMemRangeAttribute names[] = {cudaMemRangeAttributeReadMostly};
	CALL(cudaMemRangeGetAttribute, &value, 2, cudaMemRangeAttributeReadMostly, p, BYTES_OF_ALL);
	CALL(cudaMemRangeGetAttribute, NULL, 4, cudaMemRangeAttributeReadMostly, p, BYTES_OF_ALL);
	CALL(cudaMemRangeGetAttribute, &value, 4, (enum cudaMemRangeAttribute)99, p, BYTES_OF_ALL);
	CALL(cudaMemRangeGetAttribute, &value, 4, cudaMemRangeAttributeReadMostly, p, 0);
	CALL(cudaMemRangeGetAttribute, &value, 4, cudaMemRangeAttributeReadMostly, NULL, 4096);
	CALL(cudaMemRangeGetAttributes, data, sizes, names, 0, p, BYTES_OF_ALL);
	CALL(cudaMemRangeGetAttributes, NULL, sizes, names, 1, p, BYTES_OF_ALL);
	CALL(cudaMemRangeGetAttributes, data, NULL, names, 1, p, BYTES_OF_ALL);
	CALL(cudaGetLastError);
}

CASE(prefetch)
{
	char *p = managed(BYTES_OF_ALL);
	cudaStream_t stream = new_stream();
	memset(p, 5, BYTES_OF_ALL);
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, device, 0, stream);
	CALL_AS(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz, p, BYTES_OF_ALL, device, 0, NULL);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", p, 64);
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, host, 0, NULL);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", p + 4096, 64);
	CALL(cudaMemPrefetchAsync, p + 4096, 100, device, 0, cudaStreamPerThread);
	CALL(cudaDeviceSynchronize);
}

CASE(prefetch_last)
{
	char *p = managed(BYTES_OF_ALL);
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, device, 0, NULL);
	CALL(cudaDeviceSynchronize);
	NUMBER("last", asked(cudaMemRangeAttributeLastPrefetchLocation, p));
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, host, 0, NULL);
	CALL(cudaDeviceSynchronize);
	NUMBER("last", asked(cudaMemRangeAttributeLastPrefetchLocation, p));
}

CASE(prefetch_wrong)
{
	char *p = managed(BYTES_OF_ALL), *q = memory(4096);
	struct cudaMemLocation nowhere = {(enum cudaMemLocationType)99, 0},
			       no_device = {cudaMemLocationTypeDevice, 999};
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, device, 1, NULL);
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, no_device, 0, NULL);
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, nowhere, 0, NULL);
	CALL(cudaMemPrefetchAsync, p, 0, device, 0, NULL);
	CALL(cudaMemPrefetchAsync, NULL, 4096, device, 0, NULL);
	CALL(cudaMemPrefetchAsync, q, 4096, device, 0, NULL);
	CALL(cudaMemPrefetchAsync, p, (size_t)1 << 40, device, 0, NULL);
	CALL(cudaGetLastError);
}

CASE(batches)
{
	void *p[2] = {managed(BYTES_OF_ALL), managed(4096)};
	size_t sizes[2] = {BYTES_OF_ALL, 4096}, at[1] = {0};
	struct cudaMemLocation location = device;
	cudaStream_t stream = new_stream();
	memset(p[0], 1, BYTES_OF_ALL);
	CALL(cudaMemPrefetchBatchAsync, p, sizes, 2, &location, at, 1, 0, stream);
	CALL_AS(cudaMemPrefetchBatchAsync, cudaMemPrefetchBatchAsync_ptsz, p, sizes, 2, &location,
		at, 1, 0, stream);
	QUIET(cudaStreamSynchronize, stream);
	BYTES("bytes", p[0], 16);
	CALL(cudaMemDiscardBatchAsync, p, sizes, 2, 0, stream);
	CALL_AS(cudaMemDiscardBatchAsync, cudaMemDiscardBatchAsync_ptsz, p, sizes, 2, 0, stream);
	CALL(cudaMemDiscardAndPrefetchBatchAsync, p, sizes, 2, &location, at, 1, 0, stream);
	CALL_AS(cudaMemDiscardAndPrefetchBatchAsync, cudaMemDiscardAndPrefetchBatchAsync_ptsz, p,
		sizes, 2, &location, at, 1, 0, stream);
	CALL(cudaStreamSynchronize, stream);
	memset(p[0], 2, 64);
	CALL(cudaMemset, (char *)p[0] + 64, 3, 8);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", p[0], 72);
}

CASE(batches_wrong)
{
	void *p[1] = {managed(BYTES_OF_ALL)};
	size_t sizes[1] = {BYTES_OF_ALL}, at[1] = {0};
	struct cudaMemLocation location = device;
	cudaStream_t stream = new_stream();
	CALL(cudaMemPrefetchBatchAsync, p, sizes, 0, &location, at, 1, 0, stream);
	CALL(cudaMemPrefetchBatchAsync, p, sizes, 1, &location, at, 1, 1, stream);
	CALL(cudaMemPrefetchBatchAsync, NULL, sizes, 1, &location, at, 1, 0, stream);
	CALL(cudaMemPrefetchBatchAsync, p, NULL, 1, &location, at, 1, 0, stream);
	CALL(cudaMemPrefetchBatchAsync, p, sizes, 1, &location, at, 0, 0, stream);
	CALL(cudaMemDiscardBatchAsync, p, sizes, 0, 0, stream);
	CALL(cudaMemDiscardBatchAsync, p, sizes, 1, 1, stream);
	CALL(cudaMemDiscardBatchAsync, NULL, sizes, 1, 0, stream);
	CALL(cudaMemDiscardAndPrefetchBatchAsync, p, sizes, 0, &location, at, 1, 0, stream);
	CALL(cudaMemDiscardAndPrefetchBatchAsync, p, sizes, 1, &location, at, 1, 1, stream);
	CALL(cudaGetLastError);
}

CASE(attach)
{
	char *p = managed(4096);
	cudaStream_t stream = new_stream();
	CALL(cudaStreamAttachMemAsync, stream, p, 0, cudaMemAttachSingle);
	CALL(cudaStreamSynchronize, stream);
	memset(p, 1, 16);
	CALL(cudaMemsetAsync, p + 4, 2, 4, stream);
	CALL(cudaStreamSynchronize, stream);
	BYTES("bytes", p, 16);
	CALL(cudaStreamAttachMemAsync, NULL, p, 0, cudaMemAttachGlobal);
	CALL(cudaStreamAttachMemAsync, NULL, p, 4096, cudaMemAttachHost);
	CALL_AS(cudaStreamAttachMemAsync, cudaStreamAttachMemAsync_ptsz, NULL, p, 0,
		cudaMemAttachGlobal);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", p, 16);
}

CASE(attach_wrong)
{
	char *p = managed(4096), *q = memory(64);
	cudaStream_t stream = new_stream();
	CALL(cudaStreamAttachMemAsync, NULL, p, 0, 0x80);
	CALL(cudaStreamAttachMemAsync, NULL, p, 0, cudaMemAttachSingle);
	CALL(cudaStreamAttachMemAsync, stream, p, 100, cudaMemAttachSingle);
	CALL(cudaStreamAttachMemAsync, stream, q, 0, cudaMemAttachSingle);
	CALL(cudaStreamAttachMemAsync, stream, NULL, 0, cudaMemAttachSingle);
	CALL(cudaGetLastError);
}

CASE(pinned)
{
	void *p = NULL, *address = NULL;
	unsigned flags = 77;
	CALL(cudaMallocHost, &p, 4096);
	YES("some", p != NULL);
	CALL(cudaHostGetFlags, &flags, p);
	HEX("flags", flags);
	CALL(cudaHostGetDevicePointer, &address, p, 0);
	YES("the same", address == p);
	memset(p, 1, 64);
	CALL(cudaMemset, (char *)address + 8, 2, 4);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", p, 16);
	CALL(cudaHostGetDevicePointer, &address, (char *)p + 100, 0);
	YES("the same", address == (char *)p + 100);
	CALL(cudaFreeHost, p);
}

CASE(pinned_flags)
{
	static const unsigned list[] = {cudaHostAllocDefault, cudaHostAllocPortable,
		cudaHostAllocMapped, cudaHostAllocWriteCombined,
		cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		void *p = NULL, *address = NULL;
		unsigned flags = 77;
		CALL(cudaHostAlloc, &p, 4096, list[i]);
		YES("some", p != NULL);
		CALL(cudaHostGetFlags, &flags, p);
		HEX("flags", flags);
		CALL(cudaHostGetDevicePointer, &address, p, 0);
		YES("the same", address == p);
		CALL(cudaFreeHost, p);
	}
}

CASE(pinned_wrong)
{
	static char ordinary[64];
	void *p = NULL, *address = NULL;
	unsigned flags = 77;
	CALL(cudaHostAlloc, &p, 4096, 0x80);
	CALL(cudaHostAlloc, NULL, 4096, 0);
	CALL(cudaHostAlloc, &p, 0, 0);
	YES("null", p == NULL);
	CALL(cudaMallocHost, NULL, 4096);
	CALL(cudaMallocHost, &p, 0);
	YES("null", p == NULL);
	CALL(cudaHostGetDevicePointer, &address, ordinary, 0);
	CALL(cudaHostGetDevicePointer, &address, NULL, 0);
	CALL(cudaHostGetDevicePointer, NULL, ordinary, 0);
	CALL(cudaHostGetFlags, &flags, ordinary);
	CALL(cudaHostGetFlags, &flags, NULL);
	CALL(cudaHostGetFlags, NULL, ordinary);
	CALL(cudaFreeHost, ordinary);
	CALL(cudaFreeHost, NULL);
	QUIET(cudaMallocHost, &p, 4096);
	CALL(cudaHostGetDevicePointer, &address, p, 1);
	CALL(cudaGetLastError);
}

CASE(registered)
{
	void *p = NULL;
	unsigned flags = 77;
	char *q = memory(64);
	if (posix_memalign(&p, 4096, 8192))
		return;
	memset(p, 3, 8192);
	CALL(cudaHostRegister, p, 8192, cudaHostRegisterDefault);
	CALL(cudaHostGetFlags, &flags, p);
	CALL(cudaMemcpyAsync, q, p, 16, cudaMemcpyHostToDevice, NULL);
	CONTENT("bytes", q, 20);
	CALL(cudaHostUnregister, p);
	CALL(cudaHostRegister, p, 4096, cudaHostRegisterPortable);
	CALL(cudaHostUnregister, p);
	CALL(cudaHostRegister, (char *)p + 100, 1000, cudaHostRegisterMapped);
	CALL(cudaHostUnregister, (char *)p + 100);
}

CASE(registered_wrong)
{
	void *p = NULL;
	if (posix_memalign(&p, 4096, 8192))
		return;
	CALL(cudaHostRegister, NULL, 4096, 0);
	CALL(cudaHostRegister, p, 0, 0);
	CALL(cudaHostRegister, p, 4096, 0x80);
	CALL(cudaHostUnregister, p);
	CALL(cudaHostUnregister, NULL);
	CALL(cudaGetLastError);
}

CASE(attach_streams)
{
	char *p = managed(4096);
	cudaStream_t blocking = NULL;
	QUIET(cudaStreamCreate, &blocking);
	CALL(cudaStreamAttachMemAsync, cudaStreamPerThread, p, 0, cudaMemAttachSingle);
	CALL_AS(cudaStreamAttachMemAsync, cudaStreamAttachMemAsync_ptsz, NULL, p, 0,
		cudaMemAttachSingle);
	CALL(cudaStreamAttachMemAsync, cudaStreamLegacy, p, 0, cudaMemAttachSingle);
	CALL(cudaStreamAttachMemAsync, blocking, p, 4096, cudaMemAttachSingle);
	CALL(cudaStreamAttachMemAsync, blocking, p + 16, 0, cudaMemAttachGlobal);
	CALL(cudaStreamAttachMemAsync, blocking, p, 8192, cudaMemAttachGlobal);
	CALL(cudaDeviceSynchronize);
	CALL(cudaFree, p);
	CALL(cudaGetLastError);
}

CASE(advice_elsewhere)
{
	char *p = managed(BYTES_OF_ALL);
	struct cudaMemLocation node = {cudaMemLocationTypeHostNuma, 0},
			       here = {cudaMemLocationTypeHostNumaCurrent, 0};
	struct cudaMemLocation no_device = {cudaMemLocationTypeDevice, 999};
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetAccessedBy, no_device);
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetReadMostly, no_device);
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseUnsetPreferredLocation, no_device);
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetPreferredLocation, node);
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetPreferredLocation, here);
	CALL(cudaMemAdvise, p, BYTES_OF_ALL, cudaMemAdviseSetAccessedBy, node);
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, node, 0, NULL);
	CALL(cudaMemPrefetchAsync, p, BYTES_OF_ALL, here, 0, NULL);
	CALL(cudaDeviceSynchronize);
	CALL(cudaGetLastError);
}
