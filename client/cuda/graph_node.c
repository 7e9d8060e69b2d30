/* Parameters of nodes, as the graph keeps them: checked, copied, given back. */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/array.h"
#include "client/cuda/graph.h"

void ckt_node_drop_params(struct ckt_node *node)
{
	if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		free(node->kernel.params);
		free(node->kernel.pointers);
		free(node->kernel.attributes);
		node->kernel = (struct ckt_kernel_node){0};
	} else if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		ckt_graph_free(node->child);
		node->child = NULL;
	} else if (ckt_node_is_memory(node)) {
		ckt_node_drop_memory(node);
	} else if (node->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
		free(node->memop.ops);
		node->memop = (struct ckt_memop_node){0};
	}
}

static void pack(uint8_t *p, const struct ckt_function *f, void **params)
{
	for (unsigned i = 0; i < f->param_count; i++)
		memcpy(p + f->param_offsets[i], params[i], f->param_sizes[i]);
}

CUresult ckt_node_set_kernel(struct ckt_node *node, const struct ckt_kernel_spec *spec)
{
	const struct ckt_function *f = spec->function;
	size_t bytes = spec->packed ? spec->packed_bytes : f->param_bytes;
	struct ckt_kernel_node k = {.handle = spec->handle, .function = spec->function, .shared_bytes = spec->shared_bytes, .param_bytes = bytes,
				    .attribute_count = spec->attribute_count};
	memcpy(k.grid, spec->grid, sizeof k.grid);
	memcpy(k.block, spec->block, sizeof k.block);
	k.params = calloc(1, bytes + 1);
	k.attributes = calloc(spec->attribute_count + 1, sizeof *k.attributes);
	if (!spec->packed)
		k.pointers = calloc(f->param_count + 1, sizeof *k.pointers);
	if (!k.params || !k.attributes || (!spec->packed && !k.pointers)) {
		free(k.params);
		free(k.attributes);
		free(k.pointers);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (spec->packed)
		memcpy(k.params, spec->packed, bytes);
	else
		pack(k.params, f, spec->params);
	for (unsigned i = 0; !spec->packed && i < f->param_count; i++)
		k.pointers[i] = k.params + f->param_offsets[i];
	if (spec->attribute_count)
		memcpy(k.attributes, spec->attributes, spec->attribute_count * sizeof *k.attributes);
	CUresult result = ckt_host_map_params(k.params, bytes);
	if (result) {
		free(k.params);
		free(k.attributes);
		free(k.pointers);
		return result;
	}
	ckt_node_drop_params(node);
	node->kernel = k;
	node->kernel.extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	node->kernel.extra[1] = k.params;
	node->kernel.extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	node->kernel.extra[3] = &node->kernel.param_bytes;
	node->kernel.extra[4] = CU_LAUNCH_PARAM_END;
	return CUDA_SUCCESS;
}

static CUresult check_side(CUmemorytype *type, CUdeviceptr device, const void *host_pointer, const void **ret_host)
{
	struct ckt_range range;
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
	/* Only the client can tell a host pointer from a device pointer: the worker gets it told. */
	bool on_device = ckt_range_find(address, &range) && ckt_range_reaches_device(&range);
	*type = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	*ret_host = (const void *)(uintptr_t)address;
	return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A side in an array is checked whole; one in memory has rows that fit its pitch. */
static CUresult check_extent(const CUDA_MEMCPY3D *c, CUmemorytype type, CUarray handle, size_t x, size_t y, size_t z, size_t pitch)
{
	if (type != CU_MEMORYTYPE_ARRAY)
		return pitch && x + c->WidthInBytes > pitch ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	const struct ckt_array *array = ckt_array_find(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	return ckt_array_holds(array, x, y, z, c->WidthInBytes, c->Height, c->Depth) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
	result = check_extent(&copy, copy.srcMemoryType, copy.srcArray, copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch);
	if (!result)
		result = check_extent(&copy, copy.dstMemoryType, copy.dstArray, copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstPitch);
	if (!result)
		node->copy = copy;
	return result;
}

CUresult ckt_node_set_fill(struct ckt_node *node, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	unsigned size = fill->elementSize;
	if (!fill->dst || (size != 1 && size != 2 && size != 4) || !fill->width || !fill->height || fill->dst % size ||
	    (fill->height > 1 && (fill->pitch < fill->width * size || fill->pitch % size)))
		return CUDA_ERROR_INVALID_VALUE;
	node->fill = *fill;
	return CUDA_SUCCESS;
}

CUresult ckt_node_copy_params(struct ckt_node *to, const struct ckt_node *from, bool named)
{
	struct ckt_graph *child;
	CUresult result;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		const struct ckt_kernel_node *k = &from->kernel;
		struct ckt_kernel_spec spec = {.handle = k->handle, .function = k->function, .shared_bytes = k->shared_bytes,
					       .attributes = k->attributes, .attribute_count = k->attribute_count, .params = k->pointers,
					       .packed = k->pointers ? NULL : k->params, .packed_bytes = k->param_bytes};
		memcpy(spec.grid, k->grid, sizeof spec.grid);
		memcpy(spec.block, k->block, sizeof spec.block);
		return ckt_node_set_kernel(to, &spec);
	}
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
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		ckt_node_share_memory(to, from);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return ckt_node_set_memop(to, &(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){
						      .count = from->memop.count, .paramArray = from->memop.ops, .flags = from->memop.flags});
	default:
		to->event = from->event;
		return CUDA_SUCCESS;
	}
}

CUresult ckt_kernel_spec_read(const CUDA_KERNEL_NODE_PARAMS *p, struct ckt_kernel_spec *ret_spec)
{
	struct ckt_kernel_spec spec = {.handle = p->func ? p->func : (CUfunction)p->kern,
				       .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
				       .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
				       .shared_bytes = p->sharedMemBytes,
				       .params = p->kernelParams};
	CUresult result = ckt_function_resolve(spec.handle, &spec.function);
	if (!result)
		result = ckt_launch_check(spec.function, spec.grid, spec.block, spec.shared_bytes);
	spec.packed_bytes = result ? 0 : spec.function->param_bytes;
	if (!result)
		result = ckt_launch_extra(p->extra, &spec.packed, &spec.packed_bytes);
	if (result)
		return result;
	if ((spec.packed && spec.params) || (!spec.packed && !spec.params && spec.function->param_count) ||
	    spec.packed_bytes < spec.function->param_bytes || spec.packed_bytes > 32768)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_spec = spec;
	return CUDA_SUCCESS;
}
