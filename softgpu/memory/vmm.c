/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: reserved addresses, physical memory, mappings.
 *
 * Physical memory is a piece of a memfd.  Memory that is not exportable shares one file per device,
 * to save descriptors.  Memory with a POSIX descriptor has its own file.  The same memory can
 * therefore be mapped twice, and keeps its contents while it is unmapped.  It counts against the
 * device from cuMemCreate until the last handle and the last mapping are gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/memory/vmm.h"
#include "cudacommon/interface.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/arena.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/range.h"

struct ckt_soft_physical {
	atomic_uint refs; /* one for the handle, if any, and one for each mapping */
	struct ckt_soft_device *device;
	uint64_t size, file_offset;
	int fd;
	bool own_file, imported;
	CUmemAllocationProp prop;
	struct handle *handle; /* under vmm_lock; NULL after the release */
};

struct handle {
	struct ckt_soft_object object;
	struct ckt_soft_physical *physical;
	/* under vmm_lock: cuMemCreate and cuMemRetainAllocationHandle, less cuMemRelease */
	unsigned count;
};

struct reservation {
	struct reservation *next;
	uint64_t base, size;
};

static pthread_mutex_t vmm_lock =
	PTHREAD_MUTEX_INITIALIZER; /* reservations, mappings, handles, files */
static struct reservation *reservations;
static struct {
	int fd_plus_one;
	uint64_t end;
} files[CKT_DEVICES_MAX];

/* Precondition: vmm_lock is held. */
static struct reservation *find_reservation(uint64_t base, uint64_t size)
{
	for (struct reservation *r = reservations; r; r = r->next)
		if (base >= r->base && base - r->base < r->size &&
			size <= r->size - (base - r->base))
			return r;
	return NULL;
}

bool ckt_soft_vmm_reserved(uint64_t address)
{
	pthread_mutex_lock(&vmm_lock);
	bool found = find_reservation(address, 1) != NULL;
	pthread_mutex_unlock(&vmm_lock);
	return found;
}

/* Reserves a range, at exactly `address` unless that is 0.  Returns 0 on failure. */
static uint64_t reserve(uint64_t address, uint64_t size, uint64_t align)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	if (address) {
		void *p = mmap((void *)(uintptr_t)address, size, PROT_NONE,
			flags | MAP_FIXED_NOREPLACE, -1, 0);
		if (p == (void *)(uintptr_t)address)
			return address;
		if (p != MAP_FAILED)
			munmap(p, size);
		return 0;
	}
	uint64_t bigger;
	if (__builtin_add_overflow(size, align, &bigger))
		return 0;
	void *p = mmap(NULL, bigger, PROT_NONE, flags, -1, 0);
	if (p == MAP_FAILED)
		return 0;
	uint64_t start = (uint64_t)(uintptr_t)p, base = (start + align - 1) & ~(align - 1);
	if (base > start)
		munmap(p, base - start);
	if (start + bigger > base + size)
		munmap((void *)(uintptr_t)(base + size), start + bigger - base - size);
	return base;
}

CUresult CUDAAPI cuMemAddressReserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t align = alignment > CKT_SOFT_GRANULE ? alignment : CKT_SOFT_GRANULE;
	if (!ptr || flags || size == 0 || size % CKT_SOFT_GRANULE || (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	struct reservation *r = malloc(sizeof(*r));
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The address is a hint; an unusable or unaligned address is ignored. */
	uint64_t base = addr && addr % align == 0 && !((addr + size - 1) >> 47)
		? reserve(addr, size, align)
		: 0;
	if (!base)
		base = reserve(0, size, align);
	if (!base) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&vmm_lock);
	*r = (struct reservation){.next = reservations, .base = base, .size = size};
	reservations = r;
	pthread_mutex_unlock(&vmm_lock);
	*ptr = base;
	return CUDA_SUCCESS;
}

static void count_range(struct ckt_soft_range *range, void *data)
{
	(void)range;
	++*(size_t *)data;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct reservation *found = NULL;
	pthread_mutex_lock(&vmm_lock);
	size_t mapped = 0;
	for (struct reservation **r = &reservations; *r; r = &(*r)->next) {
		if ((*r)->base != ptr || (*r)->size != size)
			continue;
		ckt_soft_range_visit(ptr, size, count_range, &mapped);
		if (mapped == 0) {
			found = *r;
			*r = found->next;
			munmap((void *)(uintptr_t)ptr, size);
		}
		break;
	}
	pthread_mutex_unlock(&vmm_lock);
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	free(found);
	return CUDA_SUCCESS;
}

/* ---- Physical memory */

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
		if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST ||
			prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
			prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
			return CKT_SOFT_UNSUPPORTED("cuMemCreate in host memory");
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!ckt_soft_device(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CKT_SOFT_UNSUPPORTED(
			"cuMemCreate with a handle type other than a POSIX file descriptor");
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	CUresult result = ckt_soft_initialized();
	if (result == CUDA_SUCCESS)
		result = check_prop(prop);
	if (result != CUDA_SUCCESS)
		return result;
	if (!granularity ||
		(option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
			option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = CKT_SOFT_GRANULE;
	return CUDA_SUCCESS;
}

static int make_file(void)
{
	int fd = memfd_create("cricket-soft-gpu", MFD_CLOEXEC);
	if (fd < 0 && errno == EMFILE) {
		/*
		 * Each exportable piece needs a descriptor, so raise the soft limit (usually 1024)
		 * to the hard limit.
		 */
		struct rlimit limit;
		if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit(RLIMIT_NOFILE, &limit);
			fd = memfd_create("cricket-soft-gpu", MFD_CLOEXEC);
		}
	}
	return fd;
}

/* Gives the new physical memory its file.  Precondition: vmm_lock is held. */
static CUresult make_storage(struct ckt_soft_physical *physical)
{
	physical->own_file = physical->prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
	int *shared = &files[physical->device->ordinal].fd_plus_one;
	physical->fd = physical->own_file || !*shared ? make_file() : *shared - 1;
	if (physical->fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (physical->own_file)
		return ftruncate(physical->fd, (off_t)physical->size) ? CUDA_ERROR_OUT_OF_MEMORY
								      : CUDA_SUCCESS;
	*shared = physical->fd + 1;
	/*
	 * No offset in the file is used twice, so old contents cannot be read.  Sparse files cost
	 * nothing.
	 */
	uint64_t *end = &files[physical->device->ordinal].end;
	if (ftruncate(physical->fd, (off_t)(*end + physical->size)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->file_offset = *end;
	*end += physical->size;
	return CUDA_SUCCESS;
}

void ckt_soft_physical_put(struct ckt_soft_physical *physical)
{
	if (atomic_fetch_sub(&physical->refs, 1) != 1)
		return;
	if (physical->own_file)
		close(physical->fd);
	else if (fallocate(physical->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)physical->file_offset, (off_t)physical->size))
		ckt_soft_say("cannot give memory back: %s", strerror(errno));
	if (!physical->imported)
		ckt_soft_device_uncharge(physical->device, physical->size);
	free(physical);
}

static void handle_free(struct ckt_soft_object *object)
{
	struct handle *handle = (struct handle *)object;
	ckt_soft_physical_put(handle->physical);
	free(handle);
}

/*
 * Takes over a reference to the physical memory, also on failure.  Precondition: vmm_lock is held.
 */
static CUresult make_handle(
	struct ckt_soft_physical *physical, CUmemGenericAllocationHandle *ret_handle)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	if (!handle) {
		ckt_soft_physical_put(physical);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	handle->physical = physical;
	handle->count = 1;
	CUresult result = ckt_soft_object_init(&handle->object, CKT_SOFT_PHYSICAL, handle_free);
	if (result != CUDA_SUCCESS) {
		handle_free(&handle->object);
		return result;
	}
	physical->handle = handle;
	*ret_handle = handle->object.handle;
	return CUDA_SUCCESS;
}

static struct handle *handle_get(CUmemGenericAllocationHandle value)
{
	return ckt_soft_object_get((void *)(uintptr_t)value, CKT_SOFT_PHYSICAL);
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult result = ckt_soft_initialized();
	if (result == CUDA_SUCCESS)
		result = check_prop(prop);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || flags || size == 0 || size % CKT_SOFT_GRANULE ||
		prop->allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_device *device = ckt_soft_device(prop->location.id);
	result = ckt_soft_device_charge(device, size);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_physical *physical = calloc(1, sizeof(*physical));
	if (!physical) {
		ckt_soft_device_uncharge(device, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	physical->refs = 1;
	physical->device = device;
	physical->size = size;
	physical->prop = *prop;
	/* Compression is declined, as the device's attribute says. */
	physical->prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
	pthread_mutex_lock(&vmm_lock);
	result = make_storage(physical);
	if (result == CUDA_SUCCESS) {
		result = make_handle(physical, handle);
	} else {
		if (physical->own_file && physical->fd >= 0)
			close(physical->fd);
		ckt_soft_device_uncharge(device, size);
		free(physical);
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct handle *h = handle_get(handle);
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm_lock);
	bool last = h->count && --h->count == 0;
	if (last) {
		h->physical->handle = NULL;
		ckt_soft_object_remove(&h->object);
	}
	pthread_mutex_unlock(&vmm_lock);
	if (last)
		ckt_soft_object_put(&h->object);
	ckt_soft_object_put(&h->object);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range;
	pthread_mutex_lock(&vmm_lock);
	if (!handle || !ckt_soft_range_find((uint64_t)(uintptr_t)addr, &range) ||
		range.kind != CKT_SOFT_RANGE_MAPPED) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (range.physical->handle) {
		range.physical->handle->count++;
		*handle = range.physical->handle->object.handle;
	} else {
		atomic_fetch_add(&range.physical->refs, 1);
		result = make_handle(range.physical, handle);
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct handle *h = handle_get(handle);
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop)
		*prop = h->physical->prop;
	ckt_soft_object_put(&h->object);
	return prop ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemExportToShareableHandle(void *shareableHandle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
	unsigned long long flags)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!shareableHandle || flags)
		return CUDA_ERROR_INVALID_VALUE;
	struct handle *h = handle_get(handle);
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !h->physical->own_file) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		int fd = fcntl(h->physical->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			result = CUDA_ERROR_OPERATING_SYSTEM;
		else
			*(int *)shareableHandle = fd;
	}
	ckt_soft_object_put(&h->object);
	return result;
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *osHandle, CUmemAllocationHandleType shHandleType)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	struct stat stat;
	int from = (int)(intptr_t)osHandle;
	if (fstat(from, &stat) || !S_ISREG(stat.st_mode) || stat.st_size <= 0 ||
		stat.st_size % CKT_SOFT_GRANULE)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_context *context;
	struct ckt_soft_physical *physical = calloc(1, sizeof(*physical));
	int fd = physical ? fcntl(from, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd < 0) {
		free(physical);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*physical = (struct ckt_soft_physical){
		.refs = 1,
		/*
		 * The descriptor does not name the memory's device, so the current device is
		 * charged, or device 0 without a context.
		 */
		.device = ckt_soft_enter_faulted(&context) == CUDA_SUCCESS ? context->device
									   : ckt_soft_device(0),
		.size = (uint64_t)stat.st_size,
		.fd = fd,
		.own_file = true,
		.imported = true,
		.prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
			.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
	};
	physical->prop.location = (CUmemLocation){
		.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = physical->device->ordinal};
	pthread_mutex_lock(&vmm_lock);
	result = make_handle(physical, handle);
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

/* ---- Mappings */

static void any_range(struct ckt_soft_range *range, void *data)
{
	(void)range;
	*(bool *)data = true;
}

static bool overlaps(uint64_t address, uint64_t size)
{
	bool any = false;
	ckt_soft_range_visit(address, size, any_range, &any);
	return any;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct handle *h = handle_get(handle);
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_physical *physical = h->physical;
	pthread_mutex_lock(&vmm_lock);
	if (flags || size == 0 || size % CKT_SOFT_GRANULE || ptr % CKT_SOFT_GRANULE ||
		!find_reservation(ptr, size) || overlaps(ptr, size)) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (offset || size != physical->size) {
		/* an H200 maps all of the memory or none of it */
		result = CKT_AS_CUDA_NOT_SUPPORTED;
	} else {
		struct ckt_soft_range range = {
			.base = ptr,
			.size = size,
			.kind = CKT_SOFT_RANGE_MAPPED,
			.id = ckt_soft_range_next_id(),
			.device = physical->device,
			.physical = physical,
			.offset = offset,
		};
		result = ckt_soft_range_add(&range);
		/*
		 * The driver itself copies to and from the memory, so the host always has full
		 * access.  The page table limits kernels.
		 */
		if (result == CUDA_SUCCESS &&
			mmap((void *)(uintptr_t)ptr, size, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_FIXED, physical->fd,
				(off_t)(physical->file_offset + offset)) == MAP_FAILED) {
			ckt_soft_range_remove(ptr, 1u << CKT_SOFT_RANGE_MAPPED, &range);
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
		if (result == CUDA_SUCCESS)
			atomic_fetch_add(&physical->refs, 1);
	}
	pthread_mutex_unlock(&vmm_lock);
	ckt_soft_object_put(&h->object);
	return result;
}

/* Whether whole mappings without a gap cover [base, end). */
struct coverage {
	uint64_t at, end;
	bool whole;
};

static void cover(struct ckt_soft_range *range, void *data)
{
	struct coverage *c = data;
	if (range->kind != CKT_SOFT_RANGE_MAPPED || range->base != c->at ||
		range->size > c->end - c->at)
		c->whole = false;
	else
		c->at += range->size;
}

static bool covered(uint64_t base, uint64_t size)
{
	struct coverage c = {
		.at = base, .end = base + size, .whole = size > 0 && base + size > base};
	if (c.whole)
		ckt_soft_range_visit(base, size, cover, &c);
	return c.whole && c.at == c.end;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&vmm_lock);
	if (!covered(ptr, size)) {
		/*
		 * An unmapped range in a reservation is no error, whatever its end (seen on an
		 * H200).
		 */
		bool nothing = size && ptr + size > ptr && find_reservation(ptr, 1) &&
			!overlaps(ptr, size);
		pthread_mutex_unlock(&vmm_lock);
		return nothing ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
	/* Revoke access before the unmapping. */
	ckt_soft_memmap_set(ptr, size, 0);
	if (mmap((void *)(uintptr_t)ptr, size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t at = ptr; result == CUDA_SUCCESS && at < ptr + size;) {
		struct ckt_soft_range range;
		if (!ckt_soft_range_remove(at, 1u << CKT_SOFT_RANGE_MAPPED, &range))
			break;
		ckt_soft_physical_put(range.physical);
		at += range.size;
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

struct access {
	const CUmemAccessDesc *list;
	size_t n;
};

static void apply_access(struct ckt_soft_range *range, void *data)
{
	const struct access *access = data;
	for (size_t i = 0; i < access->n; i++)
		range->access[access->list[i].location.id] = (uint8_t)access->list[i].flags;
	/*
	 * One page table serves all devices, so a page gets the union of the devices' access
	 * rights.
	 */
	uint8_t bits = 0;
	for (int i = 0; i < ckt_soft_device_count(); i++) {
		if (range->access[i] & CU_MEM_ACCESS_FLAGS_PROT_READ)
			bits |= CKT_SOFT_PAGE_READ;
		if (range->access[i] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			bits |= CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE;
	}
	ckt_soft_memmap_set(range->base, range->size, bits);
}

CUresult CUDAAPI cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type == CU_MEM_LOCATION_TYPE_HOST ||
			desc[i].location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
			return CKT_SOFT_UNSUPPORTED("cuMemSetAccess for the host");
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		if (!ckt_soft_device(desc[i].location.id))
			return CUDA_ERROR_INVALID_VALUE;
		if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
			desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
			desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&vmm_lock);
	struct access access = {.list = desc, .n = count};
	if (covered(ptr, size))
		ckt_soft_range_visit(ptr, size, apply_access, &access);
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

CUresult CUDAAPI cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
		!ckt_soft_device(location->id) || !ckt_soft_range_find(ptr, &range) ||
		range.kind != CKT_SOFT_RANGE_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = range.access[location->id];
	return CUDA_SUCCESS;
}
