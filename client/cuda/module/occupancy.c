/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occupancy: the worker asks the driver.  The client keeps a result until a setting of the function
 * or its context changes, or the session continues on another server.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "client/cuda/module/function.h"
#include "base/fork.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "cudacommon/interface.h"

/*
 * The size of the cache.  A search for the best block size asks for up to 32 sizes of one function.
 */
enum { KNOWN = 512 };

/* A query and its result. */
struct occupancy {
	uint64_t function; /* 0: none */
	uint64_t settings; /* ckt_call_settings at the time of the query */
	size_t shared_bytes;
	unsigned block_size, flags;
	int blocks;
};

static struct occupancy known[KNOWN];
static CKT_LOCK(lock);

/* Each query has exactly one place.  Precondition: lock held. */
static struct occupancy *place_of(const struct occupancy *o)
{
	uint64_t hash = o->function * 31 + o->block_size / 32 + o->shared_bytes / 16 + o->flags;
	return &known[hash % KNOWN];
}

void ckt_client_occupancy_forget(uint64_t function)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < KNOWN; i++)
		if (known[i].function == function)
			known[i].function = 0;
	pthread_mutex_unlock(&lock);
}

/* Fills in o->blocks if the cache has the result. */
static bool look_up(struct occupancy *o)
{
	pthread_mutex_lock(&lock);
	const struct occupancy *k = place_of(o);
	bool found = k->function == o->function && k->settings == o->settings &&
		k->shared_bytes == o->shared_bytes && k->block_size == o->block_size &&
		k->flags == o->flags;
	if (found)
		o->blocks = k->blocks;
	pthread_mutex_unlock(&lock);
	return found;
}

static void enter(const struct occupancy *o)
{
	pthread_mutex_lock(&lock);
	*place_of(o) = *o;
	pthread_mutex_unlock(&lock);
}

CKT_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, CUfunction handle, int block_size, size_t shared_bytes, unsigned int flags)
{
	struct ckt_function *f;
	struct ckt_reply reply;
	struct ckt_occupancy_blocks_res res;
	if (!blocks || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (result)
		return result;
	CKT_ROUTE_CONTEXT(f->object.context);
	struct occupancy o = {.function = f->object.id,
		.settings = ckt_call_settings(),
		.shared_bytes = shared_bytes,
		.block_size = (unsigned)block_size,
		.flags = flags};
	if (ckt_call_issued() && look_up(&o)) {
		*blocks = o.blocks;
		return CUDA_SUCCESS;
	}
	result = CKT_WAITED(occupancy_blocks, OCCUPANCY_BLOCKS, 0, &reply, .function = f->object.id,
		.block_size = block_size, .shared_bytes = shared_bytes, .flags = flags);
	if (result)
		return result;
	if (ckt_occupancy_blocks_res_get(&reply.results, &res)) {
		*blocks = o.blocks = res.blocks;
		enter(&o);
	} else {
		result = CUDA_ERROR_UNKNOWN;
	}
	ckt_call_reply_release(&reply);
	return result;
}

CKT_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *blocks, CUfunction handle, int block_size, size_t shared_bytes)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		blocks, handle, block_size, shared_bytes, CU_OCCUPANCY_DEFAULT);
}

CKT_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *bytes, CUfunction handle, int blocks, int block_size)
{
	struct ckt_function *f;
	struct ckt_reply reply;
	struct ckt_occupancy_available_smem_res res;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (result)
		return result;
	CKT_ROUTE_CONTEXT(f->object.context);
	result = CKT_WAITED(occupancy_available_smem, OCCUPANCY_AVAILABLE_SMEM, 0, &reply,
		.function = f->object.id, .blocks = blocks, .block_size = block_size);
	if (result)
		return result;
	if (ckt_occupancy_available_smem_res_get(&reply.results, &res))
		*bytes = res.shared_bytes;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

static CUresult clusters(
	int *ret_clusters, CUfunction handle, const CUlaunchConfig *config, unsigned which)
{
	struct ckt_function *f;
	struct ckt_reply reply;
	struct ckt_occupancy_clusters_res res;
	if (!ret_clusters || !config || (config->numAttrs && !config->attrs) ||
		config->numAttrs > CKT_OCCUPANCY_CLUSTERS_ATTRS_MAX / sizeof *config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (result)
		return result;
	CKT_ROUTE_CONTEXT(f->object.context);
	result = CKT_WAITED(occupancy_clusters, OCCUPANCY_CLUSTERS, 0, &reply,
		.function = f->object.id, .grid_x = config->gridDimX, .grid_y = config->gridDimY,
		.grid_z = config->gridDimZ, .block_x = config->blockDimX,
		.block_y = config->blockDimY, .block_z = config->blockDimZ,
		.shared_bytes = config->sharedMemBytes, .which = which,
		.attrs = (const uint8_t *)config->attrs,
		.attrs_len = (uint32_t)(config->numAttrs * sizeof *config->attrs));
	if (result)
		return result;
	if (ckt_occupancy_clusters_res_get(&reply.results, &res))
		*ret_clusters = res.clusters;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

CKT_EXPORT CUresult cuOccupancyMaxActiveClusters(
	int *ret_clusters, CUfunction handle, const CUlaunchConfig *config)
{
	return clusters(ret_clusters, handle, config, 0);
}

CKT_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(
	int *ret_size, CUfunction handle, const CUlaunchConfig *config)
{
	return clusters(ret_size, handle, config, 1);
}

/*
 * Finds the block size that keeps most threads resident.  The program's own function computes the
 * shared memory of a block size, so the search runs in the client.
 */
CKT_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *best_block,
	CUfunction handle, CUoccupancyB2DSize shared_of_block, size_t shared_bytes, int limit,
	unsigned int flags)
{
	struct ckt_function *f;
	struct ckt_context *context;
	if (!min_grid || !best_block)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (!result)
		result = ckt_client_context_current(&context);
	if (result)
		return result;
	int warp = ckt_client_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	int units = ckt_client_device_attribute(
		context->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	int most = f->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
	if (limit > 0 && limit < most)
		most = limit;
	int best_threads = 0, best_blocks = 0, best_size = 0;
	for (int aligned = (most + warp - 1) / warp * warp; aligned > 0; aligned -= warp) {
		int block = aligned < most ? aligned : most, blocks;
		result = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, handle,
			block, shared_of_block ? shared_of_block(block) : shared_bytes, flags);
		if (result)
			return result;
		if (blocks * block > best_threads) {
			best_threads = blocks * block;
			best_blocks = blocks;
			best_size = block;
		}
		if (best_threads >= ckt_client_device_attribute(context->device,
					    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR))
			break;
	}
	*min_grid = best_blocks * units;
	*best_block = best_size;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *min_grid, int *best_block,
	CUfunction handle, CUoccupancyB2DSize shared_of_block, size_t shared_bytes, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, best_block, handle,
		shared_of_block, shared_bytes, limit, CU_OCCUPANCY_DEFAULT);
}
