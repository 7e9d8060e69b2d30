/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: making, ending, copies.  See array.h. */
#include "server/worker/objects/array.h"

#include <stdlib.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/memory/copy.h"
#include "server/worker/session/long_call.h"
#include "server/worker/worker.h"

unsigned ckt_array_level_count(const struct ckt_warray *array)
{
	return array->levels ? array->levels : 1;
}

static CUresult make_real(struct ckt_object *object)
{
	struct ckt_warray *array = object->array;
	if (!array->levels)
		return ckt_driver.cuArray3DCreate_v2((CUarray *)&object->real, &array->desc);
	CUresult result = ckt_driver.cuMipmappedArrayCreate(
		(CUmipmappedArray *)&object->real, &array->desc, array->levels);
	for (unsigned i = 0; i < array->levels && !result; i++) {
		result = ckt_driver.cuMipmappedArrayGetLevel(&array->level[i], object->real, i);
		if (result)
			ckt_driver.cuMipmappedArrayDestroy(object->real);
	}
	return result;
}

CUresult ckt_array_make(struct ckt_worker *worker, uint64_t id, const CUDA_ARRAY3D_DESCRIPTOR *desc,
	uint32_t levels, struct ckt_object **ret_object)
{
	struct ckt_object *object;
	uint64_t bytes = ckt_array_total_bytes(desc, levels);
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_memory *memory = &worker->devices[worker->current->ctx.device].memory;
	struct ckt_warray *array = calloc(1, sizeof *array);
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*array = (struct ckt_warray){.desc = *desc, .levels = levels, .bytes = bytes};
	CUresult result = ckt_memory_charge(memory, bytes);
	if (result) {
		free(array);
		return result;
	}
	result = ckt_objects_add(
		&worker->objects, id, levels ? CKT_KIND_MIPMAP : CKT_KIND_ARRAY, false, &object);
	if (result) {
		ckt_memory_uncharge(memory, bytes);
		free(array);
		return result;
	}
	object->context = worker->current->id;
	object->array = array;
	/* The journal has modules in the order in which the driver placed them. */
	ckt_long_call_drain(worker, -1);
	result = make_real(object);
	if (result) {
		ckt_memory_uncharge(memory, bytes);
		ckt_objects_remove(&worker->objects, object);
		return result;
	}
	ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_ARRAY_CREATE,
			.id = id,
			.context = object->context,
			.flags = levels,
			.desc = *desc});
	*ret_object = object;
	return CUDA_SUCCESS;
}

static void destroy_real(bool mipmapped, void *real)
{
	if (mipmapped)
		ckt_driver.cuMipmappedArrayDestroy(real);
	else
		ckt_driver.cuArrayDestroy(real);
}

/* Of its context's device, if the context still exists. */
static struct ckt_memory *memory_of(struct ckt_worker *worker, uint64_t context_id)
{
	struct ckt_object *context = ckt_objects_find(&worker->objects, context_id);
	return context ? &worker->devices[context->ctx.device].memory : NULL;
}

void ckt_array_destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	struct ckt_memory *memory = memory_of(worker, object->context);
	ckt_long_call_drain(worker, -1);
	destroy_real(object->array->levels, object->real);
	if (memory)
		ckt_memory_uncharge(memory, object->array->bytes);
	ckt_journal_array_ended(&worker->checkpoint.journal, object->id);
	ckt_objects_remove(&worker->objects, object);
}

/* An array that is being destroyed: nobody can find it any more. */
struct end {
	struct ckt_long_call_job job;
	uint64_t id, context, bytes;
	bool mipmapped;
	void *real;
};

static void end_run(struct ckt_long_call_job *job)
{
	struct end *end = (struct end *)job;
	destroy_real(end->mipmapped, end->real);
}

static void end_finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	struct end *end = (struct end *)job;
	struct ckt_memory *memory = memory_of(worker, end->context);
	if (memory)
		ckt_memory_uncharge(memory, end->bytes);
	ckt_journal_array_ended(&worker->checkpoint.journal, end->id);
	free(end);
}

static struct ckt_object *find(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_ARRAY);
	return object ? object : ckt_objects_find_kind(&worker->objects, id, CKT_KIND_MIPMAP);
}

CUresult ckt_array_real(struct ckt_worker *worker, uint64_t id, uint32_t level, CUarray *ret_array)
{
	struct ckt_object *object = find(worker, id);
	if (!object || level >= ckt_array_level_count(object->array))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_array = object->array->levels ? object->array->level[level] : object->real;
	return CUDA_SUCCESS;
}

/* ---- The whole contents */

static CUresult move(const struct ckt_object *object, uint8_t *data, bool write)
{
	const struct ckt_warray *array = object->array;
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; i < ckt_array_level_count(array) && !result; i++) {
		struct ckt_array_extent extent;
		CUDA_ARRAY3D_DESCRIPTOR desc = ckt_array_level(&array->desc, i);
		if (!ckt_array_extent(&desc, &extent))
			return CUDA_ERROR_INVALID_VALUE;
		CUarray real = array->levels ? array->level[i] : object->real;
		CUDA_MEMCPY3D copy = {.WidthInBytes = extent.row_bytes,
			.Height = extent.rows,
			.Depth = extent.slices};
		copy.srcMemoryType = write ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
		copy.dstMemoryType = write ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
		if (write) {
			copy.srcHost = data;
			copy.srcPitch = extent.row_bytes;
			copy.srcHeight = extent.rows;
			copy.dstArray = real;
		} else {
			copy.dstHost = data;
			copy.dstPitch = extent.row_bytes;
			copy.dstHeight = extent.rows;
			copy.srcArray = real;
		}
		result = ckt_driver.cuMemcpy3D_v2(&copy);
		data += ckt_array_bytes(&extent);
	}
	return result;
}

CUresult ckt_array_read(const struct ckt_object *object, uint8_t *ret_data)
{
	return move(object, ret_data, false);
}

CUresult ckt_array_write(const struct ckt_object *object, const uint8_t *data)
{
	return move(object, (uint8_t *)data, true);
}

/*
 * The largest box that begins there and fits the piece: a part of a row, rows of a slice, or
 * slices.
 */
static CUDA_MEMCPY3D first_box(
	const struct ckt_array_extent *extent, uint64_t offset, uint64_t size, bool write)
{
	uint64_t row = offset / extent->row_bytes, x = offset % extent->row_bytes,
		 y = row % extent->rows, slice_bytes = extent->row_bytes * extent->rows;
	CUDA_MEMCPY3D box = {.WidthInBytes = extent->row_bytes, .Height = 1, .Depth = 1};
	if (x || size < extent->row_bytes) {
		box.WidthInBytes = extent->row_bytes - x < size ? extent->row_bytes - x : size;
	} else if (y || size < slice_bytes) {
		box.Height = size / extent->row_bytes < extent->rows - y ? size / extent->row_bytes
									 : extent->rows - y;
	} else {
		box.Height = extent->rows;
		box.Depth = size / slice_bytes;
	}
	if (write) {
		box.dstXInBytes = x;
		box.dstY = y;
		box.dstZ = row / extent->rows;
	} else {
		box.srcXInBytes = x;
		box.srcY = y;
		box.srcZ = row / extent->rows;
	}
	return box;
}

static void set_ends(CUDA_MEMCPY3D *box, CUarray array, enum ckt_piece_way way, uint64_t at)
{
	if (way == CKT_PIECE_FROM_HOST) {
		box->srcMemoryType = CU_MEMORYTYPE_HOST;
		box->srcHost = (const void *)(uintptr_t)at;
		box->srcPitch = box->WidthInBytes;
		box->srcHeight = box->Height;
		box->dstMemoryType = CU_MEMORYTYPE_ARRAY;
		box->dstArray = array;
		return;
	}
	box->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	box->srcArray = array;
	box->dstPitch = box->WidthInBytes;
	box->dstHeight = box->Height;
	box->dstMemoryType = way == CKT_PIECE_TO_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	if (way == CKT_PIECE_TO_HOST)
		box->dstHost = (void *)(uintptr_t)at;
	else
		box->dstDevice = at;
}

CUresult ckt_array_move_piece(const struct ckt_object *object, uint64_t offset, uint64_t size,
	enum ckt_piece_way way, uint64_t at, CUstream stream)
{
	const struct ckt_warray *array = object->array;
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; i < ckt_array_level_count(array) && size && !result; i++) {
		struct ckt_array_extent extent;
		CUDA_ARRAY3D_DESCRIPTOR desc = ckt_array_level(&array->desc, i);
		if (!ckt_array_extent(&desc, &extent))
			return CUDA_ERROR_INVALID_VALUE;
		uint64_t bytes = ckt_array_bytes(&extent);
		for (; offset < bytes && size && !result;) {
			uint64_t left = bytes - offset < size ? bytes - offset : size;
			CUDA_MEMCPY3D box =
				first_box(&extent, offset, left, way == CKT_PIECE_FROM_HOST);
			set_ends(&box, array->levels ? array->level[i] : object->real, way, at);
			uint64_t moved = box.WidthInBytes * box.Height * box.Depth;
			result = ckt_driver.cuMemcpy3DAsync_v2(&box, stream);
			offset += moved;
			at += moved;
			size -= moved;
		}
		offset -= offset < bytes ? offset : bytes;
	}
	return result;
}

/* ---- Handlers */

int ckt_worker_array_create(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_array_create_args args;
	struct ckt_object *object;
	if (!ckt_array_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = args.width,
		.Height = args.height,
		.Depth = args.depth,
		.Format = (CUarray_format)args.format,
		.NumChannels = args.channels,
		.Flags = args.flags};
	/* Memory that is not ours, memory from elsewhere: what an image could not hold. */
	if (args.flags &
		(CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |
			CUDA_ARRAY3D_VIDEO_ENCODE_DECODE))
		return CKT_WORKER_UNSUPPORTED(
			"sparse arrays, arrays without memory and arrays for video");
	CUresult result = ckt_array_make(worker, args.id, &desc, args.levels, &object);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && worker->current &&
		ckt_worker_pools_release(worker, worker->current->ctx.device, true))
		result = ckt_array_make(worker, args.id, &desc, args.levels, &object);
	return result;
}

int ckt_worker_array_destroy(struct ckt_wcall *call)
{
	struct ckt_array_destroy_args args;
	if (!ckt_array_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker *worker = call->worker;
	struct ckt_object *object = find(worker, args.id);
	CUcontext context;
	if (!object || ckt_object_context(worker, object->context, &context))
		return CUDA_ERROR_INVALID_HANDLE;
	/*
	 * The driver waits for the GPU first, and the GPU perhaps for an answer that is a command
	 * behind this one.
	 */
	struct end *end = malloc(sizeof *end);
	if (!end)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*end = (struct end){.job = {.run = end_run, .finish = end_finish, .context = context},
		.id = object->id,
		.context = object->context,
		.bytes = object->array->bytes,
		.mipmapped = object->array->levels,
		.real = object->real};
	ckt_objects_remove(&worker->objects, object);
	ckt_long_call_submit(worker, &end->job);
	return CUDA_SUCCESS;
}

int ckt_worker_memcpy_htoa(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_memcpy_htoa_args args;
	CUstream stream;
	CUarray array;
	if (!ckt_memcpy_htoa_args_get(&call->args, &args) ||
		(uint64_t)args.width * args.height != args.data_len)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_copy_stream(worker, args.stream, &stream);
	if (!result)
		result = ckt_array_real(worker, args.array, args.level, &array);
	if (result)
		return result;
	struct ckt_staging_piece *piece;
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = ckt_worker_source(worker, args.data, args.data_len, &piece),
		.srcPitch = args.width,
		.srcHeight = args.height,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = array,
		.dstXInBytes = args.x,
		.dstY = args.y,
		.dstZ = args.z,
		.WidthInBytes = args.width,
		.Height = args.height,
		.Depth = 1};
	result = ckt_driver.cuMemcpy3DAsync_v2(&copy, stream);
	return ckt_worker_sent(worker, result, piece, stream);
}

int ckt_worker_memcpy_atoh(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_memcpy_atoh_args args;
	CUstream stream;
	CUarray array;
	if (!ckt_memcpy_atoh_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	uint64_t size = (uint64_t)args.width * args.height;
	if (size > CKT_DATA_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_worker_copy_stream(worker, args.stream, &stream);
	if (!result)
		result = ckt_array_real(worker, args.array, args.level, &array);
	if (result)
		return result;
	struct ckt_staging_piece *piece = ckt_worker_take_piece(worker, size);
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.srcXInBytes = args.x,
		.srcY = args.y,
		.srcZ = args.z,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = piece->data,
		.dstPitch = args.width,
		.dstHeight = args.height,
		.WidthInBytes = args.width,
		.Height = args.height,
		.Depth = 1};
	result = ckt_driver.cuMemcpy3DAsync_v2(&copy, stream);
	return ckt_worker_reply_when_done(call, result, args.stream, stream, piece, size);
}

int ckt_worker_memcpy_array(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_memcpy_array_args args;
	CUstream stream;
	if (!ckt_memcpy_array_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = args.src_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE,
		.srcXInBytes = args.src_array ? args.src_x : 0,
		.srcDevice = args.src_array ? 0 : args.src_x,
		.srcY = args.src_array ? args.src_y : 0,
		.srcZ = args.src_array ? args.src_z : 0,
		.srcPitch = args.src_pitch,
		.srcHeight = args.src_rows,
		.dstMemoryType = args.dst_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE,
		.dstXInBytes = args.dst_array ? args.dst_x : 0,
		.dstDevice = args.dst_array ? 0 : args.dst_x,
		.dstY = args.dst_array ? args.dst_y : 0,
		.dstZ = args.dst_array ? args.dst_z : 0,
		.dstPitch = args.dst_pitch,
		.dstHeight = args.dst_rows,
		.WidthInBytes = args.width,
		.Height = args.height,
		.Depth = args.depth};
	CUresult result = ckt_object_stream(worker, args.stream, &stream);
	if (!result && args.src_array)
		result = ckt_array_real(worker, args.src_array, args.src_level, &copy.srcArray);
	if (!result && args.dst_array)
		result = ckt_array_real(worker, args.dst_array, args.dst_level, &copy.dstArray);
	return result ? result : ckt_driver.cuMemcpy3DAsync_v2(&copy, stream);
}
