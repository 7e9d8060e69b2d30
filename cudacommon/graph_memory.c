/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graphs allocate.  A block is allocated when its node is created, so all graphs that
 * name it have a fixed address, and a checkpoint saves it.  The block is freed with its last node.
 * A launch does no work for such nodes.  This file has the rules about who may allocate and free a
 * block, and when.
 *
 * idle --launch of a graph that allocates it and does not free it--> live
 * live --cuMemFree(Async), a graph that frees it, the next launch with AUTO_FREE_ON_LAUNCH--> idle
 *
 * In a graph, an allocation after the free of another reuses its block if it fits.  A graph may
 * therefore allocate a block several times.  The balance of its nodes determines the state after a
 * launch.
 */
#include <stdlib.h>
#include <string.h>

#include "cudacommon/capture.h"

struct ckt_graph_block {
	struct ckt_graph_block *next;
	uint64_t address, size, granted;
	uint64_t context;
	CUdevice device;
	uint64_t graph; /* id of the graph with the allocating nodes */
	/* that graph's own free node after the latest allocation, or NULL */
	const struct ckt_node *freed_by;
	bool freed_elsewhere; /* another graph has a node that frees it */
	unsigned nodes;       /* the number of nodes that name it */
	/* launched or uploaded executable graphs that allocate it */
	unsigned execs;
	bool live;
	int balance;          /* scratch: allocations minus frees */
	bool seen, allocated; /* scratch */
};

_Atomic unsigned ckt_graph_blocks;

/* Precondition of all static functions: entered. */
static struct ckt_graph_block *blocks;
static uint64_t used_high[CKT_DEVICES_MAX], reserved_high[CKT_DEVICES_MAX];

static struct ckt_graph_block *find(uint64_t address)
{
	struct ckt_graph_block *b = blocks;
	while (b && b->address != address)
		b = b->next;
	return b;
}

static bool is_used(const struct ckt_graph_block *b)
{
	return b->live || b->execs;
}

static uint64_t sum(CUdevice device, bool used_only)
{
	uint64_t bytes = 0;
	for (const struct ckt_graph_block *b = blocks; b; b = b->next)
		if (b->device == device && (!used_only || is_used(b)))
			bytes += b->granted;
	return bytes;
}

static void note_high(CUdevice device)
{
	uint64_t used = sum(device, true), reserved = sum(device, false);
	if (used > used_high[device])
		used_high[device] = used;
	if (reserved > reserved_high[device])
		reserved_high[device] = reserved;
}

/* ---- Blocks */

static void block_settle(struct ckt_graph_block *b)
{
	if (b->nodes || b->live)
		return;
	for (struct ckt_graph_block **p = &blocks; *p; p = &(*p)->next)
		if (*p == b) {
			*p = b->next;
			break;
		}
	ckt_cudacommon_graph_memory_free(b->address, b->context);
	free(b);
	ckt_graph_blocks--;
}

static CUresult block_new(
	CUdevice device, size_t size, uint64_t graph, struct ckt_graph_block **ret_block)
{
	uint64_t address, granted;
	struct ckt_graph_block *b = calloc(1, sizeof *b);
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_cudacommon_graph_memory(device, size, &address, &granted);
	if (result) {
		free(b);
		return result;
	}
	*b = (struct ckt_graph_block){.next = blocks,
		.address = address,
		.size = size,
		.granted = granted,
		.context = ckt_cudacommon_context_now(),
		.device = device,
		.graph = graph};
	blocks = b;
	ckt_graph_blocks++;
	note_high(device);
	*ret_block = b;
	return CUDA_SUCCESS;
}

CUresult ckt_graph_block_take(struct ckt_graph *graph, struct ckt_node *const *behind, size_t count,
	CUdevice device, size_t size, struct ckt_graph_block **ret_block)
{
	struct ckt_graph_block *best = NULL;
	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	ckt_graph_unmark(graph);
	for (size_t i = 0; i < count; i++)
		ckt_graph_mark(behind[i], false);
	for (struct ckt_graph_block *b = blocks; b; b = b->next)
		if (b->graph == graph->object.id && b->freed_by && b->freed_by->mark &&
			b->device == device && b->size >= size && b->size / 2 <= size &&
			(!best || b->size < best->size))
			best = b;
	*ret_block = best;
	return best ? CUDA_SUCCESS : block_new(device, size, graph->object.id, ret_block);
}

void ckt_graph_block_leave(struct ckt_graph_block *block)
{
	block_settle(block);
}

void ckt_node_set_alloc(struct ckt_node *node, struct ckt_graph_block *block, size_t size)
{
	block->freed_by = NULL;
	block->nodes++;
	node->memory = (struct ckt_memory_node){.block = block, .size = size};
}

CUresult ckt_graph_block_freeable(
	const struct ckt_graph *graph, uint64_t address, struct ckt_graph_block **ret_block)
{
	struct ckt_graph_block *b = find(address);
	if (!b || b->freed_by || (b->graph == graph->object.id && b->freed_elsewhere))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < graph->count && b->graph != graph->object.id; i++)
		if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
			graph->nodes[i]->memory.block == b)
			return CUDA_ERROR_INVALID_VALUE;
	*ret_block = b;
	return CUDA_SUCCESS;
}

void ckt_node_set_free(struct ckt_node *node, struct ckt_graph_block *block)
{
	if (block->graph == node->graph->object.id)
		block->freed_by = node;
	else
		block->freed_elsewhere = true;
	block->nodes++;
	node->memory = (struct ckt_memory_node){.block = block};
}

void ckt_node_share_memory(struct ckt_node *to, const struct ckt_node *from)
{
	struct ckt_graph_block *before = to->memory.block;
	from->memory.block->nodes++;
	to->memory = from->memory;
	if (before) {
		before->nodes--;
		block_settle(before);
	}
}

void ckt_node_drop_memory(struct ckt_node *node)
{
	struct ckt_graph_block *b = node->memory.block;
	node->memory = (struct ckt_memory_node){0};
	if (!b)
		return;
	b->nodes--;
	/* Such a node is freed only with its graph, or when adding it failed. */
	if (b->freed_by == node)
		b->freed_by = NULL;
	block_settle(b);
}

uint64_t ckt_graph_block_address(const struct ckt_graph_block *block)
{
	return block ? block->address : 0;
}

bool ckt_graph_has_memory(const struct ckt_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		size_t inner;
		struct ckt_graph *const *graphs = ckt_node_graphs(graph->nodes[i], &inner);
		if (ckt_node_is_memory(graph->nodes[i]))
			return true;
		for (size_t k = 0; k < inner; k++)
			if (ckt_graph_has_memory(graphs[k]))
				return true;
	}
	return false;
}

/* ---- Executable graphs */

static void add_balances(const struct ckt_graph *graph, struct ckt_exec *exec)
{
	for (size_t i = 0; i < graph->count; i++) {
		const struct ckt_node *node = graph->nodes[i];
		if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
			add_balances(node->child, exec);
		if (!ckt_node_is_memory(node))
			continue;
		struct ckt_graph_block *b = node->memory.block;
		b->balance += node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? 1 : -1;
		b->allocated |= node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
		if (!b->seen)
			exec->blocks[exec->block_count++].block = b;
		b->seen = true;
	}
}

static size_t count_nodes(const struct ckt_graph *graph)
{
	size_t count = 0;
	for (size_t i = 0; i < graph->count; i++)
		count += ckt_node_is_memory(graph->nodes[i]) ? 1
			: graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_GRAPH
			? count_nodes(graph->nodes[i]->child)
			: 0;
	return count;
}

CUresult ckt_exec_memory_init(struct ckt_exec *exec)
{
	size_t room = count_nodes(exec->graph);
	if (!room)
		return CUDA_SUCCESS;
	exec->blocks = calloc(room, sizeof *exec->blocks);
	if (!exec->blocks)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct ckt_graph_block *b = blocks; b; b = b->next) {
		b->balance = 0;
		b->seen = b->allocated = false;
	}
	add_balances(exec->graph, exec);
	for (size_t i = 0; i < exec->block_count; i++) {
		exec->blocks[i].balance = exec->blocks[i].block->balance;
		exec->blocks[i].allocates = exec->blocks[i].block->allocated;
	}
	return CUDA_SUCCESS;
}

void ckt_exec_memory_fini(struct ckt_exec *exec)
{
	for (size_t i = 0; i < exec->block_count && exec->uses_memory; i++)
		exec->blocks[i].block->execs -= exec->blocks[i].allocates;
	free(exec->blocks);
	exec->blocks = NULL;
	exec->block_count = 0;
}

static void note_all(const struct ckt_exec *exec)
{
	for (size_t i = 0; i < exec->block_count; i++)
		if (!i || exec->blocks[i].block->device != exec->blocks[i - 1].block->device)
			note_high(exec->blocks[i].block->device);
}

void ckt_exec_memory_use(struct ckt_exec *exec)
{
	for (size_t i = 0; i < exec->block_count && !exec->uses_memory; i++)
		exec->blocks[i].block->execs += exec->blocks[i].allocates;
	exec->uses_memory = true;
	note_all(exec);
}

CUresult ckt_exec_memory_launch(struct ckt_exec *exec)
{
	bool auto_free = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	ckt_graph_enter();
	for (size_t i = 0; i < exec->block_count; i++) {
		const struct ckt_exec_block *e = &exec->blocks[i];
		if ((e->balance > 0 && e->block->live && !auto_free) ||
			(e->balance < 0 && !e->block->live))
			return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	}
	for (size_t i = 0; i < exec->block_count; i++)
		if (exec->blocks[i].balance)
			exec->blocks[i].block->live = exec->blocks[i].balance > 0;
	ckt_exec_memory_use(exec);
	return ckt_graph_leave(CUDA_SUCCESS);
}

bool ckt_graph_memory_free(uint64_t address, CUresult *ret_result)
{
	ckt_graph_enter();
	struct ckt_graph_block *b = find(address);
	if (b && b->live) {
		b->live = false;
		block_settle(b);
		*ret_result = CUDA_SUCCESS;
	} else if (b) {
		*ret_result = CUDA_ERROR_INVALID_VALUE;
	}
	ckt_graph_leave(CUDA_SUCCESS);
	return b != NULL;
}

/* ---- The API; the functions that add nodes are in graph_add.c */

CUresult ckt_alloc_params_check(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p, CUdevice *ret_device)
{
	static bool once_place, once_shared;
	CUresult result;
	if (!p->bytesize)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return p->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_INVALID ||
				!p->poolProps.location.type
			? CUDA_ERROR_INVALID_VALUE
			: ckt_cudacommon_unsupported(
				  "graph memory of the host or managed", &once_place);
	if (p->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return ckt_cudacommon_unsupported(
			"graph memory shared with other processes", &once_shared);
	result = ckt_cudacommon_device(p->poolProps.location.id);
	if (result)
		return result;
	if (p->accessDescCount && !p->accessDescs)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < p->accessDescCount; i++) {
		const CUmemAccessDesc *access = &p->accessDescs[i];
		if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
			ckt_cudacommon_device(access->location.id))
			return CUDA_ERROR_INVALID_VALUE;
		/* Other devices cannot get access; see cuMemPoolSetAccess. */
		if (access->location.id != p->poolProps.location.id &&
			access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			return CUDA_ERROR_INVALID_DEVICE;
	}
	*ret_device = p->poolProps.location.id;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuGraphMemAllocNodeGetParams(
	CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = ckt_node_find(handle);
	if (!node || !ret || node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	const struct ckt_graph_block *b = node->memory.block;
	*ret = (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = b->device}},
		.bytesize = node->memory.size,
		.dptr = b->address};
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = ckt_node_find(handle);
	if (!node || !ret || node->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret = node->memory.block->address;
	return ckt_graph_leave(CUDA_SUCCESS);
}

/* A graph owns every block, so there is nothing to trim. */
CKT_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	return ckt_cudacommon_device(device);
}

CKT_EXPORT CUresult cuDeviceGetGraphMemAttribute(
	CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	CUresult result = ckt_cudacommon_device(device);
	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	ckt_graph_enter();
	cuuint64_t number = 0;
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		number = sum(device, true);
		break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		number = used_high[device];
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		number = sum(device, false);
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		number = reserved_high[device];
		break;
	default:
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	}
	*(cuuint64_t *)value = number;
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuDeviceSetGraphMemAttribute(
	CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	CUresult result = ckt_cudacommon_device(device);
	if (result)
		return result;
	/* A high mark can only be reset. */
	if (!value || *(cuuint64_t *)value ||
		(attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
			attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	ckt_graph_enter();
	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		used_high[device] = sum(device, true);
	else
		reserved_high[device] = sum(device, false);
	return ckt_graph_leave(CUDA_SUCCESS);
}
