/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans for several GPUs.  The genuine library runs them in the worker, over the session's GPUs; a
 * descriptor is the program's own struct, whose memory is the program's: allocated as cudaMalloc
 * does (cufftXtMalloc here, or by the program itself, as CuPy does), so it is counted, saved and
 * copied as all memory is.
 *
 * A call that names descriptors returns when all GPUs of the plan have done it.  The program may
 * then use the memory from any stream of any of them, as it may natively once it has waited.
 */
#include "client/libs/cufft/cufft.h"

#include <cuda_runtime_api.h>
#include <string.h>

enum { GPUS_MAX = MAX_CUDA_DESCRIPTOR_GPUS, WORDS = 3 };

/* What a descriptor of cufftXtMalloc has where the library keeps its own state. */
static char allocated_here;

/*
 * The plan of a handle, whose context is the thread's until _leave; the program may have another
 * GPU's current.
 */
static cufftResult enter(cufftHandle handle, struct ckt_cufft_plan **ret_plan, uint64_t *ret_before)
{
	struct ckt_cufft_plan *plan = ckt_cufft_plan_of(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	CUresult result = ckt_cufft_enter();
	if (result)
		return ckt_cufft_failed(result);
	*ret_plan = plan;
	*ret_before = ckt_client()->context();
	ckt_client()->use_context(plan->object.context);
	return CUFFT_SUCCESS;
}

static void leave(uint64_t before)
{
	ckt_client()->use_context(before);
}

/* ---- Which GPUs */

static cufftResult contexts_of(
	const struct ckt_cufft_plan *plan, struct ckt_cufft_client_gpus *gpus)
{
	static bool once;
	const struct ckt_client_table *client = ckt_client();
	for (unsigned i = 0; i < gpus->count; i++) {
		/* Kept for good, as a runtime keeps each device that it was told to use. */
		if (client->device_context(gpus->ordinals[i], &gpus->contexts[i]))
			return CUFFT_INVALID_DEVICE;
		if (client->node(gpus->contexts[i]) != client->node(plan->object.context))
			return (cufftResult)ckt_cufft_unsupported(
				"cufftXtSetGPUs with GPUs of several servers", &once);
	}
	return CUFFT_SUCCESS;
}

static cufftResult set_gpus(struct ckt_cufft_plan *plan, const struct ckt_cufft_client_gpus *given)
{
	struct ckt_cufftXtSetGPUs_res res;
	struct ckt_cufft_client_gpus *gpus = malloc(sizeof *gpus);
	if (!gpus)
		return CUFFT_ALLOC_FAILED;
	*gpus = *given;
	cufftResult status = contexts_of(plan, gpus);
	const struct ckt_cufftXtSetGPUs_args args = {
		.plan = plan->object.id, .contexts = gpus->contexts, .contexts_len = gpus->count};
	if (!status)
		status = CKT_CUFFT_WAIT(CUFFTXTSETGPUS, cufftXtSetGPUs, &args, &res);
	if (status) {
		free(gpus);
		return status;
	}
	free(plan->gpus);
	plan->gpus = gpus;
	return CUFFT_SUCCESS;
}

CKT_LIB_EXPORT cufftResult cufftXtSetGPUs(cufftHandle handle, int nGPUs, int *whichGPUs)
{
	struct ckt_cufft_plan *plan;
	uint64_t before;
	struct ckt_cufft_client_gpus gpus = {.count = (unsigned)nGPUs};
	if (nGPUs < 1 || nGPUs > GPUS_MAX || !whichGPUs)
		return CUFFT_INVALID_VALUE;
	memcpy(gpus.ordinals, whichGPUs, (size_t)nGPUs * sizeof *whichGPUs);
	cufftResult status = enter(handle, &plan, &before);
	if (status)
		return status;
	status = set_gpus(plan, &gpus);
	leave(before);
	return status;
}

/* A GPU's place in the plan's list; -1 where the plan has not got it. */
static int place_of(const struct ckt_cufft_plan *plan, int ordinal)
{
	const struct ckt_cufft_client_gpus *gpus = plan->gpus;
	if (!gpus)
		return ordinal == ckt_client()->device() ? 0 : -1;
	for (unsigned i = 0; i < gpus->count; i++)
		if (gpus->ordinals[i] == ordinal)
			return (int)i;
	return -1;
}

/* ---- Sizes and work areas */

void ckt_cufft_sizes_told(struct ckt_lib_object *object, size_t *sizes)
{
	const struct ckt_cufft_plan *plan = (const struct ckt_cufft_plan *)object;
	const struct ckt_client_table *client = ckt_client();
	const struct ckt_xt_sizes_args args = {.plan = object->id};
	struct ckt_xt_sizes_res res;
	struct ckt_call call;
	struct ckt_reply reply;
	if (!plan->gpus)
		return;
	if (client->begin(&call, CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_XT_SIZES),
		    ckt_xt_sizes_args_size(&args), 0))
		return;
	call.p = ckt_xt_sizes_args_put(call.p, &args);
	if (client->wait(&call, &reply))
		return;
	if (ckt_xt_sizes_res_get(&reply.results, &res))
		for (uint32_t i = 0; i < res.bytes_len && i < plan->gpus->count; i++)
			sizes[i] = ckt_xdr_u64(res.bytes_xdr, i);
	client->release(&reply);
}

cufftResult ckt_cufft_set_work_areas(struct ckt_cufft_plan *plan, void **areas)
{
	uint64_t addresses[GPUS_MAX];
	struct ckt_xt_set_work_area_res res;
	for (unsigned i = 0; i < plan->gpus->count; i++)
		addresses[i] = (uintptr_t)areas[i];
	const struct ckt_xt_set_work_area_args args = {
		.plan = plan->object.id, .areas = addresses, .areas_len = plan->gpus->count};
	CUresult result = ckt_cufft_enter();
	return result ? ckt_cufft_failed(result)
		      : CKT_CUFFT_WAIT(XT_SET_WORK_AREA, xt_set_work_area, &args, &res);
}

CKT_LIB_EXPORT cufftResult cufftXtQueryPlan(
	cufftHandle handle, void *queryStruct, cufftXtQueryType queryType)
{
	struct ckt_cufft_plan *plan;
	struct ckt_cufftXtQueryPlan_res res;
	uint64_t before;
	if (!queryStruct || queryType != CUFFT_QUERY_1D_FACTORS)
		return CUFFT_INVALID_VALUE;
	cufftResult status = enter(handle, &plan, &before);
	if (status)
		return status;
	const struct ckt_cufftXtQueryPlan_args args = {
		.plan = plan->object.id, .type = (int32_t)queryType};
	const struct ckt_client_table *client = ckt_client();
	struct ckt_call call;
	struct ckt_reply reply;
	CUresult result =
		client->begin(&call, CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_CUFFTXTQUERYPLAN),
			ckt_cufftXtQueryPlan_args_size(&args), 0);
	if (!result) {
		call.p = ckt_cufftXtQueryPlan_args_put(call.p, &args);
		result = client->wait(&call, &reply);
	}
	leave(before);
	if (result)
		return ckt_cufft_failed(result);
	/* The answer lies in the reply. */
	status = CUFFT_INTERNAL_ERROR;
	if (ckt_cufftXtQueryPlan_res_get(&reply.results, &res)) {
		status = (cufftResult)res.status;
		if (!status && res.answer_len == sizeof(cufftXt1dFactors))
			memcpy(queryStruct, res.answer, res.answer_len);
		else if (!status)
			status = CUFFT_INTERNAL_ERROR;
	}
	client->release(&reply);
	return status;
}

/* ---- Descriptors */

/* What a message has of a descriptor: of each piece the GPU's place, the address, the bytes. */
struct pieces {
	uint64_t words[WORDS * GPUS_MAX];
	uint32_t length;
	int32_t format;
};

static cufftResult pieces_of(
	const struct ckt_cufft_plan *plan, const cudaLibXtDesc *descriptor, struct pieces *ret)
{
	const cudaXtDesc *memory = descriptor ? descriptor->descriptor : NULL;
	if (!memory || memory->nGPUs < 1 || memory->nGPUs > GPUS_MAX)
		return CUFFT_INVALID_VALUE;
	for (int i = 0; i < memory->nGPUs; i++) {
		int place = place_of(plan, memory->GPUs[i]);
		if (place < 0)
			return CUFFT_INVALID_DEVICE;
		ret->words[WORDS * i] = (uint64_t)place;
		ret->words[WORDS * i + 1] = (uintptr_t)memory->data[i];
		ret->words[WORDS * i + 2] = memory->size[i];
	}
	ret->length = (uint32_t)memory->nGPUs * WORDS;
	ret->format = descriptor->subFormat;
	return CUFFT_SUCCESS;
}

/* What the plan's context and stream hold of it comes to the GPU before the call. */
static CUresult bring(
	const struct ckt_cufft_plan *plan, struct pieces *pieces, uint64_t *ret_stream)
{
	const struct ckt_client_table *client = ckt_client();
	uint64_t addresses[GPUS_MAX];
	unsigned count = pieces->length / WORDS;
	CUresult result = client->stream((CUstream)plan->stream, ret_stream);
	if (result)
		return result;
	for (unsigned i = 0; i < count; i++)
		addresses[i] = pieces->words[WORDS * i + 1];
	result = client->before_work(*ret_stream, addresses, count);
	for (unsigned i = 0; !result && i < count; i++)
		pieces->words[WORDS * i + 1] = addresses[i];
	return result;
}

/* How much a descriptor of the plan takes on each of its GPUs. */
static cufftResult measure(
	const struct ckt_cufft_plan *plan, cufftXtSubFormat format, cudaXtDesc *ret)
{
	const struct ckt_client_table *client = ckt_client();
	const struct ckt_xt_memory_args args = {.plan = plan->object.id, .format = (int32_t)format};
	struct ckt_xt_memory_res res;
	struct ckt_call call;
	struct ckt_reply reply;
	CUresult result =
		client->begin(&call, CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_XT_MEMORY),
			ckt_xt_memory_args_size(&args), 0);
	if (!result) {
		call.p = ckt_xt_memory_args_put(call.p, &args);
		result = client->wait(&call, &reply);
	}
	if (result)
		return ckt_cufft_failed(result);
	cufftResult status = ckt_xt_memory_res_get(&reply.results, &res) ? (cufftResult)res.status
									 : CUFFT_INTERNAL_ERROR;
	unsigned count = plan->gpus ? plan->gpus->count : 1;
	for (uint32_t i = 0; !status && i < res.memory_len / 2; i++) {
		uint64_t place = ckt_xdr_u64(res.memory_xdr, 2 * i);
		if (place >= count) {
			status = CUFFT_INTERNAL_ERROR;
			break;
		}
		ret->GPUs[i] = plan->gpus ? plan->gpus->ordinals[place] : client->device();
		ret->size[i] = ckt_xdr_u64(res.memory_xdr, 2 * i + 1);
		ret->nGPUs = (int)i + 1;
	}
	client->release(&reply);
	return status;
}

/* The memory of the first pieces, and what holds them. */
static void end(cudaLibXtDesc *descriptor, int pieces)
{
	const struct ckt_client_table *client = ckt_client();
	cudaXtDesc *memory = descriptor->descriptor;
	uint64_t before = client->context(), context;
	for (int i = 0; i < pieces; i++) {
		if (!memory->data[i] || client->device_context(memory->GPUs[i], &context))
			continue;
		client->use_context(context);
		client->workspace_free((uintptr_t)memory->data[i]);
	}
	client->use_context(before);
	free(memory);
	free(descriptor);
}

static cufftResult allocate(cudaXtDesc *memory)
{
	const struct ckt_client_table *client = ckt_client();
	uint64_t before = client->context(), context, address;
	CUresult result = CUDA_SUCCESS;
	for (int i = 0; !result && i < memory->nGPUs; i++) {
		result = client->device_context(memory->GPUs[i], &context);
		if (result || !memory->size[i])
			continue;
		client->use_context(context);
		result = client->workspace_alloc(memory->size[i], &address);
		if (!result)
			memory->data[i] = (void *)(uintptr_t)address;
	}
	client->use_context(before);
	return ckt_cufft_failed(result);
}

CKT_LIB_EXPORT cufftResult cufftXtMalloc(
	cufftHandle handle, cudaLibXtDesc **descriptor, cufftXtSubFormat format)
{
	struct ckt_cufft_plan *plan;
	uint64_t before;
	if (!descriptor)
		return CUFFT_INVALID_VALUE;
	cufftResult status = enter(handle, &plan, &before);
	if (status)
		return status;
	cudaLibXtDesc *made = calloc(1, sizeof *made);
	cudaXtDesc *memory = calloc(1, sizeof *memory);
	if (made && memory) {
		memory->version = made->version = CUDA_XT_DESCRIPTOR_VERSION + CUDART_VERSION;
		memory->cudaXtState = &allocated_here;
		made->descriptor = memory;
		made->library = LIB_FORMAT_CUFFT;
		made->subFormat = (int)format;
		status = measure(plan, format, memory);
		if (!status)
			status = allocate(memory);
	} else {
		status = CUFFT_ALLOC_FAILED;
	}
	leave(before);
	if (!status) {
		*descriptor = made;
	} else if (made && memory) {
		end(made, memory->nGPUs);
	} else {
		free(made);
		free(memory);
	}
	return status;
}

CKT_LIB_EXPORT cufftResult cufftXtFree(cudaLibXtDesc *descriptor)
{
	if (!descriptor || !descriptor->descriptor ||
		descriptor->descriptor->cudaXtState != &allocated_here)
		return CUFFT_INVALID_VALUE;
	CUresult result = ckt_cufft_enter();
	if (result)
		return ckt_cufft_failed(result);
	descriptor->descriptor->cudaXtState = NULL;
	end(descriptor, descriptor->descriptor->nGPUs);
	return CUFFT_SUCCESS;
}

/* ---- Executions */

static cufftResult run(const struct ckt_cufft_plan *plan, uint32_t function, cudaLibXtDesc *input,
	cudaLibXtDesc *output, int direction)
{
	static bool once;
	struct pieces in, out;
	struct ckt_xt_execute_res res = {0};
	uint64_t stream = 0;
	cufftResult status = pieces_of(plan, input, &in);
	if (!status)
		status = pieces_of(plan, output, &out);
	if (status)
		return status;
	CUresult result = bring(plan, &in, &stream);
	if (!result)
		result = bring(plan, &out, &stream);
	if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
		return (cufftResult)ckt_cufft_unsupported(
			"cufftXtExecDescriptor in a capture", &once);
	if (result)
		return ckt_cufft_executed(result, 0);
	const struct ckt_xt_execute_args args = {.plan = plan->object.id,
		.function = function,
		.stream = stream,
		.direction = direction,
		.same = input == output,
		.in_format = in.format,
		.input = in.words,
		.input_len = in.length,
		.out_format = out.format,
		.output = out.words,
		.output_len = out.length};
	status = CKT_CUFFT_WAIT(XT_EXECUTE, xt_execute, &args, &res);
	if (!status) {
		input->subFormat = res.in_format;
		output->subFormat = res.out_format;
	}
	return status;
}

static cufftResult execute(cufftHandle handle, uint32_t function, cudaLibXtDesc *input,
	cudaLibXtDesc *output, int direction)
{
	struct ckt_cufft_plan *plan;
	uint64_t before;
	cufftResult status = enter(handle, &plan, &before);
	if (status)
		return status;
	status = !plan->made ? CUFFT_INVALID_PLAN
		: direction != CUFFT_FORWARD && direction != CUFFT_INVERSE && !plan->real
		? CUFFT_INVALID_VALUE
		: run(plan, function, input, output, direction);
	leave(before);
	return status;
}

CKT_LIB_EXPORT cufftResult cufftXtExecDescriptor(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction)
{
	return execute(plan, 0, input, output, direction);
}

CKT_LIB_EXPORT cufftResult cufftXtExecDescriptorC2C(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction)
{
	return execute(plan, CUFFT_C2C, input, output, direction);
}

CKT_LIB_EXPORT cufftResult cufftXtExecDescriptorZ2Z(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction)
{
	return execute(plan, CUFFT_Z2Z, input, output, direction);
}

CKT_LIB_EXPORT cufftResult cufftXtExecDescriptorR2C(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)
{
	return execute(plan, CUFFT_R2C, input, output, CUFFT_FORWARD);
}

CKT_LIB_EXPORT cufftResult cufftXtExecDescriptorD2Z(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)
{
	return execute(plan, CUFFT_D2Z, input, output, CUFFT_FORWARD);
}

CKT_LIB_EXPORT cufftResult cufftXtExecDescriptorC2R(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)
{
	return execute(plan, CUFFT_C2R, input, output, CUFFT_INVERSE);
}

CKT_LIB_EXPORT cufftResult cufftXtExecDescriptorZ2D(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)
{
	return execute(plan, CUFFT_Z2D, input, output, CUFFT_INVERSE);
}

/* ---- Copies */

/* Between the program's memory and one piece of the device's, in parts that any copy takes. */
static CUresult copy_host(uint64_t device, void *host, uint64_t size, bool to_device)
{
	enum { PART = 256 << 20 };
	CUresult result = CUDA_SUCCESS;
	for (uint64_t done = 0; !result && done < size; done += PART) {
		size_t bytes = size - done < PART ? size - done : PART;
		uint8_t *at = (uint8_t *)host + done;
		CUDA_MEMCPY2D copy = {.WidthInBytes = bytes, .Height = 1};
		if (to_device) {
			copy.srcMemoryType = CU_MEMORYTYPE_HOST;
			copy.srcHost = at;
			copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
			copy.dstDevice = device + done;
		} else {
			copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
			copy.srcDevice = device + done;
			copy.dstMemoryType = CU_MEMORYTYPE_HOST;
			copy.dstHost = at;
		}
		result = ckt_client()->copy_2d(&copy, NULL, false);
	}
	return result;
}

/* staging: device memory with the host's side of the copy, host_bytes of it; 0: there is none. */
static cufftResult copy(const struct ckt_cufft_plan *plan, cufftXtCopyType type, uint64_t staging,
	cudaLibXtDesc *to, cudaLibXtDesc *from)
{
	struct pieces there = {0}, here = {0};
	struct ckt_xt_copy_res res = {0};
	uint64_t stream = 0;
	cufftResult status = to ? pieces_of(plan, to, &there) : CUFFT_SUCCESS;
	if (!status && from)
		status = pieces_of(plan, from, &here);
	if (status)
		return status;
	CUresult result = bring(plan, &there, &stream);
	if (!result)
		result = bring(plan, &here, &stream);
	if (result)
		return ckt_cufft_failed(result);
	const struct ckt_xt_copy_args args = {.plan = plan->object.id,
		.type = (int32_t)type,
		.staging = staging,
		.staging_bytes = staging ? plan->host_bytes : 0,
		.to_format = there.format,
		.to = there.words,
		.to_len = there.length,
		.from_format = here.format,
		.from = here.words,
		.from_len = here.length};
	status = CKT_CUFFT_WAIT(XT_COPY, xt_copy, &args, &res);
	if (!status && to)
		to->subFormat = res.to_format;
	if (!status && from)
		from->subFormat = res.from_format;
	return status;
}

/*
 * The library spreads the host's numbers over the GPUs, or gathers them, in the worker: they are
 * brought there and back as any memory is.
 */
static cufftResult copy_with_host(
	const struct ckt_cufft_plan *plan, void *host, cudaLibXtDesc *descriptor, bool to_device)
{
	static bool once;
	const struct ckt_client_table *client = ckt_client();
	uint64_t staging;
	if (!plan->made || !host || !descriptor)
		return plan->made ? CUFFT_INVALID_VALUE : CUFFT_INVALID_PLAN;
	/* Of these the layout on the host is documented: packed, real rows padded. */
	if (!plan->host_bytes ||
		(plan->real && descriptor->subFormat != CUFFT_XT_FORMAT_INPLACE &&
			descriptor->subFormat != CUFFT_XT_FORMAT_INPLACE_SHUFFLED))
		return (cufftResult)ckt_cufft_unsupported(
			"cufftXtMemcpy of real numbers that are not in place", &once);
	CUresult result = client->workspace_alloc(plan->host_bytes, &staging);
	if (result)
		return ckt_cufft_failed(result);
	cufftResult status = CUFFT_SUCCESS;
	if (to_device)
		status = ckt_cufft_failed(copy_host(staging, host, plan->host_bytes, true));
	if (!status)
		status = copy(plan,
			to_device ? CUFFT_COPY_HOST_TO_DEVICE : CUFFT_COPY_DEVICE_TO_HOST, staging,
			to_device ? descriptor : NULL, to_device ? NULL : descriptor);
	if (!status && !to_device)
		status = ckt_cufft_failed(copy_host(staging, host, plan->host_bytes, false));
	client->workspace_free(staging);
	return status;
}

CKT_LIB_EXPORT cufftResult cufftXtMemcpy(
	cufftHandle handle, void *dstPointer, void *srcPointer, cufftXtCopyType type)
{
	struct ckt_cufft_plan *plan;
	uint64_t before;
	cufftResult status = enter(handle, &plan, &before);
	if (status)
		return status;
	switch (type) {
	case CUFFT_COPY_HOST_TO_DEVICE:
		status = copy_with_host(plan, srcPointer, dstPointer, true);
		break;
	case CUFFT_COPY_DEVICE_TO_HOST:
		status = copy_with_host(plan, dstPointer, srcPointer, false);
		break;
	case CUFFT_COPY_DEVICE_TO_DEVICE:
		status = !dstPointer || !srcPointer ? CUFFT_INVALID_VALUE
						    : copy(plan, type, 0, dstPointer, srcPointer);
		break;
	default:
		status = CUFFT_INVALID_VALUE;
	}
	leave(before);
	return status;
}
