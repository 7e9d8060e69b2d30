/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs grids: the blocks of a grid, in order, on a pool of threads and the caller's thread.
 *
 * A grid keeps a window of resident blocks.  A thread takes a block, runs a slice of it and puts it
 * back at the end of its grid's queue.  So a block that polls another block's flag never prevents
 * that block from running.  Blocks start in the order of their number, so waiting for a lower
 * number always ends.  A cooperative grid has all its blocks resident.  Grids take turns, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/compiled/compile.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/sched.h"
#include "softgpu/ptx/execution/trace.h"
#include "softgpu/ptx/front/link.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

enum {
	RESIDENT_BYTES = 256 << 20, /* of all resident blocks of an ordinary grid */
	STACK_DEFAULT = 1024,
	STACK_FACTOR = 8, /* frames here also hold parameters that a GPU keeps in registers */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct ptx_grid *grids;
	unsigned n_threads;
	uint64_t next_grid_id;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

/* ---- Blocks */

static size_t align64(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

static size_t block_bytes(const struct ptx_grid *grid, uint32_t n_warps, uint32_t shared_bytes)
{
	size_t frame = align64(sizeof(struct ptx_frame)) + align64(grid->entry->reg_bytes);
	return align64(sizeof(struct ptx_block)) + align64(shared_bytes) + PTX_RESERVED_BYTES +
		n_warps *
		(align64(sizeof(struct ptx_warp)) + frame +
			align64((size_t)PTX_LANES * grid->stack_bytes));
}

static struct ptx_block *block_allocate(struct ptx_grid *grid)
{
	const struct ckt_ptx_launch *launch = grid->launch;
	uint32_t n_threads = launch->block[0] * launch->block[1] * launch->block[2],
		 n_warps = (n_threads + PTX_LANES - 1) / PTX_LANES;
	uint32_t shared_bytes =
		grid->prepared->dynamic_shared_offset + launch->dynamic_shared_bytes;
	size_t bytes = block_bytes(grid, n_warps, shared_bytes);
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	struct ptx_block *block = (struct ptx_block *)memory;
	uint8_t *at = memory + align64(sizeof *block);
	block->grid = grid;
	block->memory = memory;
	block->memory_bytes = bytes;
	block->n_threads = n_threads;
	block->n_warps = n_warps;
	block->shared_bytes = shared_bytes;
	block->warps = (struct ptx_warp *)at;
	at += n_warps * sizeof *block->warps;
	at = (uint8_t *)align64((size_t)at);
	for (uint32_t n = 0; n < n_warps; n++) {
		struct ptx_warp *w = &block->warps[n];
		struct ptx_frame *frame = (struct ptx_frame *)at;
		at += align64(sizeof *frame);
		frame->regs = at;
		at += align64(grid->entry->reg_bytes);
		w->base = frame;
		w->block = block;
		w->index = n;
		w->local = at;
		w->stack_bytes = grid->stack_bytes;
		at += align64((size_t)PTX_LANES * grid->stack_bytes);
		for (uint32_t l = 0; l < PTX_LANES; l++) {
			uint32_t t = n * PTX_LANES + l;
			w->tid[0][l] = t % launch->block[0];
			w->tid[1][l] = t / launch->block[0] % launch->block[1];
			w->tid[2][l] = t / launch->block[0] / launch->block[1];
		}
	}
	block->shared = at;
	block->reserved = at + align64(shared_bytes);
	return block;
}

static void block_start(struct ptx_block *block, uint64_t number)
{
	struct ptx_grid *grid = block->grid;
	const struct ckt_ptx_launch *launch = grid->launch;
	uint64_t rest = number, rank = block->rank;
	for (unsigned k = 0; k < 3; k++) {
		uint32_t clusters = launch->grid[k] / grid->cluster[k];
		block->ctaid[k] =
			(uint32_t)(rest % clusters * grid->cluster[k] + rank % grid->cluster[k]);
		rest /= clusters;
		rank /= grid->cluster[k];
	}
	block->linear =
		((uint64_t)block->ctaid[2] * launch->grid[1] + block->ctaid[1]) * launch->grid[0] +
		block->ctaid[0];
	block->live_warps = block->n_warps;
	memset(block->barriers, 0, sizeof block->barriers);
	memset(block->reserved, 0, PTX_RESERVED_BYTES);
	block->runners = ckt_ptx_compile_runners(grid->prepared);
	for (uint32_t n = 0; n < block->n_warps; n++) {
		struct ptx_warp *w = &block->warps[n];
		uint32_t lanes = block->n_threads - n * PTX_LANES;
		struct ptx_frame *frame = w->base;
		w->live = lanes >= PTX_LANES ? 0xffffffffu : (1u << lanes) - 1;
		frame->function = grid->entry;
		frame->parent = NULL;
		frame->pool = grid->prepared->pools[grid->entry->index];
		frame->lanes = w->live;
		frame->local_base = frame->depth = frame->extra = 0;
		memset(frame->regs, 0, grid->entry->reg_bytes);
		memset(w->arrived, 0, sizeof w->arrived);
		w->cluster_arrived = w->grid_arrived = 0;
		w->n_groups = 0;
		w->fair_left = 0;
		w->oldest_next = false;
		w->last_page = w->last_page_write = 0;
		ckt_ptx_group_store(w, frame, w->live, 0);
	}
}

static void block_free(struct ptx_block *block)
{
	for (uint32_t n = 0; n < block->n_warps; n++) {
		struct ptx_warp *w = &block->warps[n];
		while (w->all_frames) {
			struct ptx_frame *next = w->all_frames->all_next;
			free(w->all_frames);
			w->all_frames = next;
		}
	}
	munmap(block->memory, block->memory_bytes);
}

/* The first block of a cluster owns the others and represents the cluster. */
static void cluster_free(struct ptx_block *first)
{
	struct ptx_cluster cluster = first->own_cluster;
	for (uint32_t k = 0; k < cluster.n; k++)
		block_free(cluster.blocks[k]);
}

static struct ptx_block *cluster_allocate(struct ptx_grid *grid)
{
	struct ptx_block *first = block_allocate(grid);
	if (!first)
		return NULL;
	struct ptx_cluster *cluster = &first->own_cluster;
	first->cluster = cluster;
	cluster->blocks[cluster->n++] = first;
	while (cluster->n < grid->cluster_size) {
		struct ptx_block *block = block_allocate(grid);
		if (!block) {
			cluster_free(first);
			return NULL;
		}
		block->cluster = cluster;
		block->rank = cluster->n;
		cluster->blocks[cluster->n++] = block;
	}
	return first;
}

static void cluster_start(struct ptx_cluster *cluster, uint64_t number)
{
	cluster->arrived = false;
	for (uint32_t k = 0; k < cluster->n; k++) {
		block_start(cluster->blocks[k], number);
		ckt_ptx_trace_start(cluster->blocks[k]);
	}
}

/* ---- Scheduling, all under the pool's lock */

static bool has_work(const struct ptx_grid *grid)
{
	return !atomic_load_explicit(&grid->stop, memory_order_relaxed) &&
		(grid->ready_head ||
			(grid->next_block < grid->n_blocks && grid->resident < grid->window));
}

/*
 * Alternates between new blocks and waiting ones, so that neither prevents the other from running.
 */
static bool take_new(struct ptx_grid *grid)
{
	bool can = grid->next_block < grid->n_blocks && grid->resident < grid->window;
	grid->turn = !grid->turn;
	return can && (!grid->ready_head || grid->turn);
}

static void finish(struct ptx_grid *grid)
{
	if (grid->done_blocks == grid->n_blocks || (atomic_load(&grid->stop) && !grid->running))
		pthread_cond_signal(&grid->done);
}

/*
 * Takes a block of the grid, runs a slice of it and puts it back.  Precondition: the lock is held
 * and has_work returned true.
 */
static void run_slice(struct ptx_grid *grid)
{
	struct ptx_block *block;
	bool fresh = take_new(grid);
	uint64_t number = 0;
	grid->running++;
	if (fresh) {
		number = grid->next_block++;
		grid->resident++;
		block = grid->spare_blocks;
		if (block)
			grid->spare_blocks = block->next;
	} else {
		block = grid->ready_head;
		grid->ready_head = block->next;
		if (!grid->ready_head)
			grid->ready_tail = &grid->ready_head;
	}
	pthread_mutex_unlock(&pool.lock);
	if (fresh && !block)
		block = cluster_allocate(grid);
	enum ptx_slice slice = SLICE_FAULT;
	if (!block) {
		pthread_mutex_lock(&grid->fault_lock);
		if (grid->fault == CKT_PTX_FAULT_NONE) {
			grid->fault = CKT_PTX_FAULT_LAUNCH_FAILURE;
			snprintf(grid->message, sizeof grid->message,
				"%s: out of memory for a block", grid->entry->info.name);
		}
		pthread_mutex_unlock(&grid->fault_lock);
	} else {
		if (fresh)
			cluster_start(block->cluster, number);
		slice = block->cluster->n > 1 ? ckt_ptx_cluster_run(block->cluster)
					      : ckt_ptx_block_run(block);
		ckt_ptx_compile_heat(grid->entry, grid->prepared, block->insns);
		block->insns = 0;
	}
	pthread_mutex_lock(&pool.lock);
	grid->running--;
	if (slice == SLICE_DONE || slice == SLICE_FAULT) {
		grid->resident--;
		if (slice == SLICE_FAULT)
			atomic_store(&grid->stop, true);
		else
			grid->done_blocks++;
		if (block) {
			block->next = grid->spare_blocks;
			grid->spare_blocks = block;
		}
	} else {
		block->next = NULL;
		*grid->ready_tail = block;
		grid->ready_tail = &block->next;
	}
	finish(grid);
}

static void *pool_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		struct ptx_grid **place = &pool.grids, *grid;
		while (*place && !has_work(*place))
			place = &(*place)->next;
		grid = *place;
		if (!grid) {
			pthread_cond_wait(&pool.work, &pool.lock);
			continue;
		}
		/*
		 * Moves the grid to the end of the list, so that the next search finds another grid
		 * first.
		 */
		if (grid->next) {
			*place = grid->next;
			while (*place)
				place = &(*place)->next;
			grid->next = NULL;
			*place = grid;
		}
		run_slice(grid);
	}
	return NULL;
}

/* Precondition: the lock is held. */
static void start_threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned wanted = n > 1 ? (unsigned)n - 1 : 1;
	while (pool.n_threads < wanted) {
		pthread_t thread;
		pthread_attr_t attr;
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		int r = pthread_create(&thread, &attr, pool_main, NULL);
		pthread_attr_destroy(&attr);
		if (r)
			break; /* the caller's thread then runs everything */
		pool.n_threads++;
	}
}

static void grid_run(struct ptx_grid *grid)
{
	const volatile bool *cancel = grid->launch->cancel;
	pthread_mutex_lock(&pool.lock);
	grid->grid_id = ++pool.next_grid_id;
	if (grid->n_blocks > 1) {
		start_threads();
		pthread_cond_broadcast(&pool.work);
	}
	grid->next = NULL;
	if (grid->n_blocks > 1) {
		struct ptx_grid **place = &pool.grids;
		while (*place)
			place = &(*place)->next;
		*place = grid;
	}
	for (;;) {
		if (cancel && *cancel)
			atomic_store(&grid->stop, true);
		if (atomic_load(&grid->stop) ? !grid->running : grid->done_blocks == grid->n_blocks)
			break;
		if (has_work(grid))
			run_slice(grid);
		else
			pthread_cond_wait(&grid->done, &pool.lock);
	}
	for (struct ptx_grid **place = &pool.grids; *place; place = &(*place)->next) {
		if (*place == grid) {
			*place = grid->next;
			break;
		}
	}
	pthread_mutex_unlock(&pool.lock);
}

/* ---- Launching */

static enum ckt_ptx_fault refuse(
	char *message, size_t size, const struct ckt_ptx_function *f, const char *why)
{
	if (message && size)
		snprintf(message, size, "%s: %s", f->info.name, why);
	return CKT_PTX_FAULT_LAUNCH_FAILURE;
}

/*
 * Cooperative groups find the state of their grid barrier through %envreg1 and %envreg2: a page
 * that the device may access.  Its first word is its size and its second word is the counter.
 */
static void *workspace_create(void)
{
	long page = sysconf(_SC_PAGESIZE);
	uint32_t *memory = mmap(
		NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	if (ckt_soft_memmap_set((uint64_t)(uintptr_t)memory, (uint64_t)page,
		    CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE)) {
		munmap(memory, (size_t)page);
		return NULL;
	}
	memory[0] = (uint32_t)page;
	return memory;
}

static void workspace_destroy(void *memory)
{
	long page = sysconf(_SC_PAGESIZE);
	if (!memory)
		return;
	ckt_soft_memmap_set((uint64_t)(uintptr_t)memory, (uint64_t)page, 0);
	munmap(memory, (size_t)page);
}

static void choose_window(struct ptx_grid *grid)
{
	const struct ckt_ptx_launch *launch = grid->launch;
	uint32_t n_threads = launch->block[0] * launch->block[1] * launch->block[2];
	size_t each = grid->cluster_size *
		block_bytes(grid, (n_threads + 31) / 32,
			grid->prepared->dynamic_shared_offset + launch->dynamic_shared_bytes);
	uint64_t window = RESIDENT_BYTES / each, least = 8,
		 most = launch->device->n_sm > 8 ? launch->device->n_sm : 8;
	window = window < least ? least : window > most ? most : window;
	if (launch->cooperative || window > grid->n_blocks)
		window = grid->n_blocks;
	grid->window = (uint32_t)(window > UINT32_MAX ? UINT32_MAX : window);
}

/*
 * Uses the cluster of the launch, or else the one that the function requires.  False if it does not
 * fit the grid.
 */
static bool choose_cluster(struct ptx_grid *grid)
{
	const struct ckt_ptx_launch *launch = grid->launch;
	const uint32_t *wanted = launch->cluster[0] ? launch->cluster : grid->entry->info.cluster;
	grid->cluster_size = 1;
	grid->n_blocks = 1;
	for (unsigned k = 0; k < 3; k++) {
		grid->cluster[k] = wanted[k] ? wanted[k] : 1;
		if (grid->cluster[k] > PTX_MAX_CLUSTER || launch->grid[k] % grid->cluster[k])
			return false;
		grid->cluster_size *= grid->cluster[k];
		grid->n_blocks *= launch->grid[k] / grid->cluster[k];
	}
	return grid->cluster_size <= PTX_MAX_CLUSTER;
}

enum ckt_ptx_fault ckt_ptx_launch(const struct ckt_ptx_function *function,
	const struct ckt_ptx_launch *launch, char *ret_message, size_t message_size_bytes)
{
	struct ptx_grid grid = {.entry = function, .launch = launch};
	if (ret_message && message_size_bytes)
		ret_message[0] = 0;
	uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
	if (!threads || threads > 1024 || !launch->grid[0] || !launch->grid[1] ||
		!launch->grid[2] || !choose_cluster(&grid))
		return refuse(ret_message, message_size_bytes, function,
			"invalid grid, cluster or block size");
	if (!function->module->bound || ckt_ptx_prepare(function, &grid.prepared))
		return refuse(ret_message, message_size_bytes, function,
			"module not ready, or out of memory");
	if ((uint64_t)grid.prepared->dynamic_shared_offset + launch->dynamic_shared_bytes >=
		PTX_RESERVED_SHARED)
		return refuse(ret_message, message_size_bytes, function, "too much shared memory");
	uint64_t stack = grid.prepared->stack_bytes;
	if (grid.prepared->recursive)
		stack += (launch->stack_bytes > STACK_DEFAULT ? launch->stack_bytes
							      : STACK_DEFAULT) *
			STACK_FACTOR;
	stack = (stack + 15) & ~15ull;
	if (stack > (256u << 20))
		return refuse(ret_message, message_size_bytes, function, "too much local memory");
	grid.stack_bytes = (uint32_t)stack;
	grid.ready_tail = &grid.ready_head;
	choose_window(&grid);
	if (launch->cooperative) {
		grid.workspace = workspace_create();
		if (!grid.workspace)
			return refuse(ret_message, message_size_bytes, function, "out of memory");
	}
	ckt_ptx_compile_start(function, grid.prepared);
	pthread_mutex_init(&grid.fault_lock, NULL);
	pthread_cond_init(&grid.done, NULL);
	grid_run(&grid);
	while (grid.spare_blocks || grid.ready_head) {
		struct ptx_block **list = grid.spare_blocks ? &grid.spare_blocks : &grid.ready_head,
				 *block = *list;
		*list = block->next;
		cluster_free(block);
	}
	workspace_destroy(grid.workspace);
	pthread_cond_destroy(&grid.done);
	pthread_mutex_destroy(&grid.fault_lock);
	if (grid.fault == CKT_PTX_FAULT_NONE && grid.done_blocks != grid.n_blocks)
		return refuse(ret_message, message_size_bytes, function, "cancelled");
	if (grid.fault != CKT_PTX_FAULT_NONE && ret_message && message_size_bytes)
		snprintf(ret_message, message_size_bytes, "%s", grid.message);
	return grid.fault;
}
