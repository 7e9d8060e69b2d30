/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of cuBLAS, and what is set of them; see cublas.h. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublas/cublas.h"
#include "client/libs/major.h"

enum { WORKSPACE_ALIGNMENT = 256 };
/* What the genuine library has where the program gives none, by its documentation. */
enum { WORKSPACE = 4 << 20, WORKSPACE_HOPPER = 32 << 20, CAPABILITY_HOPPER = 90 };
/* More than a program can mean: such a setting is none. */
enum { WORKSPACE_KIB_MAX = 4 << 20 };

int ckt_cublas_unsupported(const char *name, bool *once)
{
	const struct ckt_client_table *client = ckt_client();
	if (client)
		client->unsupported(name, once);
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t ckt_cublas_open(uint32_t *ret_version)
{
	static struct ckt_lib_opened opened;
	uint32_t version =
		ckt_lib_major == CUBLAS_VER_MAJOR ? CUBLAS_VERSION : ckt_lib_major * 10000;
	CUresult result = ckt_lib_open(&opened, "cuBLAS",
		CKT_LIB_PROC(CKT_LIB_CUBLAS, CKT_CUBLAS_PROC_CUBLAS_OPEN), version);
	*ret_version = opened.version;
	return result == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED
		: result                          ? CUBLAS_STATUS_NOT_INITIALIZED
						  : CUBLAS_STATUS_SUCCESS;
}

struct ckt_cublas_handle *ckt_cublas_handle(cublasHandle_t handle)
{
	struct ckt_cublas_handle *own = (struct ckt_cublas_handle *)handle;
	return own && own->object.magic == CKT_LIB_OBJECT_MAGIC && own->object.lib == CKT_LIB_CUBLAS
		? own
		: NULL;
}

/* ---- What was set */

/*
 * The largest size in CUBLAS_WORKSPACE_CONFIG, which is a list of ":KiB:COUNT": a call has one of
 * these buffers.  On an H200 calls behind ":4096:8" take the algorithms that 4 MiB of the program's
 * give.
 */
static size_t configured_workspace(size_t otherwise)
{
	const char *p = getenv("CUBLAS_WORKSPACE_CONFIG");
	size_t largest = 0;
	if (!p || *p != ':')
		return otherwise;
	while (*p) {
		char *end = NULL;
		unsigned long size = *p == ':' && isdigit((unsigned char)p[1])
			? strtoul(p + 1, &end, 10)
			: ULONG_MAX;
		if (size > WORKSPACE_KIB_MAX || *end != ':' || !isdigit((unsigned char)end[1]))
			return otherwise;
		unsigned long count = strtoul(end + 1, &end, 10);
		if (count && size > largest)
			largest = size;
		p = end;
	}
	return largest << 10;
}

/*
 * What the genuine library has for a handle decides which algorithm it takes, so that is left
 * alone; in a capture it would be taken from inside the graph, so there the handle has one of ours.
 */
static void workspace_for(const struct ckt_client_table *client, struct ckt_cublas_handle *own)
{
	if (__builtin_expect(!client->captures(own->object.stream), 1)) {
		own->object.workspace = own->wanted.workspace = own->wanted.workspace_bytes = 0;
		return;
	}
	struct ckt_cublas_workspace *found = own->workspaces;
	while (found && found->stream != own->object.stream)
		found = found->next;
	if (!found) {
		found = calloc(1, sizeof *found);
		if (!found)
			return;
		found->stream = own->object.stream;
		found->bytes = configured_workspace(
			client->capability() >= CAPABILITY_HOPPER ? WORKSPACE_HOPPER : WORKSPACE);
		/* Without memory the genuine library does as it would anyway. */
		if (found->bytes && client->workspace_alloc(found->bytes, &found->address))
			found->bytes = 0;
		found->next = own->workspaces;
		own->workspaces = found;
	}
	own->object.workspace = own->wanted.workspace = found->address;
	own->wanted.workspace_bytes = found->bytes;
}

static void flush(const struct ckt_client_table *client, struct ckt_cublas_handle *own)
{
	struct ckt_call call;
	if (client->begin(&call, CKT_LIB_PROC(CKT_LIB_CUBLAS, CKT_CUBLAS_PROC_CUBLAS_SET),
		    ckt_cublas_set_args_size(&own->wanted), CKT_CALL_F_BATCHED))
		return; /* The call that this is for says why. */
	call.p = ckt_cublas_set_args_put(call.p, &own->wanted);
	if (client->queue(&call) == CUDA_SUCCESS)
		own->sent = own->wanted;
}

struct ckt_lib_object *ckt_cublas_take_handle(cublasHandle_t handle)
{
	struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	const struct ckt_client_table *client = ckt_client();
	if (!own || !client)
		return NULL;
	if (__builtin_expect(!client->context(), 0))
		client->enter();
	if (own->own_workspace)
		workspace_for(client, own);
	if (__builtin_expect(memcmp(&own->wanted, &own->sent, sizeof own->wanted) != 0, 0))
		flush(client, own);
	return &own->object;
}

/* ---- Their life */

/* Makes the object at the server: *ret is what the library there says and begins with. */
static CUresult create(
	const struct ckt_client_table *client, uint64_t id, struct ckt_cublasCreate_v2_res *ret)
{
	struct ckt_call call;
	struct ckt_reply reply;
	struct ckt_cublasCreate_v2_args args = {.handle = id};
	CUresult result =
		client->begin(&call, CKT_LIB_PROC(CKT_LIB_CUBLAS, CKT_CUBLAS_PROC_CUBLASCREATE_V2),
			ckt_cublasCreate_v2_args_size(&args), CKT_CALL_F_NUMBERED);
	if (result)
		return result;
	call.p = ckt_cublasCreate_v2_args_put(call.p, &args);
	result = client->wait(&call, &reply);
	if (result)
		return result;
	if (!ckt_cublasCreate_v2_res_get(&reply.results, ret))
		result = CUDA_ERROR_UNKNOWN;
	client->release(&reply);
	return result;
}

CKT_LIB_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	uint32_t version;
	CKT_CUBLAS_LOG();
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ckt_cublas_open(&version);
	if (status)
		return status;
	const struct ckt_client_table *client = ckt_client();
	struct ckt_cublas_handle *own = calloc(1, sizeof *own);
	uint64_t id = own ? client->object_make() : 0;
	if (!id) {
		free(own);
		return CUBLAS_STATUS_ALLOC_FAILED;
	}
	struct ckt_cublasCreate_v2_res made = {0};
	CUresult result = create(client, id, &made);
	if (result || made.status) {
		client->object_drop(id);
		free(own);
		return ckt_cublas_answer(result, made.status);
	}
	own->object = (struct ckt_lib_object){.magic = CKT_LIB_OBJECT_MAGIC,
		.lib = CKT_LIB_CUBLAS,
		.id = id,
		.context = client->context()};
	own->own_workspace = true;
	own->wanted = own->sent = (struct ckt_cublas_set_args){.handle = id,
		.math_mode = made.math_mode,
		.atomics_mode = made.atomics_mode,
		.sm_count_target = made.sm_count_target,
		.emulation_strategy = made.emulation_strategy,
		.emulation_special_values = made.emulation_special_values,
		.emulation_mantissa_control = made.emulation_mantissa_control,
		.emulation_max_mantissa_bits = made.emulation_max_mantissa_bits,
		.emulation_mantissa_bit_offset = made.emulation_mantissa_bit_offset};
	*handle = (cublasHandle_t)own;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
	struct ckt_call call;
	struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	const struct ckt_client_table *client = ckt_client();
	CKT_CUBLAS_LOG();
	if (!own || !client)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	struct ckt_cublasDestroy_v2_args args = {.handle = own->object.id};
	CUresult result =
		client->begin(&call, CKT_LIB_PROC(CKT_LIB_CUBLAS, CKT_CUBLAS_PROC_CUBLASDESTROY_V2),
			ckt_cublasDestroy_v2_args_size(&args), CKT_CALL_F_BATCHED);
	if (!result) {
		call.p = ckt_cublasDestroy_v2_args_put(call.p, &args);
		client->queue(&call);
	}
	/* Waits for the work that uses it, as the genuine function does. */
	for (struct ckt_cublas_workspace *w = own->workspaces, *next; w; w = next) {
		next = w->next;
		if (w->address)
			client->workspace_free(w->address);
		free(w);
	}
	client->object_drop(own->object.id);
	own->object.magic = 0;
	free(own);
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- Setting and asking */

CKT_LIB_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
	struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	uint64_t id;
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	const struct ckt_client_table *client = ckt_client();
	CUresult result = client->stream((CUstream)stream, &id);
	if (result)
		return ckt_cublas_of(result);
	own->stream = stream;
	own->object.stream = own->wanted.stream = id;
	/* Whatever the program gave is not for this stream. */
	own->own_workspace = true;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
	const struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!stream)
		return CUBLAS_STATUS_INVALID_VALUE;
	*stream = own->stream;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasSetWorkspace_v2(
	cublasHandle_t handle, void *workspace, size_t bytes)
{
	struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if ((uintptr_t)workspace % WORKSPACE_ALIGNMENT)
		return CUBLAS_STATUS_INVALID_VALUE;
	own->own_workspace = false;
	own->object.workspace = 0;
	/*
	 * A message with 0 and 0 gives the library its own back: to have none is another thing, and
	 * chooses other algorithms.
	 */
	own->wanted.workspace = workspace || bytes ? (uintptr_t)workspace : WORKSPACE_ALIGNMENT;
	own->wanted.workspace_bytes = bytes;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasSetPointerMode_v2(
	cublasHandle_t handle, cublasPointerMode_t mode)
{
	struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if ((unsigned)mode > CUBLAS_POINTER_MODE_DEVICE)
		return CUBLAS_STATUS_INVALID_VALUE;
	/* Travels with each call that has scalars. */
	own->object.pointer_mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasGetPointerMode_v2(
	cublasHandle_t handle, cublasPointerMode_t *mode)
{
	const struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = (cublasPointerMode_t)own->object.pointer_mode;
	return CUBLAS_STATUS_SUCCESS;
}

static bool math_mode_is_valid(cublasMath_t mode)
{
	switch ((int)mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) {
	case CUBLAS_DEFAULT_MATH:
	case CUBLAS_TENSOR_OP_MATH:
	case CUBLAS_PEDANTIC_MATH:
	case CUBLAS_TF32_TENSOR_OP_MATH:
	case 4: /* CUBLAS_FP32_EMULATED_BF16X9_MATH, */
	case 8: /* CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH: of later headers */
		return true;
	default:
		return false;
	}
}

/* A setter and a getter of what is a number of the handle's. */
#define PROPERTY(NAME, type, field, valid)                                                \
	CKT_LIB_EXPORT cublasStatus_t cublasSet##NAME(cublasHandle_t handle, type value)  \
	{                                                                                 \
		struct ckt_cublas_handle *own = ckt_cublas_handle(handle);                \
		CKT_CUBLAS_LOG();                                                         \
		if (!own)                                                                 \
			return CUBLAS_STATUS_NOT_INITIALIZED;                             \
		if (!(valid))                                                             \
			return CUBLAS_STATUS_INVALID_VALUE;                               \
		own->wanted.field = (int32_t)value;                                       \
		return CUBLAS_STATUS_SUCCESS;                                             \
	}                                                                                 \
	CKT_LIB_EXPORT cublasStatus_t cublasGet##NAME(cublasHandle_t handle, type *value) \
	{                                                                                 \
		const struct ckt_cublas_handle *own = ckt_cublas_handle(handle);          \
		CKT_CUBLAS_LOG();                                                         \
		if (!own)                                                                 \
			return CUBLAS_STATUS_NOT_INITIALIZED;                             \
		if (!value)                                                               \
			return CUBLAS_STATUS_INVALID_VALUE;                               \
		*value = (type)own->wanted.field;                                         \
		return CUBLAS_STATUS_SUCCESS;                                             \
	}

PROPERTY(MathMode, cublasMath_t, math_mode, math_mode_is_valid(value))
PROPERTY(AtomicsMode, cublasAtomicsMode_t, atomics_mode, (unsigned)value <= CUBLAS_ATOMICS_ALLOWED)
PROPERTY(SmCountTarget, int, sm_count_target, value >= 0)
PROPERTY(EmulationStrategy, cublasEmulationStrategy_t, emulation_strategy,
	(unsigned)value <= CUBLAS_EMULATION_STRATEGY_EAGER)
PROPERTY(EmulationSpecialValuesSupport, cudaEmulationSpecialValuesSupport, emulation_special_values,
	true)
PROPERTY(FixedPointEmulationMantissaControl, cudaEmulationMantissaControl,
	emulation_mantissa_control, true)
PROPERTY(FixedPointEmulationMaxMantissaBitCount, int, emulation_max_mantissa_bits, value >= 0)
PROPERTY(FixedPointEmulationMantissaBitOffset, int, emulation_mantissa_bit_offset, true)

CKT_LIB_EXPORT cublasStatus_t cublasSetFixedPointEmulationMantissaBitCountPointer(
	cublasHandle_t handle, int *count)
{
	struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	own->wanted.emulation_bit_count = (uintptr_t)count;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasGetFixedPointEmulationMantissaBitCountPointer(
	cublasHandle_t handle, int **count)
{
	const struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!count)
		return CUBLAS_STATUS_INVALID_VALUE;
	*count = (int *)(uintptr_t)own->wanted.emulation_bit_count;
	return CUBLAS_STATUS_SUCCESS;
}

/* Sent at once: hardly a program sets it, and none often. */
CKT_LIB_EXPORT cublasStatus_t cublasSetEnvironmentMode(cublasHandle_t handle, int mode)
{
	struct ckt_call call;
	struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if ((unsigned)mode > 1)
		return CUBLAS_STATUS_INVALID_VALUE;
	struct ckt_cublas_set_environment_mode_args args = {.handle = own->object.id, .mode = mode};
	const struct ckt_client_table *client = ckt_client();
	CUresult result = client->begin(&call,
		CKT_LIB_PROC(CKT_LIB_CUBLAS, CKT_CUBLAS_PROC_CUBLAS_SET_ENVIRONMENT_MODE),
		ckt_cublas_set_environment_mode_args_size(&args), CKT_CALL_F_BATCHED);
	if (!result) {
		call.p = ckt_cublas_set_environment_mode_args_put(call.p, &args);
		result = client->queue(&call);
	}
	if (!result)
		own->environment_mode = mode;
	return ckt_cublas_of(result);
}

CKT_LIB_EXPORT cublasStatus_t cublasGetEnvironmentMode(cublasHandle_t handle, int *mode)
{
	const struct ckt_cublas_handle *own = ckt_cublas_handle(handle);
	CKT_CUBLAS_LOG();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = own->environment_mode;
	return CUBLAS_STATUS_SUCCESS;
}
