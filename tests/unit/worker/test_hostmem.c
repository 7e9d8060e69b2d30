/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/hostmem.h: the client's pinned memory, of which the worker has the very
 * pages, or pages of its own.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/hostmem.h"
#include "server/worker/memory/hostmem.h"
#include "server/worker/memory/window.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/graphs.h"

#define GRAIN CKT_HOST_GRAIN
#define FILE_BYTES (16 * GRAIN)

static struct ckt_hostmem *host = &ckt_worker.host;

/* As a client makes it, all of its words set; *ret_view: its bytes as the client sees them. */
static int file_of(uint64_t bytes, uint32_t word, int seals, uint32_t **ret_view)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CU_ASSERT_FATAL(
		fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
	uint32_t *view = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_FATAL(view != MAP_FAILED);
	for (uint64_t i = 0; i < bytes / 4; i++)
		view[i] = word;
	if (ret_view)
		*ret_view = view;
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void test_refused(void)
{
	YES(host->reserved);
	ckt_hostmem_attach(&ckt_worker, -1);
	NO(host->shared);
	IS(ASK(host_map, .address = CKT_HOST_BASE, .size = GRAIN), CUDA_ERROR_NOT_SUPPORTED);
	/* Files that could get shorter, and what is none. */
	int open_file = file_of(FILE_BYTES, 1, 0, NULL), ends[2];
	MUST(pipe(ends), 0);
	ckt_hostmem_attach(&ckt_worker, open_file);
	NO(host->shared);
	NO(is_open(open_file));
	ckt_hostmem_attach(&ckt_worker, ends[0]);
	NO(host->shared);
	NO(is_open(ends[0]));
	close(ends[1]);
	ckt_hostmem_attach(&ckt_worker, file_of(FILE_BYTES, 1, F_SEAL_SHRINK, NULL));
	YES(host->shared);
	static const struct {
		uint64_t address, size;
	} wrong[] = {{0, GRAIN}, {CKT_HOST_BASE, 0}, {CKT_HOST_BASE + 4096, GRAIN},
		{CKT_HOST_BASE, GRAIN + 4096}, {CKT_HOST_BASE - GRAIN, GRAIN},
		{CKT_HOST_BASE + CKT_HOST_SIZE, GRAIN}, {CKT_HOST_BASE + GRAIN, CKT_HOST_SIZE},
		{CKT_HOST_BASE, FILE_BYTES + GRAIN}, {CKT_HOST_BASE + FILE_BYTES, GRAIN},
		{CKT_HOST_BASE, UINT64_MAX - GRAIN + 1}, {UINT64_MAX - GRAIN + 1, GRAIN}};
	for (size_t i = 0; i < COUNT(wrong); i++)
		IS(ASK(host_map, .address = wrong[i].address, .size = wrong[i].size),
			CUDA_ERROR_INVALID_VALUE);
	IS(host->count, 0);
	IS(CUT(host_map, .address = CKT_HOST_BASE, .size = GRAIN), 0);
	IS(CUT(host_unmap, .address = CKT_HOST_BASE, .size = GRAIN), 0);
	ckt_hostmem_attach(&ckt_worker, -1);
}

static void test_shared(void)
{
	uint32_t *view, *other;
	int fd = file_of(FILE_BYTES, 5, F_SEAL_SHRINK, &view),
	    again = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	uint64_t second = CKT_HOST_BASE + 4 * GRAIN;
	ckt_hostmem_attach(&ckt_worker, fd);
	IS(ASK(host_map, .address = second, .size = 2 * GRAIN), CUDA_SUCCESS);
	IS(ASK(host_map, .address = CKT_HOST_BASE, .size = GRAIN), CUDA_SUCCESS);
	IS(host->count, 2);
	YES(host->mappings[0].address == CKT_HOST_BASE);
	/* Not twice, nor in part. */
	IS(ASK(host_map, .address = second, .size = 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(host_map, .address = second + GRAIN, .size = 4 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(host_map, .address = CKT_HOST_BASE + GRAIN, .size = 4 * GRAIN),
		CUDA_ERROR_INVALID_VALUE);
	/* What the client stores is what the GPU reads, and the other way round. */
	view[4 * GRAIN / 4 + 3] = 77;
	IS(inside_word(second + 12), 77);
	inside_fill(second, 9, 64);
	IS(view[4 * GRAIN / 4], 9);
	/* The same file again changes nothing. */
	ckt_hostmem_attach(&ckt_worker, again);
	NO(is_open(again));
	YES(host->shared);
	IS(inside_word(second), 9);
	/*
	 * Another one (a process that came back from a file) has the contents from then on; one
	 * that is too short is none.
	 */
	ckt_hostmem_attach(&ckt_worker, file_of(FILE_BYTES, 11, F_SEAL_SHRINK, &other));
	YES(host->shared);
	IS(inside_word(second), 11);
	other[0] = 12;
	IS(inside_word(CKT_HOST_BASE), 12);
	IS(ASK(host_unmap, .address = CKT_HOST_BASE, .size = 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(host_unmap, .address = CKT_HOST_BASE + GRAIN, .size = GRAIN),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(host_unmap, .address = CKT_HOST_BASE, .size = GRAIN), CUDA_SUCCESS);
	IS(ASK(host_unmap, .address = CKT_HOST_BASE, .size = GRAIN), CUDA_ERROR_INVALID_VALUE);
	ckt_hostmem_attach(&ckt_worker, file_of(5 * GRAIN, 13, F_SEAL_SHRINK, NULL));
	NO(host->shared);
	YES(host->unfilled);
	IS(ASK(host_unmap, .address = second, .size = 2 * GRAIN), CUDA_SUCCESS);
	IS(host->count, 0);
	munmap(view, FILE_BYTES);
	munmap(other, FILE_BYTES);
}

static void fill(uint64_t address, uint32_t word, size_t size)
{
	uint32_t words[16];
	for (size_t i = 0; i < COUNT(words); i++)
		words[i] = word;
	ckt_hostmem_fill(&ckt_worker, address, (const uint8_t *)words, size);
}

static void test_private(void)
{
	ckt_hostmem_attach(&ckt_worker, file_of(FILE_BYTES, 5, F_SEAL_SHRINK, NULL));
	uint64_t last = CKT_HOST_BASE + 2 * GRAIN - 4;
	MUST(ASK(host_map, .address = CKT_HOST_BASE, .size = 2 * GRAIN), CUDA_SUCCESS);
	/* What is shared is not filled. */
	fill(CKT_HOST_BASE, 6, 4);
	IS(inside_word(CKT_HOST_BASE), 5);
	/* A client without its file: fresh pages, until it says what they hold. */
	ckt_hostmem_attach(&ckt_worker, -1);
	NO(host->shared);
	YES(host->unfilled && ckt_hostmem_is_elsewhere(host));
	IS(inside_word(CKT_HOST_BASE), 0);
	IS(ASK(host_map, .address = CKT_HOST_BASE + 2 * GRAIN, .size = GRAIN),
		CUDA_ERROR_NOT_SUPPORTED);
	fill(CKT_HOST_BASE, 6, 64);
	fill(last, 7, 4);
	IS(inside_word(CKT_HOST_BASE + 60), 6);
	IS(inside_word(last), 7);
	/* Nothing beyond. */
	fill(last, 8, 8);
	fill(CKT_HOST_BASE - 4, 8, 8);
	fill(0, 8, 64);
	fill(UINT64_MAX - 3, 8, 4);
	fill(CKT_HOST_BASE + 4 * GRAIN, 8, 4);
	IS(inside_word(last), 7);
	YES(host->unfilled);
	fill(0, 0, 0);
	NO(host->unfilled || ckt_hostmem_is_elsewhere(host));
	/* It stays so for a client that comes again without. */
	ckt_hostmem_attach(&ckt_worker, -1);
	NO(host->unfilled);
	IS(inside_word(last), 7);
	IS(ASK(host_unmap, .address = CKT_HOST_BASE, .size = 2 * GRAIN), CUDA_SUCCESS);
}

/* Graphs that copy from or to what changes its pages are made again; others are left alone. */
static void test_graphs(void)
{
	struct description d;
	struct ckt_object *with, *without;
	uint64_t device = inside_memory(4096, 1), id = ID(GRAPH_EXEC, 301),
		 other = ID(GRAPH_EXEC, 302);
	ckt_hostmem_attach(&ckt_worker, file_of(FILE_BYTES, 5, F_SEAL_SHRINK, NULL));
	MUST(ASK(host_map, .address = CKT_HOST_BASE, .size = GRAIN), CUDA_SUCCESS);
	graph_begin(&d);
	graph_copy(&d, 1, (struct graph_side){CU_MEMORYTYPE_DEVICE, CKT_HOST_BASE, 0, 0, 0, 64, 1},
		(struct graph_side){CU_MEMORYTYPE_DEVICE, device, 0, 0, 0, 64, 1}, 64, 1);
	MUST(ckt_worker_graph_exec_make(
		     &ckt_worker, id, ckt_handle_primary(0), 0, d.bytes, graph_end(&d), &with),
		CUDA_SUCCESS);
	graph_begin(&d);
	graph_fill(&d, 1, device, 3, 4, 16);
	MUST(ckt_worker_graph_exec_make(&ckt_worker, other, ckt_handle_primary(0), 0, d.bytes,
		     graph_end(&d), &without),
		CUDA_SUCCESS);
	const void *before = ((struct ckt_worker_graph_exec *)with->real)->real,
		   *kept = without->real;
	IS(ckt_driver.cuGraphNodeSetEnabled(((struct ckt_worker_graph_exec *)with->real)->real,
		   ((struct ckt_worker_graph_exec *)with->real)->graph->nodes[0].real, 0),
		CUDA_SUCCESS);
	((struct ckt_worker_graph_exec *)with->real)->graph->nodes[0].disabled = true;
	ckt_hostmem_attach(&ckt_worker, file_of(FILE_BYTES, 6, F_SEAL_SHRINK, NULL));
	with = ckt_objects_find_kind(&ckt_worker.objects, id, CKT_KIND_GRAPH_EXEC);
	without = ckt_objects_find_kind(&ckt_worker.objects, other, CKT_KIND_GRAPH_EXEC);
	CU_ASSERT_FATAL(with && without);
	YES(((struct ckt_worker_graph_exec *)with->real)->real != before);
	YES(without->real == kept);
	/* As it was, with what was left out. */
	struct ckt_worker_graph_exec *exec = with->real;
	YES(exec->graph->nodes[0].disabled);
	IS(ckt_driver.cuGraphLaunch(exec->real, NULL), CUDA_SUCCESS);
	IS(inside_word(device), 1);
	IS(ckt_driver.cuGraphNodeSetEnabled(exec->real, exec->graph->nodes[0].real, 1),
		CUDA_SUCCESS);
	IS(ckt_driver.cuGraphLaunch(exec->real, NULL), CUDA_SUCCESS);
	IS(inside_word(device), 6);
	ckt_object_destroy(&ckt_worker, with);
	ckt_object_destroy(&ckt_worker, without);
	IS(ASK(host_unmap, .address = CKT_HOST_BASE, .size = GRAIN), CUDA_SUCCESS);
	ckt_hostmem_attach(&ckt_worker, -1);
	inside_free(device);
}

UNIT_SUITE(hostmem, {"graphs", test_graphs}, {"refused", test_refused}, {"shared", test_shared},
	{"private", test_private})
