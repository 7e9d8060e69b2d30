/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of nodes in a graph: checks, copies and frees them. */
#include <stdlib.h>
#include <string.h>

#include "cudacommon/graph.h"

static void kernel_drop(struct ckt_kernel_node *k)
{
	free(k->params);
	free(k->pointers);
	free(k->attributes);
	*k = (struct ckt_kernel_node){0};
}

void ckt_node_drop_params(struct ckt_node *node)
{
	if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		kernel_drop(&node->kernel);
	} else if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		ckt_graph_free(node->child);
		node->child = NULL;
	} else if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		ckt_node_drop_conditional(node);
	} else if (ckt_node_is_memory(node)) {
		ckt_node_drop_memory(node);
	} else if (node->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
		free(node->memop.ops);
		node->memop = (struct ckt_memop_node){0};
	}
}

/* Copies the program's parameters one after another, as in a launch, with the position of each. */
static void pack(struct ckt_kernel_node *k, const struct ckt_kernel_spec *spec)
{
	for (unsigned i = 0; i < spec->param_count; i++) {
		size_t offset, size;
		ckt_cudacommon_kernel_param(spec, i, &offset, &size);
		k->pointers[i] = k->params + offset;
		memcpy(k->pointers[i], spec->params[i], size);
	}
}

/* Takes over the new parameters, also on failure. */
static CUresult kernel_exchange(struct ckt_node *node, struct ckt_kernel_node *k)
{
	CUresult result = ckt_cudacommon_kernel_packed(k->params, k->param_bytes);
	if (result) {
		kernel_drop(k);
		return result;
	}
	ckt_node_drop_params(node);
	node->kernel = *k;
	node->kernel.extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	node->kernel.extra[1] = k->params;
	node->kernel.extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	node->kernel.extra[3] = &node->kernel.param_bytes;
	node->kernel.extra[4] = CU_LAUNCH_PARAM_END;
	return CUDA_SUCCESS;
}

CUresult ckt_node_set_kernel(struct ckt_node *node, const struct ckt_kernel_spec *spec)
{
	size_t bytes = spec->packed ? spec->packed_bytes : spec->param_bytes;
	struct ckt_kernel_node k = {.handle = spec->handle,
		.function = spec->function,
		.shared_bytes = spec->shared_bytes,
		.param_bytes = bytes,
		.attribute_count = spec->attribute_count};
	memcpy(k.grid, spec->grid, sizeof k.grid);
	memcpy(k.block, spec->block, sizeof k.block);
	k.pointer_count = spec->packed ? 0 : spec->param_count;
	k.params = calloc(1, bytes + 1);
	k.attributes = calloc(spec->attribute_count + 1, sizeof *k.attributes);
	if (!spec->packed)
		k.pointers = calloc(spec->param_count + 1, sizeof *k.pointers);
	if (!k.params || !k.attributes || (!spec->packed && !k.pointers)) {
		kernel_drop(&k);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (spec->packed)
		memcpy(k.params, spec->packed, bytes);
	else
		pack(&k, spec);
	if (spec->attribute_count)
		memcpy(k.attributes, spec->attributes,
			spec->attribute_count * sizeof *k.attributes);
	return kernel_exchange(node, &k);
}

static CUresult copy_kernel(struct ckt_node *to, const struct ckt_kernel_node *from)
{
	struct ckt_kernel_node k = *from;
	k.params = calloc(1, k.param_bytes + 1);
	k.attributes = calloc(k.attribute_count + 1, sizeof *k.attributes);
	k.pointers = from->pointers ? calloc(k.pointer_count + 1, sizeof *k.pointers) : NULL;
	if (!k.params || !k.attributes || !k.pointers != !from->pointers) {
		kernel_drop(&k);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(k.params, from->params, k.param_bytes);
	if (k.attribute_count)
		memcpy(k.attributes, from->attributes, k.attribute_count * sizeof *k.attributes);
	for (unsigned i = 0; i < k.pointer_count; i++)
		k.pointers[i] = k.params + ((const uint8_t *)from->pointers[i] - from->params);
	return kernel_exchange(to, &k);
}

static CUresult check_side(
	CUmemorytype *type, CUdeviceptr device, const void *host_pointer, const void **ret_host)
{
	uint64_t address = *type == CU_MEMORYTYPE_HOST ? ckt_handle_id(host_pointer) : device;
	switch (*type) {
	case CU_MEMORYTYPE_HOST:
		break;
	case CU_MEMORYTYPE_DEVICE:
		return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMORYTYPE_UNIFIED:
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* Determine the kind of a pointer here, because the client's worker could not. */
	*type = ckt_cudacommon_on_device(address) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	*ret_host = (const void *)(uintptr_t)address;
	return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/*
 * For an end in an array, checks the whole box; for an end in memory, checks that rows fit the
 * pitch.
 */
static CUresult check_extent(const CUDA_MEMCPY3D *c, CUmemorytype type, CUarray handle, size_t x,
	size_t y, size_t z, size_t pitch)
{
	if (type != CU_MEMORYTYPE_ARRAY)
		return pitch && x + c->WidthInBytes > pitch ? CUDA_ERROR_INVALID_VALUE
							    : CUDA_SUCCESS;
	return ckt_cudacommon_array_box(
		handle, (size_t[3]){x, y, z}, (size_t[3]){c->WidthInBytes, c->Height, c->Depth});
}

CUresult ckt_node_set_copy(struct ckt_node *node, const CUDA_MEMCPY3D *given)
{
	CUDA_MEMCPY3D copy = *given;
	const void *src = NULL, *dst = NULL;
	CUresult result = CUDA_SUCCESS;
	if (copy.srcMemoryType != CU_MEMORYTYPE_ARRAY)
		result = check_side(&copy.srcMemoryType, copy.srcDevice, copy.srcHost, &src);
	if (!result && copy.dstMemoryType != CU_MEMORYTYPE_ARRAY)
		result = check_side(&copy.dstMemoryType, copy.dstDevice, copy.dstHost, &dst);
	if (result)
		return result;
	if (src) {
		copy.srcHost = src;
		copy.srcDevice = (CUdeviceptr)(uintptr_t)src;
	}
	if (dst) {
		copy.dstHost = (void *)(uintptr_t)dst;
		copy.dstDevice = (CUdeviceptr)(uintptr_t)dst;
	}
	if (!copy.WidthInBytes || !copy.Height || !copy.Depth)
		return CUDA_ERROR_INVALID_VALUE;
	result = check_extent(&copy, copy.srcMemoryType, copy.srcArray, copy.srcXInBytes, copy.srcY,
		copy.srcZ, copy.srcPitch);
	if (!result)
		result = check_extent(&copy, copy.dstMemoryType, copy.dstArray, copy.dstXInBytes,
			copy.dstY, copy.dstZ, copy.dstPitch);
	if (!result)
		node->copy = copy;
	return result;
}

CUresult ckt_node_set_fill(struct ckt_node *node, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	unsigned size = fill->elementSize;
	if (!fill->dst || (size != 1 && size != 2 && size != 4) || !fill->width || !fill->height ||
		fill->dst % size ||
		(fill->height > 1 && (fill->pitch < fill->width * size || fill->pitch % size)))
		return CUDA_ERROR_INVALID_VALUE;
	node->fill = *fill;
	return CUDA_SUCCESS;
}

CUresult ckt_node_set_memop(struct ckt_node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p)
{
	CUstreamBatchMemOpParams *ops = malloc(p->count * sizeof *ops + 1);
	if (!ops)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(ops, p->paramArray, p->count * sizeof *ops);
	free(node->memop.ops);
	node->memop = (struct ckt_memop_node){.ops = ops, .count = p->count, .flags = p->flags};
	return CUDA_SUCCESS;
}

CUresult ckt_node_copy_params(struct ckt_node *to, const struct ckt_node *from, bool named)
{
	struct ckt_graph *child;
	CUresult result;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return copy_kernel(to, &from->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		to->copy = from->copy;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		to->fill = from->fill;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_HOST:
		to->host = from->host;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		result = ckt_graph_copy(from->child, named, &child);
		if (result)
			return result;
		ckt_graph_free(to->child);
		to->child = child;
		child->owner = to;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return ckt_node_copy_conditional(to, from);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		ckt_node_share_memory(to, from);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return ckt_node_set_memop(to,
			&(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){.count = from->memop.count,
				.paramArray = from->memop.ops,
				.flags = from->memop.flags});
	default:
		to->event = from->event;
		return CUDA_SUCCESS;
	}
}

CUresult ckt_launch_extra(void **extra, const void **ret_buffer, size_t *ret_size)
{
	*ret_buffer = NULL;
	for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*ret_buffer = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			*ret_size = *(size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult ckt_kernel_spec_read(const CUDA_KERNEL_NODE_PARAMS *p, struct ckt_kernel_spec *ret_spec)
{
	struct ckt_kernel_spec spec = {.handle = p->func ? p->func : (CUfunction)p->kern,
		.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
		.block = {p->blockDimX, p->blockDimY, p->blockDimZ},
		.shared_bytes = p->sharedMemBytes,
		.context = ckt_handle_id(p->ctx),
		.params = p->kernelParams};
	CUresult result = ckt_cudacommon_kernel(&spec);
	spec.packed_bytes = result ? 0 : spec.param_bytes;
	if (!result)
		result = ckt_launch_extra(p->extra, &spec.packed, &spec.packed_bytes);
	if (result)
		return result;
	if ((spec.packed && spec.params) || (!spec.packed && !spec.params && spec.param_count) ||
		spec.packed_bytes < spec.param_bytes || spec.packed_bytes > 32768)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; spec.params && i < spec.param_count; i++)
		if (!spec.params[i])
			return CUDA_ERROR_INVALID_VALUE;
	*ret_spec = spec;
	return CUDA_SUCCESS;
}
