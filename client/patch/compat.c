/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the function that replaces an entry point of a static runtime.  Within CUDA 13 a name
 * means one ABI.  A program compiled for CUDA 12 calls some names with other parameters or
 * structures than those of our libcudart.so.13.  Such a name gets a small adapter here, gets
 * another name of CUDA 13, or is refused.  The differences come from the headers of 12.9 and 13.0.
 * A name that our runtime lacks is refused too: it returns cudaErrorNotSupported and logs one line
 * with the name.  Threading: any thread; the runtime is set once, before any adapter can be called.
 * errno is kept.
 */
#include <driver_types.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <surface_types.h>
#include <texture_types.h>

#include "client/patch/compat12.h"
#include "client/patch/redirect.h"
#include "client/patch/patch_log.h"
#include "cudacommon/static_runtimes.h"

static struct ckt_runtime our_runtime;

static cudaError_t refuse(unsigned name)
{
	static atomic_uchar said[1024];

	if (name < ckt_static_names_count && name < sizeof(said) &&
		!atomic_exchange(&said[name], 1))
		ckt_patch_log_refusal(ckt_static_names[name],
			", called through a static CUDA runtime, is not supported");
	return cudaErrorNotSupported;
}

/*
 * One small function for each name, so that a refusal can log the name.  Each has 16 bytes and puts
 * the name's index where refuse() expects it. 1024 is more names than any runtime has.
 */
__asm__(".pushsection .text\n"
	".balign 16\n"
	".type ckt_refusals, @function\n"
	"ckt_refusals:\n"
	".set ckt_refusal_index, 0\n"
	".rept 1024\n"
	"	.balign 16\n"
	"	movl $ckt_refusal_index, %edi\n"
	"	jmp ckt_patch_refuse_common\n"
	"	.set ckt_refusal_index, ckt_refusal_index + 1\n"
	".endr\n"
	".size ckt_refusals, . - ckt_refusals\n"
	".popsection\n");
extern const char ckt_refusals[] __attribute__((visibility("hidden")));
cudaError_t ckt_patch_refuse_common(unsigned name) __attribute__((used, visibility("hidden")));
cudaError_t ckt_patch_refuse_common(unsigned name)
{
	return refuse(name);
}

static void *ours(const char *name)
{
	return ckt_patch_dynamic_symbol(&our_runtime.object, &our_runtime.dynamic, name);
}

/*
 * Calls the function of CUDA 13 with that name.  The result is cudaErrorNotSupported if our runtime
 * lacks the function.
 */
#define CALL(name, parameters, ...)                                       \
	({                                                                \
		cudaError_t(*function) parameters = ours(name);           \
		function ? function(__VA_ARGS__) : cudaErrorNotSupported; \
	})

static cudaError_t set_double_12(double *value)
{
	/*
	 * This function converted doubles for devices of compute capability 1.x, which had none.
	 * Today it has no effect.
	 */
	return cudaSuccess;
}

static cudaError_t pointer_attributes_12(
	struct ckt_pointer_attributes_12 *attributes, const void *pointer)
{
	struct cudaPointerAttributes wide;
	cudaError_t result = CALL("cudaPointerGetAttributes",
		(struct cudaPointerAttributes *, const void *), attributes ? &wide : NULL, pointer);

	if (result == cudaSuccess && attributes)
		memcpy(attributes, &wide, sizeof(*attributes));
	return result;
}

static cudaError_t device_attribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	return CALL("cudaDeviceGetAttribute", (int *, enum cudaDeviceAttr, int), value, attribute,
		device);
}

static cudaError_t device_properties_12(struct ckt_device_properties_12 *properties, int device)
{
	struct cudaDeviceProp wide;
	cudaError_t result = CALL("cudaGetDeviceProperties", (struct cudaDeviceProp *, int),
		properties ? &wide : NULL, device);

	if (result != cudaSuccess || !properties)
		return result;
	ckt_patch_device_properties_narrow(properties, &wide);
	/* The fields that CUDA 13 dropped from the structure are still attributes. */
	const struct {
		int *field;
		enum cudaDeviceAttr attribute;
	} dropped[] = {
		{&properties->clockRate, cudaDevAttrClockRate},
		{&properties->deviceOverlap, cudaDevAttrGpuOverlap},
		{&properties->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout},
		{&properties->computeMode, cudaDevAttrComputeMode},
		{&properties->maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth},
		{&properties->memoryClockRate, cudaDevAttrMemoryClockRate},
		{&properties->singleToDoublePrecisionPerfRatio,
			cudaDevAttrSingleToDoublePrecisionPerfRatio},
	};
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		result = device_attribute(dropped[i].field, dropped[i].attribute, device);
		if (result != cudaSuccess)
			return result;
	}
	return cudaSuccess;
}

static struct cudaMemLocation location_12(int device)
{
	if (device == -1) /* cudaCpuDeviceId */
		return (struct cudaMemLocation){.type = cudaMemLocationTypeHost, .id = 0};
	return (struct cudaMemLocation){.type = cudaMemLocationTypeDevice, .id = device};
}

static cudaError_t mem_advise_12(
	const void *pointer, size_t count, enum cudaMemoryAdvise advice, int device)
{
	return CALL("cudaMemAdvise",
		(const void *, size_t, enum cudaMemoryAdvise, struct cudaMemLocation), pointer,
		count, advice, location_12(device));
}

typedef cudaError_t prefetch_13(
	const void *, size_t, struct cudaMemLocation, unsigned, cudaStream_t);

static cudaError_t mem_prefetch_12(
	const void *pointer, size_t count, int device, cudaStream_t stream)
{
	prefetch_13 *function = ours("cudaMemPrefetchAsync");

	return function ? function(pointer, count, location_12(device), 0, stream)
			: cudaErrorNotSupported;
}

static cudaError_t mem_prefetch_ptsz_12(
	const void *pointer, size_t count, int device, cudaStream_t stream)
{
	prefetch_13 *function = ours("cudaMemPrefetchAsync_ptsz");

	return function ? function(pointer, count, location_12(device), 0, stream)
			: cudaErrorNotSupported;
}

static cudaError_t graph_add_dependencies_12(
	void *graph, const void *from, const void *to, size_t count)
{
	return CALL("cudaGraphAddDependencies",
		(void *, const void *, const void *, const void *, size_t), graph, from, to, NULL,
		count);
}

static cudaError_t graph_remove_dependencies_12(
	void *graph, const void *from, const void *to, size_t count)
{
	return CALL("cudaGraphRemoveDependencies",
		(void *, const void *, const void *, const void *, size_t), graph, from, to, NULL,
		count);
}

static cudaError_t graph_add_node_12(
	void *node, void *graph, const void *dependencies, size_t count, void *parameters)
{
	return CALL("cudaGraphAddNode",
		(void *, void *, const void *, const void *, size_t, void *), node, graph,
		dependencies, NULL, count, parameters);
}

static cudaError_t graph_get_edges_12(void *graph, void *from, void *to, size_t *count)
{
	return CALL("cudaGraphGetEdges", (void *, void *, void *, void *, size_t *), graph, from,
		to, NULL, count);
}

static cudaError_t node_get_dependencies_12(void *node, void *dependencies, size_t *count)
{
	return CALL("cudaGraphNodeGetDependencies", (void *, void *, void *, size_t *), node,
		dependencies, NULL, count);
}

static cudaError_t node_get_dependent_nodes_12(void *node, void *dependents, size_t *count)
{
	return CALL("cudaGraphNodeGetDependentNodes", (void *, void *, void *, size_t *), node,
		dependents, NULL, count);
}

typedef cudaError_t capture_info_13(cudaStream_t, void *, void *, void *, void *, void *, size_t *);
typedef cudaError_t update_capture_13(cudaStream_t, void *, const void *, size_t, unsigned);

/*
 * The first version of the call had no graph and no dependencies; the second version had no edge
 * data.
 */
#define CAPTURE_12(suffix)                                                                         \
	static cudaError_t capture_info_1##suffix(cudaStream_t stream, void *status, void *id)     \
	{                                                                                          \
		capture_info_13 *function = ours("cudaStreamGetCaptureInfo" #suffix);              \
		return function ? function(stream, status, id, NULL, NULL, NULL, NULL)             \
				: cudaErrorNotSupported;                                           \
	}                                                                                          \
	static cudaError_t capture_info_2##suffix(cudaStream_t stream, void *status, void *id,     \
		void *graph, void *dependencies, size_t *count)                                    \
	{                                                                                          \
		capture_info_13 *function = ours("cudaStreamGetCaptureInfo" #suffix);              \
		return function ? function(stream, status, id, graph, dependencies, NULL, count)   \
				: cudaErrorNotSupported;                                           \
	}                                                                                          \
	static cudaError_t update_capture_12##suffix(                                              \
		cudaStream_t stream, void *dependencies, size_t count, unsigned flags)             \
	{                                                                                          \
		update_capture_13 *function = ours("cudaStreamUpdateCaptureDependencies" #suffix); \
		return function ? function(stream, dependencies, NULL, count, flags)               \
				: cudaErrorNotSupported;                                           \
	}
CAPTURE_12()
CAPTURE_12(_ptsz)

static void widen_resource(struct cudaResourceDesc *wide, const void *narrow)
{
	memset(wide, 0, sizeof(*wide));
	memcpy(wide, narrow, CKT_RESOURCE_DESC_12_BYTES);
}

static cudaError_t create_texture_12(cudaTextureObject_t *object, const void *resource,
	const struct cudaTextureDesc *texture, const void *view)
{
	struct cudaResourceDesc wide_resource;
	struct cudaResourceViewDesc wide_view = {0};

	if (resource)
		widen_resource(&wide_resource, resource);
	if (view)
		memcpy(&wide_view, view, CKT_RESOURCE_VIEW_DESC_12_BYTES);
	return CALL("cudaCreateTextureObject",
		(cudaTextureObject_t *, const struct cudaResourceDesc *,
			const struct cudaTextureDesc *, const struct cudaResourceViewDesc *),
		object, resource ? &wide_resource : NULL, texture, view ? &wide_view : NULL);
}

static cudaError_t create_surface_12(cudaSurfaceObject_t *object, const void *resource)
{
	struct cudaResourceDesc wide;

	if (resource)
		widen_resource(&wide, resource);
	return CALL("cudaCreateSurfaceObject",
		(cudaSurfaceObject_t *, const struct cudaResourceDesc *), object,
		resource ? &wide : NULL);
}

static cudaError_t texture_resource_12(void *resource, cudaTextureObject_t object)
{
	struct cudaResourceDesc wide = {0};
	cudaError_t result = CALL("cudaGetTextureObjectResourceDesc", (void *, cudaTextureObject_t),
		resource ? &wide : NULL, object);

	if (result == cudaSuccess && resource)
		memcpy(resource, &wide, CKT_RESOURCE_DESC_12_BYTES);
	return result;
}

static cudaError_t surface_resource_12(void *resource, cudaSurfaceObject_t object)
{
	struct cudaResourceDesc wide = {0};
	cudaError_t result = CALL("cudaGetSurfaceObjectResourceDesc", (void *, cudaSurfaceObject_t),
		resource ? &wide : NULL, object);

	if (result == cudaSuccess && resource)
		memcpy(resource, &wide, CKT_RESOURCE_DESC_12_BYTES);
	return result;
}

static cudaError_t texture_view_12(void *view, cudaTextureObject_t object)
{
	struct cudaResourceViewDesc wide = {0};
	cudaError_t result = CALL("cudaGetTextureObjectResourceViewDesc",
		(void *, cudaTextureObject_t), view ? &wide : NULL, object);

	if (result == cudaSuccess && view)
		memcpy(view, &wide, CKT_RESOURCE_VIEW_DESC_12_BYTES);
	return result;
}

/*
 * Every name of CUDA 12 that does not mean the same as in CUDA 13.  An entry with neither a name
 * nor a function is refused.
 */
static const struct {
	const char *name;
	const char *name_13;
	void *function;
} differences[] = {
	{"cudaChooseDevice"}, /* takes the device properties of 12 */
	{"cudaEventElapsedTime_v2", "cudaEventElapsedTime"},
	/* this and the imports: structures that gained reserved words */
	{"cudaExternalMemoryGetMappedBuffer"},
	{"cudaExternalMemoryGetMappedMipmappedArray"},
	{"cudaImportExternalMemory"},
	{"cudaImportExternalSemaphore"},
	{"cudaCreateSurfaceObject", NULL, create_surface_12},
	{"cudaCreateTextureObject", NULL, create_texture_12},
	{"cudaGetDeviceProperties"}, /* the structure of CUDA 11 */
	{"cudaGetDeviceProperties_v2", NULL, device_properties_12},
	{"cudaGetSurfaceObjectResourceDesc", NULL, surface_resource_12},
	{"cudaGetTextureObjectResourceDesc", NULL, texture_resource_12},
	{"cudaGetTextureObjectResourceViewDesc", NULL, texture_view_12},
	{"cudaGraphAddDependencies", NULL, graph_add_dependencies_12},
	{"cudaGraphAddDependencies_v2", "cudaGraphAddDependencies"},
	{"cudaGraphAddNode", NULL, graph_add_node_12},
	{"cudaGraphAddNode_v2", "cudaGraphAddNode"},
	{"cudaGraphGetEdges", NULL, graph_get_edges_12},
	{"cudaGraphGetEdges_v2", "cudaGraphGetEdges"},
	{"cudaGraphNodeGetDependencies", NULL, node_get_dependencies_12},
	{"cudaGraphNodeGetDependencies_v2", "cudaGraphNodeGetDependencies"},
	{"cudaGraphNodeGetDependentNodes", NULL, node_get_dependent_nodes_12},
	{"cudaGraphNodeGetDependentNodes_v2", "cudaGraphNodeGetDependentNodes"},
	{"cudaGraphRemoveDependencies", NULL, graph_remove_dependencies_12},
	{"cudaGraphRemoveDependencies_v2", "cudaGraphRemoveDependencies"},
	{"cudaMemAdvise", NULL, mem_advise_12},
	{"cudaMemAdvise_v2", "cudaMemAdvise"},
	{"cudaMemPrefetchAsync", NULL, mem_prefetch_12},
	{"cudaMemPrefetchAsync_ptsz", NULL, mem_prefetch_ptsz_12},
	{"cudaMemPrefetchAsync_v2", "cudaMemPrefetchAsync"},
	{"cudaMemPrefetchAsync_v2_ptsz", "cudaMemPrefetchAsync_ptsz"},
	/* this and the next: output of the failed copy's index, which 13 dropped */
	{"cudaMemcpy3DBatchAsync"},
	{"cudaMemcpy3DBatchAsync_ptsz"},
	{"cudaMemcpyBatchAsync"},
	{"cudaMemcpyBatchAsync_ptsz"},
	{"cudaPointerGetAttributes", NULL, pointer_attributes_12},
	{"cudaSetDoubleForDevice", NULL, set_double_12},
	{"cudaSetDoubleForHost", NULL, set_double_12},
	/* this and the wait functions: the structure of CUDA 11.1 */
	{"cudaSignalExternalSemaphoresAsync"},
	{"cudaSignalExternalSemaphoresAsync_ptsz"},
	{"cudaSignalExternalSemaphoresAsync_v2", "cudaSignalExternalSemaphoresAsync"},
	{"cudaSignalExternalSemaphoresAsync_v2_ptsz", "cudaSignalExternalSemaphoresAsync_ptsz"},
	{"cudaStreamGetCaptureInfo", NULL, capture_info_1},
	{"cudaStreamGetCaptureInfo_ptsz", NULL, capture_info_1_ptsz},
	{"cudaStreamGetCaptureInfo_v2", NULL, capture_info_2},
	{"cudaStreamGetCaptureInfo_v2_ptsz", NULL, capture_info_2_ptsz},
	{"cudaStreamGetCaptureInfo_v3", "cudaStreamGetCaptureInfo"},
	{"cudaStreamGetCaptureInfo_v3_ptsz", "cudaStreamGetCaptureInfo_ptsz"},
	{"cudaStreamUpdateCaptureDependencies", NULL, update_capture_12},
	{"cudaStreamUpdateCaptureDependencies_ptsz", NULL, update_capture_12_ptsz},
	{"cudaStreamUpdateCaptureDependencies_v2", "cudaStreamUpdateCaptureDependencies"},
	{"cudaStreamUpdateCaptureDependencies_v2_ptsz", "cudaStreamUpdateCaptureDependencies_ptsz"},
	{"cudaThreadExit", "cudaDeviceReset"},
	{"cudaThreadGetCacheConfig", "cudaDeviceGetCacheConfig"},
	{"cudaThreadGetLimit", "cudaDeviceGetLimit"},
	{"cudaThreadSetCacheConfig", "cudaDeviceSetCacheConfig"},
	{"cudaThreadSetLimit", "cudaDeviceSetLimit"},
	{"cudaThreadSynchronize", "cudaDeviceSynchronize"},
	{"cudaWaitExternalSemaphoresAsync"},
	{"cudaWaitExternalSemaphoresAsync_ptsz"},
	{"cudaWaitExternalSemaphoresAsync_v2", "cudaWaitExternalSemaphoresAsync"},
	{"cudaWaitExternalSemaphoresAsync_v2_ptsz", "cudaWaitExternalSemaphoresAsync_ptsz"},
};

void *ckt_redirect_target(
	const struct ckt_runtime *runtime, unsigned major, const char *name, unsigned name_index)
{
	void *refusal = (void *)(ckt_refusals + 16 * (size_t)(name_index & 1023));
	const char *name_13 = name;

	if (our_runtime.object.base != runtime->object.base)
		our_runtime = *runtime;
	for (size_t i = 0; major < 13 && i < sizeof(differences) / sizeof(differences[0]); i++) {
		if (strcmp(differences[i].name, name) != 0)
			continue;
		if (differences[i].function)
			return differences[i].function;
		name_13 = differences[i].name_13;
		break;
	}
	void *target = name_13 ? ours(name_13) : NULL;
	return target ? target : refusal;
}
