/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: allocating, asking about it, filling it in every variant. */
#include "driver.h"

CASE(alloc)
{
	CUdeviceptr p = 1, q = 1, base = 1;
	size_t size = 77;
	start();
	CALL(cuMemAlloc_v2, &p, 1000);
	YES("aligned", p % 256 == 0);
	YES("some", p != 0);
	CALL(cuMemAlloc_v2, &q, 1);
	YES("apart", q >= p + 1000 || q < p);
	CALL(cuMemGetAddressRange_v2, &base, &size, p + 999);
	YES("the beginning", base == p);
	NUMBER("size", (long long)size);
	CALL(cuMemGetAddressRange_v2, NULL, &size, q);
	NUMBER("size", (long long)size);
	CALL(cuMemGetAddressRange_v2, &base, NULL, p);
	YES("the beginning", base == p);
	CALL(cuMemGetAddressRange_v2, &base, &size, 0x1234);
	CALL(cuMemFree_v2, p);
	CALL(cuMemGetAddressRange_v2, &base, &size, p);
	CALL(cuMemFree_v2, q);
	CALL(cuMemFree_v2, q);
	CALL(cuMemFree_v2, 0);
}

CASE(alloc_wrong)
{
	CUdeviceptr p = 8;
	start();
	CALL(cuMemAlloc_v2, &p, 0);
	NUMBER("p", (long long)p);
	CALL(cuMemAlloc_v2, NULL, 100);
	CALL(cuMemAlloc_v2, &p, (size_t)1 << 50);
	NUMBER("p", (long long)p);
	CALL(cuMemFree_v2, 0x1234);
	QUIET(cuMemAlloc_v2, &p, 4096);
	CALL(cuMemFree_v2, p + 16);
	CALL(cuMemFree_v2, p);
}

CASE(pitch)
{
	CUdeviceptr p = 1;
	size_t pitch = 77;
	start();
	CALL(cuMemAllocPitch_v2, &p, &pitch, 100, 10, 4);
	NUMBER("pitch", (long long)pitch);
	CALL(cuMemsetD2D8_v2, p, pitch, 9, 100, 10);
	CALL(cuMemFree_v2, p);
	CALL(cuMemAllocPitch_v2, &p, &pitch, 513, 3, 16);
	NUMBER("pitch", (long long)pitch);
	CALL(cuMemAllocPitch_v2, &p, &pitch, 100, 10, 3);
	CALL(cuMemAllocPitch_v2, &p, &pitch, 0, 10, 4);
	CALL(cuMemAllocPitch_v2, &p, &pitch, 100, 0, 4);
	CALL(cuMemAllocPitch_v2, NULL, &pitch, 100, 10, 4);
	CALL(cuMemAllocPitch_v2, &p, NULL, 100, 10, 4);
}

CASE(info)
{
	size_t before = 0, after = 0, total = 0, device = 0;
	CUdeviceptr p;
	start();
	QUIET(cuDeviceTotalMem_v2, &device, 0);
	CALL(cuMemGetInfo_v2, &before, &total);
	YES("free at most total", before <= total);
	YES("total at most the device's", total <= device);
	QUIET(cuMemAlloc_v2, &p, 64 << 20);
	CALL(cuMemGetInfo_v2, &after, &total);
	YES("less by that", before - after >= 64 << 20);
	QUIET(cuMemFree_v2, p);
	CALL(cuMemGetInfo_v2, &after, &total);
	YES("as before", after == before);
	CALL(cuMemGetInfo_v2, NULL, &total);
	CALL(cuMemGetInfo_v2, &after, NULL);
}

/* Functions from before addresses had 64 bits. */
CASE(old)
{
	CUdeviceptr_v1 p = 1, base = 1;
	unsigned size = 77, total = 77;
	void *host = NULL;
	start();
	CALL(cuMemAlloc, &p, 256);
	YES("changed", p != 1);
	CALL(cuMemGetInfo, &size, &total);
	YES("changed", size != 77);
	CALL(cuMemAllocPitch, &p, &size, 100, 10, 4);
	CALL(cuMemGetAddressRange, &base, &size, 256);
	CALL(cuMemFree, 256);
	CALL(cuMemAllocHost, &host, 256);
	YES("some", host != NULL);
	CALL(cuMemHostGetDevicePointer, &p, host, 0);
	CALL(cuMemsetD8, 256, 1, 16);
	CALL(cuMemsetD16, 256, 1, 16);
	CALL(cuMemsetD32, 256, 1, 16);
	CALL(cuMemsetD2D8, 256, 16, 1, 16, 1);
	CALL(cuMemsetD2D16, 256, 16, 1, 8, 1);
	CALL(cuMemsetD2D32, 256, 16, 1, 4, 1);
}

CASE(old_copies)
{
	CUDA_MEMCPY2D_v1 two;
	CUDA_MEMCPY3D_v1 three;
	char data[16] = {0};
	start();
	memset(&two, 0, sizeof(two));
	memset(&three, 0, sizeof(three));
	CALL(cuMemcpyHtoD, 256, data, 16);
	CALL(cuMemcpyDtoH, data, 256, 16);
	CALL(cuMemcpyDtoD, 256, 512, 16);
	CALL(cuMemcpyHtoDAsync, 256, data, 16, NULL);
	CALL(cuMemcpyDtoHAsync, data, 256, 16, NULL);
	CALL(cuMemcpyDtoDAsync, 256, 512, 16, NULL);
	CALL(cuMemcpy2D, &two);
	CALL(cuMemcpy2DUnaligned, &two);
	CALL(cuMemcpy2DAsync, &two, NULL);
	CALL(cuMemcpy3D, &three);
	CALL(cuMemcpy3DAsync, &three, NULL);
}

CASE(memset)
{
	CUdeviceptr p;
	start();
	p = memory(256);
	CALL(cuMemsetD8_v2, p, 0x11, 5);
	CALL(cuMemsetD16_v2, p + 6, 0x2233, 2);
	CALL(cuMemsetD32_v2, p + 12, 0x44556677, 2);
	CONTENT("bytes", p, 24);
	CALL(cuMemsetD2D8_v2, p, 8, 0x01, 2, 3);
	CALL(cuMemsetD2D16_v2, p + 4, 8, 0x0203, 1, 3);
	CALL(cuMemsetD2D32_v2, p + 32, 16, 0x08090a0b, 2, 2);
	CONTENT("bytes", p, 24);
	CONTENT("bytes", p + 32, 32);
	CALL(cuMemsetD8_v2, p, 0, 0);
	CALL(cuMemsetD16_v2, p + 1, 0, 1);
	CALL(cuMemsetD32_v2, p + 2, 0, 1);
	CALL(cuMemsetD2D8_v2, p, 4, 0, 8, 2);
	CALL(cuMemsetD8_v2, 0, 0, 4);
	CALL(cuMemsetD8_v2, 0, 0, 0);
	CALL(cuMemsetD8_v2, 0x1234, 0, 4);
	CALL(cuMemsetD32_v2, p, 0, (size_t)1 << 40);
}

CASE(memset_per_thread)
{
	CUdeviceptr p;
	start();
	p = memory(256);
	CALL(cuMemsetD8_v2_ptds, p, 0x11, 5);
	CALL(cuMemsetD16_v2_ptds, p + 6, 0x2233, 2);
	CALL(cuMemsetD32_v2_ptds, p + 12, 0x44556677, 2);
	CONTENT("bytes", p, 24);
	CALL(cuMemsetD2D8_v2_ptds, p, 8, 0x01, 2, 3);
	CALL(cuMemsetD2D16_v2_ptds, p + 4, 8, 0x0203, 1, 3);
	CALL(cuMemsetD2D32_v2_ptds, p + 32, 16, 0x08090a0b, 2, 2);
	CONTENT("bytes", p, 24);
	CONTENT("bytes", p + 32, 32);
	CALL(cuMemsetD8_v2_ptds, 0, 0, 4);
	CALL(cuMemsetD16_v2_ptds, p + 1, 0, 1);
}

CASE(memset_async)
{
	CUdeviceptr p;
	CUstream stream;
	start();
	p = memory(256);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CALL(cuMemsetD8Async, p, 0x11, 5, stream);
	CALL(cuMemsetD16Async, p + 6, 0x2233, 2, stream);
	CALL(cuMemsetD32Async, p + 12, 0x44556677, 2, stream);
	CONTENT("bytes", p, 24);
	CALL(cuMemsetD2D8Async, p, 8, 0x01, 2, 3, stream);
	CALL(cuMemsetD2D16Async, p + 4, 8, 0x0203, 1, 3, stream);
	CALL(cuMemsetD2D32Async, p + 32, 16, 0x08090a0b, 2, 2, stream);
	CONTENT("bytes", p, 24);
	CONTENT("bytes", p + 32, 32);
	CALL(cuMemsetD8Async, 0, 0, 4, stream);
	CALL(cuMemsetD32Async, p + 2, 0, 1, stream);
}

CASE(memset_async_per_thread)
{
	CUdeviceptr p;
	start();
	p = memory(256);
	CALL(cuMemsetD8Async_ptsz, p, 0x11, 5, NULL);
	CALL(cuMemsetD16Async_ptsz, p + 6, 0x2233, 2, NULL);
	CALL(cuMemsetD32Async_ptsz, p + 12, 0x44556677, 2, NULL);
	CONTENT("bytes", p, 24);
	CALL(cuMemsetD2D8Async_ptsz, p, 8, 0x01, 2, 3, NULL);
	CALL(cuMemsetD2D16Async_ptsz, p + 4, 8, 0x0203, 1, 3, NULL);
	CALL(cuMemsetD2D32Async_ptsz, p + 32, 16, 0x08090a0b, 2, 2, NULL);
	CONTENT("bytes", p, 24);
	CONTENT("bytes", p + 32, 32);
}

CASE(managed)
{
	CUdeviceptr p = 1;
	int value = -7;
	start();
	CALL(cuMemAllocManaged, &p, 4096, CU_MEM_ATTACH_GLOBAL);
	YES("aligned", p % 256 == 0);
	memset((void *)p, 3, 4096);
	CALL(cuMemsetD8_v2, p + 8, 4, 8);
	QUIET(cuCtxSynchronize);
	BYTES("bytes", (void *)p, 24);
	CALL(cuPointerGetAttribute, &value, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
	NUMBER("managed", value);
	CALL(cuStreamAttachMemAsync, NULL, p, 0, CU_MEM_ATTACH_GLOBAL);
	CALL(cuStreamAttachMemAsync_ptsz, NULL, p, 0, CU_MEM_ATTACH_HOST);
	CALL(cuStreamAttachMemAsync, NULL, p, 0, 0x80);
	CALL(cuMemFree_v2, p);
	CALL(cuMemAllocManaged, &p, 4096, CU_MEM_ATTACH_HOST);
	CALL(cuMemFree_v2, p);
	CALL(cuMemAllocManaged, &p, 0, CU_MEM_ATTACH_GLOBAL);
	CALL(cuMemAllocManaged, NULL, 4096, CU_MEM_ATTACH_GLOBAL);
	CALL(cuMemAllocManaged, &p, 4096, 0);
	CALL(cuMemAllocManaged, &p, 4096, CU_MEM_ATTACH_SINGLE);
}

CASE(hints)
{
	CUdeviceptr p = 1;
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		      host = {.type = CU_MEM_LOCATION_TYPE_HOST};
	start();
	QUIET(cuMemAllocManaged, &p, 1 << 20, CU_MEM_ATTACH_GLOBAL);
	CALL(cuMemAdvise, p, 1 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	CALL(cuMemAdvise, p, 1 << 20, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0);
	CALL(cuMemAdvise, p, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
	CALL(cuMemAdvise_v2, p, 1 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, device);
	CALL(cuMemAdvise_v2, p, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host);
	CALL(cuMemAdvise_v2, p, 1 << 20, CU_MEM_ADVISE_SET_ACCESSED_BY, host);
	CALL(cuMemAdvise, p, 1 << 20, (CUmem_advise)99, 0);
	CALL(cuMemAdvise_v2, 0x1000, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device);
	CALL(cuMemAdvise, p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	CALL(cuMemPrefetchAsync, 0x1000, 4096, 0, NULL);
	CALL(cuMemPrefetchAsync, p, 0, 0, NULL);
}

/* What a device with concurrent access takes. */
CASE(prefetch)
{
	CUdeviceptr p = 1;
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	start();
	QUIET(cuMemAllocManaged, &p, 1 << 20, CU_MEM_ATTACH_GLOBAL);
	memset((void *)p, 5, 1 << 20);
	CALL(cuMemPrefetchAsync, p, 1 << 20, 0, NULL);
	CALL(cuMemPrefetchAsync_ptsz, p, 1 << 20, 0, NULL);
	CALL(cuMemPrefetchAsync_v2, p, 1 << 20, device, 0, NULL);
	CALL(cuMemPrefetchAsync_v2_ptsz, p, 1 << 20, device, 0, NULL);
	CONTENT("bytes", p, 1 << 20);
	CALL(cuMemPrefetchAsync_v2, p, 1 << 20, device, 1, NULL);
	CALL(cuMemPrefetchAsync, p, 1 << 20, 999, NULL);
}

#include <sys/wait.h>
#include <unistd.h>

/* What another process allocated: it fills it, tells the handle, and waits until it is let go. */
static void producer(int in, int out)
{
	CUipcMemHandle handle;
	char byte;
	start();
	CUdeviceptr p = memory(5000);
	QUIET(cuMemsetD8_v2, p, 0x5c, 5000);
	QUIET(cuIpcGetMemHandle, &handle, p);
	QUIET(cuCtxSynchronize);
	if (write(out, &handle, sizeof(handle)) != sizeof(handle) || read(in, &byte, 1) != 1)
		_exit(1);
	QUIET(cuMemFree_v2, p);
	_exit(0);
}

CASE(ipc)
{
	CUipcMemHandle handle, own, again;
	CUdeviceptr p = 1, q = 1, mine, base = 1;
	size_t size = 77;
	int to[2], from[2], status = -1;
	unsigned capable = 77;
	if (pipe(to) || pipe(from))
		exit(2);
	pid_t pid = fork();
	if (pid == 0) {
		close(to[1]);
		close(from[0]);
		producer(to[0], from[1]);
	}
	/* So that the end of either is the end of its pipe. */
	close(to[0]);
	close(from[1]);
	start();
	mine = memory(100);
	CALL(cuIpcGetMemHandle, &own, mine);
	CALL(cuIpcGetMemHandle, &again, mine);
	YES("the same", memcmp(&own, &again, sizeof(own)) == 0);
	CALL(cuIpcGetMemHandle, NULL, mine);
	CALL(cuIpcGetMemHandle, &own, 0x1000);
	CALL(cuIpcOpenMemHandle_v2, &q, own, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	CALL(cuPointerGetAttribute, &capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
		mine);
	NUMBER("capable", capable);
	if (read(from[0], &handle, sizeof(handle)) != sizeof(handle))
		exit(2);
	CALL(cuIpcOpenMemHandle_v2, &p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	CONTENT("bytes", p, 20);
	CALL(cuMemGetAddressRange_v2, &base, &size, p + 10);
	YES("the beginning", base == p);
	CALL(cuIpcOpenMemHandle, &q, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	YES("the same", p == q);
	CALL(cuIpcCloseMemHandle, q);
	CALL(cuIpcOpenMemHandle_v2, &q, handle, 0);
	CALL(cuIpcOpenMemHandle_v2, NULL, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	CALL(cuMemsetD8_v2, p, 7, 10);
	CONTENT("bytes", p, 20);
	CALL(cuMemFree_v2, p);
	CALL(cuIpcCloseMemHandle, p);
	CALL(cuIpcCloseMemHandle, p);
	CALL(cuIpcCloseMemHandle, mine);
	if (write(to[1], "g", 1) != 1)
		exit(2);
	waitpid(pid, &status, 0);
	NUMBER("the other", status);
}

/*
 * Memory that the program maps itself, as a file; in one process that is the same memory once more.
 */
CASE(shareable)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	CUmemAccessDesc access = {
		.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle piece = 0, plain = 0, same = 0;
	CUmemAllocationProp got;
	CUdeviceptr p = 0, q = 0;
	int fd = -1, other = -1, value = -7;
	start();
	CALL(cuDeviceGetAttribute, &value,
		CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0);
	NUMBER("value", value);
	QUIET(cuMemCreate, &piece, 2 << 20, &prop, 0);
	CALL(cuMemExportToShareableHandle, &fd, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	YES("some", fd >= 0);
	CALL(cuMemImportFromShareableHandle, &same, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	memset(&got, 0, sizeof(got));
	CALL(cuMemGetAllocationPropertiesFromHandle, &got, same);
	NUMBER("type", got.type);
	NUMBER("location", got.location.type);
	QUIET(cuMemAddressReserve, &p, 4 << 20, 0, 0, 0);
	q = p + (2 << 20);
	CALL(cuMemMap, p, 2 << 20, 0, piece, 0);
	CALL(cuMemMap, q, 2 << 20, 0, same, 0);
	CALL(cuMemSetAccess, p, 4 << 20, &access, 1);
	QUIET(cuMemsetD8_v2, p, 9, 100);
	CONTENT("bytes", q, 12);
	CALL(cuMemExportToShareableHandle, &other, piece, CU_MEM_HANDLE_TYPE_NONE, 0);
	CALL(cuMemExportToShareableHandle, &other, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		1);
	CALL(cuMemExportToShareableHandle, NULL, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	QUIET(cuMemCreate, &plain, 2 << 20, &prop, 0);
	CALL(cuMemExportToShareableHandle, &other, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	CALL(cuMemImportFromShareableHandle, &same, (void *)(intptr_t)0,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	CALL(cuMemUnmap, p, 4 << 20);
	CALL(cuMemRelease, same);
	CALL(cuMemRelease, piece);
}
