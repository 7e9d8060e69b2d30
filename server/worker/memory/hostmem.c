/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory of the client; see hostmem.h. */
#include "server/worker/memory/hostmem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sorted.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/hostmem.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph.h"
#include "server/worker/graph/graph_image.h"
#include "server/worker/memory/window.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/worker.h"

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/* Reserves the range, so that nothing else is mapped there. */
static bool close_off(uint64_t address, uint64_t size, int flags)
{
	void *place = mmap(pointer(address), size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
	if (place != MAP_FAILED && place != pointer(address)) {
		munmap(place, size);
		place = MAP_FAILED;
	}
	return place != MAP_FAILED;
}

void ckt_hostmem_reserve(struct ckt_worker *worker)
{
	struct ckt_hostmem *host = &worker->host;
	host->fd = -1;
	host->reserved = close_off(CKT_HOST_BASE, CKT_HOST_SIZE, MAP_FIXED_NOREPLACE);
	if (!host->reserved)
		ckt_info("pinned memory is not shared with clients of this host: its "
			 "address range is in use");
}

/* ---- One mapping */

/* Registrations end with their context, and this one never does. */
static CUresult with_driver(struct ckt_worker *worker,
	CUresult (*call)(const struct ckt_host_mapping *m), const struct ckt_host_mapping *m)
{
	CUcontext before = NULL;
	ckt_driver.cuCtxGetCurrent(&before);
	CUresult result = ckt_driver.cuCtxSetCurrent(worker->first_context);
	if (!result)
		result = call(m);
	ckt_driver.cuCtxSetCurrent(before);
	return result;
}

static CUresult enter(const struct ckt_host_mapping *m)
{
	CUdeviceptr seen = 0;
	CUresult result = ckt_driver.cuMemHostRegister_v2(pointer(m->address), m->size,
		CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (result)
		return result;
	result = ckt_driver.cuMemHostGetDevicePointer_v2(&seen, pointer(m->address), 0);
	if (!result && seen != m->address)
		result = CKT_INTERNAL_NOT_SUPPORTED;
	if (result)
		ckt_driver.cuMemHostUnregister(pointer(m->address));
	return result;
}

static CUresult leave(const struct ckt_host_mapping *m)
{
	return ckt_driver.cuMemHostUnregister(pointer(m->address));
}

/*
 * Maps pages to the addresses, the file's or (fd -1) fresh ones, and registers them with the
 * driver.
 */
static CUresult back_pages(struct ckt_worker *worker, const struct ckt_host_mapping *m, int fd)
{
	int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
	off_t offset = fd < 0 ? 0 : (off_t)(m->address - CKT_HOST_BASE);
	if (mmap(pointer(m->address), m->size, PROT_READ | PROT_WRITE, flags, fd, offset) ==
		MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = with_driver(worker, enter, m);
	if (result)
		close_off(m->address, m->size, MAP_FIXED);
	return result;
}

static CUresult back(struct ckt_worker *worker, struct ckt_host_mapping *m, int fd)
{
	if (fd < 0 && !ckt_budget_charge(m->size, "pinned memory"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = back_pages(worker, m, fd);
	m->own = fd < 0 && !result;
	if (fd < 0 && result)
		ckt_budget_uncharge(m->size);
	return result;
}

static void unback(struct ckt_worker *worker, struct ckt_host_mapping *m)
{
	CUresult result = with_driver(worker, leave, m);
	if (result)
		ckt_warning("cannot take host memory at 0x%llx from the driver: CUDA error %d",
			(unsigned long long)m->address, result);
	close_off(m->address, m->size, MAP_FIXED);
	if (m->own)
		ckt_budget_uncharge(m->size);
	m->own = false;
}

/* ---- The table */

/* Index of the first mapping after the address. */
static size_t upper(const struct ckt_hostmem *host, uint64_t address)
{
	return CKT_SORTED_UPPER(host->mappings, host->count, address, address);
}

/* Whether part of [address, address + size) is mapped, or the range cannot be mapped at all. */
static bool is_refused(const struct ckt_hostmem *host, uint64_t address, uint64_t size)
{
	uint64_t offset = address - CKT_HOST_BASE;
	if (!host->reserved || !size || (address | size) % CKT_HOST_GRAIN ||
		address < CKT_HOST_BASE || offset > CKT_HOST_SIZE || size > CKT_HOST_SIZE - offset)
		return true;
	size_t at = upper(host, address);
	return (at && address - host->mappings[at - 1].address < host->mappings[at - 1].size) ||
		(at < host->count && host->mappings[at].address - address < size);
}

static CUresult map(struct ckt_worker *worker, uint64_t address, uint64_t size, int fd)
{
	struct ckt_hostmem *host = &worker->host;
	struct ckt_host_mapping m = {address, size};
	if (is_refused(host, address, size))
		return CUDA_ERROR_INVALID_VALUE;
	if (host->count == host->room) {
		size_t room = host->room ? host->room * 2 : 16;
		struct ckt_host_mapping *larger = realloc(host->mappings, room * sizeof *larger);
		if (!larger)
			return CUDA_ERROR_OUT_OF_MEMORY;
		host->mappings = larger;
		host->room = room;
	}
	CUresult result = back(worker, &m, fd);
	if (result)
		return result;
	size_t at = upper(host, address);
	memmove(&host->mappings[at + 1], &host->mappings[at], (host->count++ - at) * sizeof m);
	host->mappings[at] = m;
	return CUDA_SUCCESS;
}

CUresult ckt_hostmem_restore(
	struct ckt_worker *worker, uint64_t address, uint64_t size, bool shared)
{
	worker->host.unfilled |= shared;
	return map(worker, address, size, -1);
}

bool ckt_hostmem_is_elsewhere(const struct ckt_hostmem *host)
{
	return host->shared || host->unfilled;
}

void ckt_hostmem_fill(struct ckt_worker *worker, uint64_t address, const uint8_t *data, size_t size)
{
	struct ckt_hostmem *host = &worker->host;
	size_t at = upper(host, address);
	const struct ckt_host_mapping *m = at ? &host->mappings[at - 1] : NULL;
	if (!size)
		host->unfilled = false;
	if (host->shared || !m || address - m->address > m->size ||
		size > m->size - (address - m->address))
		return;
	memcpy(pointer(address), data, size);
}

/* ---- The client's file */

/* The file must be sealed against shrinking, so that no page disappears under the GPU. */
static bool is_usable(int fd, uint64_t bytes)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		st.st_size >= 0 && (uint64_t)st.st_size >= bytes;
}

static uint64_t bytes_in_use(const struct ckt_hostmem *host)
{
	if (!host->count)
		return 0;
	const struct ckt_host_mapping *last = &host->mappings[host->count - 1];
	return last->address + last->size - CKT_HOST_BASE;
}

/* No kernel may use the memory while its pages change. */
static void wait_for_all(struct ckt_worker *worker)
{
	struct ckt_object *object;
	CUcontext before = NULL;
	ckt_driver.cuCtxGetCurrent(&before);
	for (uint32_t cursor = 0; (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_CONTEXT &&
			!ckt_driver.cuCtxSetCurrent(object->real))
			ckt_driver.cuCtxSynchronize();
	ckt_driver.cuCtxSetCurrent(before);
}

static CUresult look_for_host(struct ckt_worker_graph_node *node, void *unused)
{
	/* Kernels have only addresses.  The driver decides how a copy uses them. */
	for (uint32_t at = 0;
		node->type != CU_GRAPH_NODE_TYPE_KERNEL && at + 8 <= node->record_bytes; at += 4) {
		struct ckt_cursor c = {
			.p = node->record + at, .end = node->record + node->record_bytes};
		if (ckt_get_u64(&c) - CKT_HOST_BASE < CKT_HOST_SIZE)
			return CUDA_ERROR_ILLEGAL_STATE;
	}
	return CUDA_SUCCESS;
}

/*
 * Executable graphs with copies from or to what is mapped: an H200's driver fails their launch once
 * the pages are others.
 */
static ckt_image_graph *take_graphs(struct ckt_worker *worker, size_t *ret_count)
{
	size_t count, taken = 0;
	struct ckt_object **objects = ckt_objects_in_order(&worker->objects, &count);
	ckt_image_graph *list = calloc(count + 1, sizeof *list);
	for (size_t i = 0; i < count && list; i++) {
		if (ckt_handle_kind(objects[i]->id) != CKT_KIND_GRAPH_EXEC)
			continue;
		if (!ckt_worker_graph_each(
			    ((struct ckt_worker_graph_exec *)objects[i]->real)->graph,
			    look_for_host, NULL))
			continue;
		ckt_worker_graph_save(objects[i], &list[taken++]);
		ckt_object_destroy(worker, objects[i]);
	}
	free(objects);
	*ret_count = taken;
	return list;
}

static void give_graphs(struct ckt_worker *worker, ckt_image_graph *list, size_t count)
{
	uint64_t before = worker->current ? worker->current->id : 0;
	for (size_t i = 0; i < count; i++) {
		CUresult result = ckt_worker_use_context(worker, list[i].context);
		if (!result)
			result = ckt_worker_graph_load(worker, &list[i]);
		if (result)
			ckt_warning("cannot recreate graph 0x%llx: CUDA error %d",
				(unsigned long long)list[i].id, result);
		xdr_free((xdrproc_t)xdr_ckt_image_graph, (char *)&list[i]);
	}
	if (before && count)
		ckt_worker_use_context(worker, before);
	free(list);
}

/* Replaces the pages of all mappings; if that fails half way, the rest gets fresh pages. */
static bool exchange(struct ckt_worker *worker, int fd)
{
	struct ckt_hostmem *host = &worker->host;
	bool good = true;
	size_t graph_count = 0;
	ckt_image_graph *graphs = NULL;
	if (host->count) {
		wait_for_all(worker);
		graphs = take_graphs(worker, &graph_count);
	}
	for (size_t i = 0; i < host->count; i++) {
		unback(worker, &host->mappings[i]);
		CUresult result = back(worker, &host->mappings[i], fd);
		if (result) {
			ckt_warning("host memory at 0x%llx: CUDA error %d",
				(unsigned long long)host->mappings[i].address, result);
			good = false;
		}
	}
	give_graphs(worker, graphs, graph_count);
	return good;
}

static void part(struct ckt_hostmem *host)
{
	if (host->fd >= 0)
		close(host->fd);
	host->fd = -1;
	host->shared = false;
}

void ckt_hostmem_attach(struct ckt_worker *worker, int fd)
{
	struct ckt_hostmem *host = &worker->host;
	struct stat st = {0};
	if (fd >= 0 && (!host->reserved || !is_usable(fd, bytes_in_use(host)) || fstat(fd, &st))) {
		close(fd);
		fd = -1;
	}
	if (fd >= 0 && host->shared && st.st_dev == host->device && st.st_ino == host->inode) {
		close(fd);
		return;
	}
	bool was_shared = host->shared;
	part(host);
	if (fd >= 0 && exchange(worker, fd)) {
		host->fd = fd;
		host->device = st.st_dev;
		host->inode = st.st_ino;
		host->shared = true;
		host->unfilled = false;
		return;
	}
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || was_shared) {
		exchange(worker, -1);
		host->unfilled = host->count;
	}
}

/* ---- Handlers */

int ckt_worker_host_map(struct ckt_wcall *call)
{
	struct ckt_host_map_args args;
	const struct ckt_hostmem *host = &call->worker->host;
	if (!ckt_host_map_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!host->shared)
		return CKT_INTERNAL_NOT_SUPPORTED;
	if (is_refused(host, args.address, args.size) ||
		!is_usable(host->fd, args.address - CKT_HOST_BASE + args.size))
		return CUDA_ERROR_INVALID_VALUE;
	return map(call->worker, args.address, args.size, host->fd);
}

int ckt_worker_host_unmap(struct ckt_wcall *call)
{
	struct ckt_host_unmap_args args;
	struct ckt_hostmem *host = &call->worker->host;
	if (!ckt_host_unmap_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	size_t at = upper(host, args.address);
	if (!at || host->mappings[at - 1].address != args.address ||
		host->mappings[at - 1].size != args.size)
		return CUDA_ERROR_INVALID_VALUE;
	unback(call->worker, &host->mappings[at - 1]);
	memmove(&host->mappings[at - 1], &host->mappings[at],
		(host->count - at) * sizeof *host->mappings);
	host->count--;
	return CUDA_SUCCESS;
}
