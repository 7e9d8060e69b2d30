/* SPDX-License-Identifier: Apache-2.0 */
/* Handles and devices of cublasXt, and blocks on their way; see xt.h. */
#include "client/libs/cublas/xt.h"

#include <string.h>

#define MAGIC 0x434b547874303031ull
enum { BLOCK = 1024 }; /* of a new handle, as the genuine library has it */

/* ---- Handles */

static struct cublasXtContext *own_of(cublasXtHandle_t handle)
{
	return handle && handle->magic == MAGIC ? handle : NULL;
}

struct cublasXtContext *ckt_xt_take(cublasXtHandle_t handle, cublasStatus_t *ret_status)
{
	struct cublasXtContext *own = own_of(handle);
	*ret_status = own && own->count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
	return *ret_status ? NULL : own;
}

CKT_LIB_EXPORT cublasStatus_t cublasXtCreate(cublasXtHandle_t *handle)
{
	uint32_t version;
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	const struct ckt_client_table *client = ckt_client();
	cublasStatus_t status = !client || client->enter() ? CUBLAS_STATUS_NOT_INITIALIZED
							   : ckt_cublas_open(&version);
	if (status)
		return status;
	struct cublasXtContext *own = calloc(1, sizeof *own);
	if (!own)
		return CUBLAS_STATUS_ALLOC_FAILED;
	*own = (struct cublasXtContext){.magic = MAGIC, .block = BLOCK};
	*handle = own;
	return CUBLAS_STATUS_SUCCESS;
}

static void end_device(struct ckt_xt_device *device)
{
	const struct ckt_client_table *client = ckt_client();
	if (!device->context || ckt_xt_enter(device))
		return;
	for (unsigned i = 0; i < CKT_XT_SIDES; i++)
		if (device->tiles[i])
			client->workspace_free(device->tiles[i]);
	if (device->handle)
		cublasDestroy_v2(device->handle);
	if (device->stream)
		client->devices->stream_destroy(device->stream);
	ckt_xt_leave();
	client->devices->release(device->ordinal);
}

static void end_devices(struct cublasXtContext *own)
{
	for (int i = 0; i < own->count; i++)
		end_device(&own->devices[i]);
	free(own->devices);
	own->devices = NULL;
	own->count = 0;
}

CKT_LIB_EXPORT cublasStatus_t cublasXtDestroy(cublasXtHandle_t handle)
{
	struct cublasXtContext *own = own_of(handle);
	if (!own)
		return CUBLAS_STATUS_INVALID_VALUE;
	end_devices(own);
	own->magic = 0;
	free(own);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t begin_device(struct ckt_xt_device *device, int ordinal)
{
	const struct ckt_client_devices *devices = ckt_client()->devices;
	device->ordinal = ordinal;
	CUresult result = devices->retain(&device->context, ordinal);
	if (result) {
		device->context = NULL;
		return ckt_cublas_of(result);
	}
	cublasStatus_t status = ckt_xt_enter(device);
	if (status)
		return status;
	/*
	 * In order with the legacy default stream, on which the program may have made its operands.
	 */
	status = ckt_cublas_of(devices->stream_create(&device->stream, CU_STREAM_DEFAULT));
	if (!status)
		status = cublasCreate_v2(&device->handle);
	if (!status)
		status = cublasSetStream_v2(device->handle, (cudaStream_t)device->stream);
	ckt_xt_leave();
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasXtDeviceSelect(
	cublasXtHandle_t handle, int nbDevices, int deviceId[])
{
	struct cublasXtContext *own = own_of(handle);
	const struct ckt_client_table *client = ckt_client();
	int there = 0;
	if (!own || nbDevices <= 0 || !deviceId || !client || client->devices->count(&there))
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < nbDevices; i++)
		if (deviceId[i] < 0 || deviceId[i] >= there)
			return CUBLAS_STATUS_INVALID_VALUE;
	end_devices(own);
	own->devices = calloc((size_t)nbDevices, sizeof *own->devices);
	if (!own->devices)
		return CUBLAS_STATUS_ALLOC_FAILED;
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	while (!status && own->count < nbDevices) {
		status = begin_device(&own->devices[own->count], deviceId[own->count]);
		own->count++;
	}
	if (status)
		end_devices(own);
	return status;
}

/* A board is a device: none of today's has two. */
CKT_LIB_EXPORT cublasStatus_t cublasXtGetNumBoards(int nbDevices, int deviceId[], int *nbBoards)
{
	if (nbDevices <= 0 || !deviceId || !nbBoards)
		return CUBLAS_STATUS_INVALID_VALUE;
	int count = 0;
	for (int i = 0; i < nbDevices; i++) {
		bool again = false;
		for (int before = 0; before < i; before++)
			again |= deviceId[before] == deviceId[i];
		count += !again;
	}
	*nbBoards = count;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasXtMaxBoards(int *nbGpuBoards)
{
	const struct ckt_client_table *client = ckt_client();
	if (!nbGpuBoards)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!client || client->enter() || client->devices->count(nbGpuBoards))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasXtSetBlockDim(cublasXtHandle_t handle, int blockDim)
{
	struct cublasXtContext *own = own_of(handle);
	if (!own || blockDim <= 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	own->block = blockDim;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasXtGetBlockDim(cublasXtHandle_t handle, int *blockDim)
{
	const struct cublasXtContext *own = own_of(handle);
	if (!own || !blockDim)
		return CUBLAS_STATUS_INVALID_VALUE;
	*blockDim = own->block;
	return CUBLAS_STATUS_SUCCESS;
}

/*
 * Copies of memory that is not pinned are staged by the client: pinning it for a call would save
 * nothing.
 */
CKT_LIB_EXPORT cublasStatus_t cublasXtSetPinningMemMode(
	cublasXtHandle_t handle, cublasXtPinnedMemMode_t mode)
{
	struct cublasXtContext *own = own_of(handle);
	if (!own || (unsigned)mode > CUBLASXT_PINNING_ENABLED)
		return CUBLAS_STATUS_INVALID_VALUE;
	own->pinning = mode;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasXtGetPinningMemMode(
	cublasXtHandle_t handle, cublasXtPinnedMemMode_t *mode)
{
	const struct cublasXtContext *own = own_of(handle);
	if (!own || !mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = own->pinning;
	return CUBLAS_STATUS_SUCCESS;
}

/*
 * Whether a routine of the program's for the CPU can take a share of it: trmm has none, and
 * hermitian ones are complex.
 */
static cublasStatus_t cpu_share(cublasXtHandle_t handle, cublasXtBlasOp_t op, cublasXtOpType_t type)
{
	if (!own_of(handle) || (unsigned)op >= CUBLASXT_ROUTINE_MAX ||
		(unsigned)type > CUBLASXT_DOUBLECOMPLEX)
		return CUBLAS_STATUS_INVALID_VALUE;
	bool hermitian = op == CUBLASXT_HERK || op == CUBLASXT_HEMM || op == CUBLASXT_HER2K ||
		op == CUBLASXT_HERKX;
	bool complex = type == CUBLASXT_COMPLEX || type == CUBLASXT_DOUBLECOMPLEX;
	return op == CUBLASXT_TRMM || (hermitian && !complex) ? CUBLAS_STATUS_NOT_SUPPORTED
							      : CUBLAS_STATUS_SUCCESS;
}

/* The share is an offer that the devices do not need: all of the work is theirs. */
CKT_LIB_EXPORT cublasStatus_t cublasXtSetCpuRoutine(
	cublasXtHandle_t handle, cublasXtBlasOp_t blasOp, cublasXtOpType_t type, void *blasFunctor)
{
	(void)blasFunctor;
	return cpu_share(handle, blasOp, type);
}

CKT_LIB_EXPORT cublasStatus_t cublasXtSetCpuRatio(
	cublasXtHandle_t handle, cublasXtBlasOp_t blasOp, cublasXtOpType_t type, float ratio)
{
	cublasStatus_t status = cpu_share(handle, blasOp, type);
	return !status && !(ratio >= 0 && ratio <= 1) ? CUBLAS_STATUS_INVALID_VALUE : status;
}

/* ---- Devices */

cublasStatus_t ckt_xt_enter(const struct ckt_xt_device *device)
{
	return ckt_cublas_of(ckt_client()->devices->push(device->context));
}

void ckt_xt_leave(void)
{
	CUcontext popped;
	ckt_client()->devices->pop(&popped);
}

cublasStatus_t ckt_xt_wait(const struct ckt_xt_device *device)
{
	return ckt_cublas_of(ckt_client()->devices->stream_wait(device->stream));
}

cublasStatus_t ckt_xt_finish(const struct ckt_xt_job *job, cublasStatus_t status)
{
	for (int i = 0; i < job->own->count; i++) {
		cublasStatus_t other = ckt_xt_enter(&job->own->devices[i]);
		if (!other) {
			other = ckt_xt_wait(&job->own->devices[i]);
			ckt_xt_leave();
		}
		status = status ? status : other;
	}
	return status;
}

void ckt_xt_place(struct ckt_xt_matrix *matrix)
{
	const struct ckt_client_devices *devices = ckt_client()->devices;
	CUdeviceptr address = (uintptr_t)matrix->data;
	unsigned type = 0, managed = 0;
	int ordinal = -1;
	matrix->device = -1;
	/* Ordinary memory has no attributes; managed memory is copied as the host's. */
	if (!address ||
		devices->pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) ||
		type != CU_MEMORYTYPE_DEVICE)
		return;
	if (!devices->pointer_attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) &&
		managed)
		return;
	if (!devices->pointer_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address))
		matrix->device = ordinal;
}

/* ---- Blocks */

static const uint8_t *element(
	const struct ckt_xt_job *job, const struct ckt_xt_matrix *matrix, size_t i, size_t j)
{
	return (const uint8_t *)matrix->data +
		(i * job->block + j * job->block * matrix->ld) * job->type->size;
}

static cublasStatus_t reserve(
	const struct ckt_xt_job *job, struct ckt_xt_device *device, enum ckt_xt_side side)
{
	size_t bytes = job->block * job->block * job->type->size;
	const struct ckt_client_table *client = ckt_client();
	if (device->tile_bytes[side] >= bytes)
		return CUBLAS_STATUS_SUCCESS;
	/* Waits for what uses it. */
	if (device->tiles[side])
		client->workspace_free(device->tiles[side]);
	device->tiles[side] = device->tile_bytes[side] = 0;
	cublasStatus_t status = ckt_cublas_of(client->workspace_alloc(bytes, &device->tiles[side]));
	if (!status)
		device->tile_bytes[side] = bytes;
	return status;
}

/* Rows of bytes between a matrix and a device's memory. */
struct rectangle {
	uint64_t matrix, tile;
	size_t matrix_pitch, tile_pitch, width, height;
};

static cublasStatus_t copy(const struct ckt_xt_device *device, const struct ckt_xt_matrix *matrix,
	const struct rectangle *r, bool to_tile)
{
	CUmemorytype there = matrix->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	CUDA_MEMCPY2D c = {.WidthInBytes = r->width, .Height = r->height};
	c.srcMemoryType = to_tile ? there : CU_MEMORYTYPE_DEVICE;
	c.dstMemoryType = to_tile ? CU_MEMORYTYPE_DEVICE : there;
	c.srcDevice = to_tile ? r->matrix : r->tile;
	c.dstDevice = to_tile ? r->tile : r->matrix;
	c.srcHost = (void *)(uintptr_t)c.srcDevice;
	c.dstHost = (void *)(uintptr_t)c.dstDevice;
	c.srcPitch = to_tile ? r->matrix_pitch : r->tile_pitch;
	c.dstPitch = to_tile ? r->tile_pitch : r->matrix_pitch;
	return r->width && r->height
		? ckt_cublas_of(ckt_client()->copy_2d(&c, device->stream, true))
		: CUBLAS_STATUS_SUCCESS;
}

static struct rectangle block_of(const struct ckt_xt_job *job, const struct ckt_xt_matrix *matrix,
	size_t i, size_t j, uint64_t tile)
{
	size_t rows = ckt_xt_part(matrix->rows, job->block, i), size = job->type->size;
	return (struct rectangle){.matrix = (uintptr_t)element(job, matrix, i, j),
		.tile = tile,
		.matrix_pitch = matrix->ld * size,
		.tile_pitch = job->block * size,
		.width = rows * size,
		.height = ckt_xt_part(matrix->columns, job->block, j)};
}

/* A column of what is packed at a time; of a block on the diagonal what is stored. */
static cublasStatus_t fetch_packed(const struct ckt_xt_job *job, const struct ckt_xt_device *device,
	const struct ckt_xt_matrix *matrix, size_t i, size_t j, uint64_t tile)
{
	size_t n = matrix->rows, size = job->type->size, first = i * job->block,
	       rows = ckt_xt_part(n, job->block, i);
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	for (size_t t = 0; !status && t < ckt_xt_part(n, job->block, j); t++) {
		size_t column = j * job->block + t, from = first, to = first + rows;
		bool lower = matrix->uplo == CUBLAS_FILL_MODE_LOWER;
		if (lower && from < column)
			from = column;
		if (!lower && to > column + 1)
			to = column + 1;
		if (from >= to)
			continue;
		/* A lower column begins with its diagonal element, an upper one with row 0. */
		size_t begin =
			lower ? column * n - column * (column + 1) / 2 : column * (column + 1) / 2;
		struct rectangle r = {.matrix = (uintptr_t)matrix->data + (begin + from) * size,
			.tile = tile + (t * job->block + from - first) * size,
			.matrix_pitch = (to - from) * size,
			.tile_pitch = job->block * size,
			.width = (to - from) * size,
			.height = 1};
		status = copy(device, matrix, &r, true);
	}
	return status;
}

cublasStatus_t ckt_xt_fetch(const struct ckt_xt_job *job, struct ckt_xt_device *device,
	enum ckt_xt_side side, const struct ckt_xt_matrix *matrix, size_t i, size_t j,
	struct ckt_xt_tile *ret)
{
	if (matrix->device == device->ordinal && matrix->form != CKT_XT_PACKED) {
		*ret = (struct ckt_xt_tile){element(job, matrix, i, j), (int64_t)matrix->ld};
		return CUBLAS_STATUS_SUCCESS;
	}
	cublasStatus_t status = reserve(job, device, side);
	if (status)
		return status;
	*ret = (struct ckt_xt_tile){
		(const void *)(uintptr_t)device->tiles[side], (int64_t)job->block};
	if (matrix->form == CKT_XT_PACKED)
		return fetch_packed(job, device, matrix, i, j, device->tiles[side]);
	struct rectangle r = block_of(job, matrix, i, j, device->tiles[side]);
	return copy(device, matrix, &r, true);
}

cublasStatus_t ckt_xt_result(const struct ckt_xt_job *job, struct ckt_xt_device *device,
	const struct ckt_xt_matrix *matrix, size_t i, size_t j, struct ckt_xt_tile *ret)
{
	if (matrix->device == device->ordinal) {
		*ret = (struct ckt_xt_tile){element(job, matrix, i, j), (int64_t)matrix->ld};
		return CUBLAS_STATUS_SUCCESS;
	}
	cublasStatus_t status = reserve(job, device, CKT_XT_RESULT);
	*ret = (struct ckt_xt_tile){
		(const void *)(uintptr_t)device->tiles[CKT_XT_RESULT], (int64_t)job->block};
	return status;
}

cublasStatus_t ckt_xt_store(const struct ckt_xt_job *job, struct ckt_xt_device *device,
	const struct ckt_xt_matrix *matrix, size_t i, size_t j, const struct ckt_xt_tile *tile)
{
	if (matrix->device == device->ordinal)
		return CUBLAS_STATUS_SUCCESS;
	struct rectangle r = block_of(job, matrix, i, j, (uintptr_t)tile->data);
	return copy(device, matrix, &r, false);
}

/* ---- Scalars */

static const double ones[2] = {1, 0}, minus_ones[2] = {-1, 0};
static const float small_ones[2] = {1, 0}, small_minus_ones[2] = {-1, 0};

const void *ckt_xt_one(const struct ckt_xt_type *type)
{
	return type->wide ? (const void *)ones : small_ones;
}

const void *ckt_xt_minus_one(const struct ckt_xt_type *type)
{
	return type->wide ? (const void *)minus_ones : small_minus_ones;
}

bool ckt_xt_is_zero(const struct ckt_xt_type *type, const void *value)
{
	const double *wide = value;
	const float *small = value;
	if (type->wide)
		return wide[0] == 0 && (!type->complex || wide[1] == 0);
	return small[0] == 0 && (!type->complex || small[1] == 0);
}
