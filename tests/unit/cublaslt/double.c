/* SPDX-License-Identifier: Apache-2.0 */
/* See double.h. */
#include "tests/unit/cublaslt/double.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/libs/cublasLt/cublasLt.h"

enum { ATTRIBUTES = 48, HANDLE = 0x4a4d, TEXT = 1 << 16 };

struct descriptor {
	enum ckt_lt_kind kind;
	uint64_t values[ATTRIBUTES];
	bool set[ATTRIBUTES];
};

cublasStatus_t double_status;
int double_results = 2, double_unknown = -1;

static char calls[TEXT], given[TEXT];
static int living, made;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	size_t used = strlen(calls);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(calls + used, sizeof calls - used, format, arguments);
	va_end(arguments);
}

const char *double_calls(void)
{
	strcpy(given, calls);
	calls[0] = 0;
	return given;
}

int double_descriptors(void)
{
	return living;
}

int double_made(void)
{
	return made;
}

static cublasStatus_t answer(void)
{
	cublasStatus_t status = double_status;
	double_status = CUBLAS_STATUS_SUCCESS;
	return status;
}

/* ---- Descriptors: as little as they need to be told apart */

static struct descriptor *make(enum ckt_lt_kind kind)
{
	struct descriptor *new = calloc(1, sizeof *new);
	new->kind = kind;
	living++;
	made++;
	return new;
}

static void note(struct descriptor *descriptor, int attribute, uint64_t value)
{
	descriptor->values[attribute] = value;
	descriptor->set[attribute] = true;
}

static cublasStatus_t end(void *descriptor)
{
	living--;
	free(descriptor);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(
	enum ckt_lt_kind kind, void *real, int attribute, const void *value, size_t size)
{
	struct descriptor *descriptor = real;
	uint64_t word = 0;
	if (descriptor->kind != kind || attribute < 0 || attribute >= ATTRIBUTES ||
		attribute == double_unknown || size > sizeof word)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&word, value, size);
	note(descriptor, attribute, word);
	return CUBLAS_STATUS_SUCCESS;
}

static void add_descriptor(const char *name, const void *real)
{
	const struct descriptor *descriptor = real;
	add(" %s=", name);
	if (!descriptor) {
		add("NULL");
		return;
	}
	add("{");
	const char *gap = "";
	for (int i = 0; i < ATTRIBUTES; i++) {
		if (!descriptor->set[i])
			continue;
		if (descriptor->kind == CKT_LT_MATMUL && i == CKT_LT_MATMUL_EMULATION) {
			add_descriptor("emulation", (const void *)(uintptr_t)descriptor->values[i]);
			gap = " ";
			continue;
		}
		add("%s%d=%llx", gap, i, (unsigned long long)descriptor->values[i]);
		gap = " ";
	}
	add("}");
}

static cublasStatus_t matmul_create(
	cublasLtMatmulDesc_t *ret, cublasComputeType_t compute, cudaDataType_t scale)
{
	struct descriptor *new = make(CKT_LT_MATMUL);
	note(new, 0, compute);
	note(new, 1, scale);
	*ret = (void *)new;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t layout_create(
	cublasLtMatrixLayout_t *ret, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	struct descriptor *new = make(CKT_LT_LAYOUT);
	note(new, 0, type);
	note(new, 2, rows);
	note(new, 3, cols);
	note(new, 4, (uint64_t)ld);
	*ret = (void *)new;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t transform_create(cublasLtMatrixTransformDesc_t *ret, cudaDataType scale)
{
	struct descriptor *new = make(CKT_LT_TRANSFORM);
	note(new, 0, scale);
	*ret = (void *)new;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t preference_create(cublasLtMatmulPreference_t *ret)
{
	*ret = (void *)make(CKT_LT_PREFERENCE);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t emulation_create(cublasLtEmulationDesc_t *ret)
{
	*ret = (void *)make(CKT_LT_EMULATION);
	return CUBLAS_STATUS_SUCCESS;
}

#define KIND(name, kind, type, attributes)                                             \
	static cublasStatus_t name##_destroy(type descriptor)                          \
	{                                                                              \
		return end(descriptor);                                                \
	}                                                                              \
	static cublasStatus_t name##_set(                                              \
		type descriptor, attributes attribute, const void *value, size_t size) \
	{                                                                              \
		return set(kind, descriptor, (int)attribute, value, size);             \
	}

KIND(matmul, CKT_LT_MATMUL, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t)
KIND(layout, CKT_LT_LAYOUT, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t)
KIND(transform, CKT_LT_TRANSFORM, cublasLtMatrixTransformDesc_t,
	cublasLtMatrixTransformDescAttributes_t)
KIND(preference, CKT_LT_PREFERENCE, cublasLtMatmulPreference_t,
	cublasLtMatmulPreferenceAttributes_t)
KIND(emulation, CKT_LT_EMULATION, cublasLtEmulationDesc_t, cublasLtEmulationDescAttributes_t)

/* ---- What is recorded */

static void add_scalar(const char *name, bool host, uint64_t type, const void *value)
{
	uint8_t bytes[16] = {0};
	if (!host) {
		add(" %s=%#llx", name, (unsigned long long)(uintptr_t)value);
		return;
	}
	add(" %s=host:", name);
	memcpy(bytes, value, ckt_lt_scalar_bytes((uint32_t)type));
	for (unsigned i = 0; i < ckt_lt_scalar_bytes((uint32_t)type); i++)
		add("%02x", bytes[i]);
}

static void add_address(const char *name, const void *value)
{
	add(" %s=%#llx", name, (unsigned long long)(uintptr_t)value);
}

static void add_algo(const cublasLtMatmulAlgo_t *algo)
{
	if (algo)
		add(" algo=%llx..%llx", (unsigned long long)algo->data[0],
			(unsigned long long)algo->data[7]);
	else
		add(" algo=NULL");
}

static cublasStatus_t lt_create(cublasLtHandle_t *ret)
{
	add("cublasLtCreate\n");
	*ret = (cublasLtHandle_t)(uintptr_t)HANDLE;
	return answer();
}

static cublasStatus_t lt_destroy(cublasLtHandle_t handle)
{
	add("cublasLtDestroy handle=%llx\n", (unsigned long long)(uintptr_t)handle);
	return answer();
}

static cublasStatus_t lt_matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, const void *alpha,
	const void *a, cublasLtMatrixLayout_t a_desc, const void *b, cublasLtMatrixLayout_t b_desc,
	const void *beta, const void *c, cublasLtMatrixLayout_t c_desc, void *d,
	cublasLtMatrixLayout_t d_desc, const cublasLtMatmulAlgo_t *algo, void *workspace,
	size_t bytes, cudaStream_t stream)
{
	const struct descriptor *descriptor = (const void *)op;
	uint64_t mode = descriptor->values[CKT_LT_MATMUL_POINTER_MODE],
		 type = descriptor->values[CKT_LT_MATMUL_SCALE_TYPE];
	add("cublasLtMatmul handle=%llx", (unsigned long long)(uintptr_t)handle);
	add_descriptor("op", op);
	add_scalar("alpha", mode == CKT_LT_POINTER_HOST, type, alpha);
	add_address("a", a);
	add_descriptor("A", a_desc);
	add_address("b", b);
	add_descriptor("B", b_desc);
	add_scalar("beta",
		mode == CKT_LT_POINTER_HOST || mode == CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST, type,
		beta);
	add_address("c", c);
	add_descriptor("C", c_desc);
	add_address("d", d);
	add_descriptor("D", d_desc);
	add_algo(algo);
	add_address("workspace", workspace);
	add(" bytes=%zu stream=%s\n", bytes,
		stream == (cudaStream_t)CU_STREAM_LEGACY || !stream    ? "legacy"
			: stream == (cudaStream_t)CU_STREAM_PER_THREAD ? "thread"
								       : "made");
	return answer();
}

static cublasStatus_t lt_transform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t op,
	const void *alpha, const void *a, cublasLtMatrixLayout_t a_desc, const void *beta,
	const void *b, cublasLtMatrixLayout_t b_desc, void *c, cublasLtMatrixLayout_t c_desc,
	cudaStream_t stream)
{
	const struct descriptor *descriptor = (const void *)op;
	bool host = descriptor->values[CKT_LT_TRANSFORM_POINTER_MODE] == CKT_LT_POINTER_HOST;
	uint64_t type = descriptor->values[CKT_LT_TRANSFORM_SCALE_TYPE];
	add("cublasLtMatrixTransform handle=%llx", (unsigned long long)(uintptr_t)handle);
	add_descriptor("op", op);
	add_scalar("alpha", host, type, alpha);
	add_address("a", a);
	add_descriptor("A", a_desc);
	add_scalar("beta", host && beta, type, beta);
	add_address("b", b);
	add_descriptor("B", b_desc);
	add_address("c", c);
	add_descriptor("C", c_desc);
	add(" stream=%s\n",
		stream == (cudaStream_t)CU_STREAM_LEGACY || !stream ? "legacy" : "made");
	return answer();
}

static cublasStatus_t lt_heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
	cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int requested,
	cublasLtMatmulHeuristicResult_t results[], int *ret_count)
{
	add("cublasLtMatmulAlgoGetHeuristic handle=%llx", (unsigned long long)(uintptr_t)handle);
	add_descriptor("op", op);
	add_descriptor("A", a);
	add_descriptor("B", b);
	add_descriptor("C", c);
	add_descriptor("D", d);
	add_descriptor("preference", preference);
	add(" requested=%d given=%llx..%llx\n", requested,
		(unsigned long long)results[0].algo.data[0],
		(unsigned long long)results[requested - 1].algo.data[7]);
	*ret_count = double_results < requested ? double_results : requested;
	for (int i = 0; i < *ret_count; i++) {
		for (int word = 0; word < 8; word++)
			results[i].algo.data[word] = (uint64_t)(i * 100 + word + 1);
		results[i].workspaceSize = (size_t)(i + 1) * 1024;
		results[i].wavesCount = 0.5f * (float)(i + 1);
		results[i].state = CUBLAS_STATUS_SUCCESS;
	}
	return answer();
}

/* The stream alone is told; the rest is the same. */
static cublasStatus_t lt_heuristic_for_stream(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
	cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int requested,
	cublasLtMatmulHeuristicResult_t results[], int *ret_count, cudaStream_t stream)
{
	add("stream=%s ", stream == (cudaStream_t)CU_STREAM_PER_THREAD ? "thread" : "legacy");
	return lt_heuristic(handle, op, a, b, c, d, preference, requested, results, ret_count);
}

static cublasStatus_t lt_ids(cublasLtHandle_t handle, cublasComputeType_t compute,
	cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
	cudaDataType_t d, int requested, int ids[], int *ret_count)
{
	add("cublasLtMatmulAlgoGetIds handle=%llx types=%d,%d,%d,%d,%d,%d requested=%d\n",
		(unsigned long long)(uintptr_t)handle, compute, scale, a, b, c, d, requested);
	*ret_count = double_results < requested ? double_results : requested;
	for (int i = 0; i < *ret_count; i++)
		ids[i] = 20 + i;
	return answer();
}

static cublasStatus_t lt_init(cublasLtHandle_t handle, cublasComputeType_t compute,
	cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
	cudaDataType_t d, int id, cublasLtMatmulAlgo_t *algo)
{
	add("cublasLtMatmulAlgoInit handle=%llx types=%d,%d,%d,%d,%d,%d id=%d\n",
		(unsigned long long)(uintptr_t)handle, compute, scale, a, b, c, d, id);
	algo->data[0] = (uint64_t)id;
	algo->data[7] = 77;
	return answer();
}

static cublasStatus_t lt_check(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
	cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulHeuristicResult_t *result)
{
	add("cublasLtMatmulAlgoCheck handle=%llx", (unsigned long long)(uintptr_t)handle);
	add_descriptor("op", op);
	add_descriptor("A", a);
	add_descriptor("B", b);
	add_descriptor("C", c);
	add_descriptor("D", d);
	add_algo(algo);
	add("\n");
	result->workspaceSize = 4096;
	result->wavesCount = 2;
	return answer();
}

static cublasStatus_t lt_check_for_stream(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
	cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulHeuristicResult_t *result, cudaStream_t stream)
{
	add("stream=%s ", stream == (cudaStream_t)CU_STREAM_PER_THREAD ? "thread" : "legacy");
	return lt_check(handle, op, a, b, c, d, algo, result);
}

/* Attribute 6 is a list of double_results words; others have 4 bytes. */
static cublasStatus_t lt_cap(const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoCapAttributes_t attribute, void *value, size_t size, size_t *written)
{
	size_t all = attribute == 6 ? (size_t)double_results * 4 : 4;
	add("cublasLtMatmulAlgoCapGetAttribute");
	add_algo(algo);
	add(" attribute=%d value=%d size=%zu\n", attribute, value != NULL, size);
	if (size && attribute != 6 && size != 4)
		return CUBLAS_STATUS_INVALID_VALUE;
	*written = size && size < all ? size : all;
	for (size_t i = 0; i < *written && value; i++)
		((uint8_t *)value)[i] = (uint8_t)(i + 1);
	return answer();
}

static cublasStatus_t lt_config_get(const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoConfigAttributes_t attribute, void *value, size_t size, size_t *written)
{
	add("cublasLtMatmulAlgoConfigGetAttribute");
	add_algo(algo);
	add(" attribute=%d value=%d size=%zu\n", attribute, value != NULL, size);
	if (size && size != 4)
		return CUBLAS_STATUS_INVALID_VALUE;
	*written = 4;
	if (value)
		memcpy(value, &(int){9}, 4);
	return answer();
}

static cublasStatus_t lt_config_set(cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoConfigAttributes_t attribute, const void *value, size_t size)
{
	uint64_t word = 0;
	memcpy(&word, value, size < 8 ? size : 8);
	add("cublasLtMatmulAlgoConfigSetAttribute");
	add_algo(algo);
	add(" attribute=%d value=%llx size=%zu\n", attribute, (unsigned long long)word, size);
	algo->data[1] = word;
	return answer();
}

static size_t lt_version(void)
{
	return 130100;
}

static size_t lt_cudart(void)
{
	add("cublasLtGetCudartVersion\n");
	return 13000;
}

static cublasStatus_t lt_property(libraryPropertyType type, int *value)
{
	*value = type == MAJOR_VERSION ? 13 : type == MINOR_VERSION ? 1 : 4;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t lt_get_capacity(size_t *capacity)
{
	add("cublasLtHeuristicsCacheGetCapacity\n");
	*capacity = 8192;
	return answer();
}

static cublasStatus_t lt_set_capacity(size_t capacity)
{
	add("cublasLtHeuristicsCacheSetCapacity %zu\n", capacity);
	return answer();
}

void double_install(void)
{
	ckt_cublasLt = (struct ckt_cublasLt_functions){
		.cublasLtCreate = lt_create,
		.cublasLtDestroy = lt_destroy,
		.cublasLtMatmul = lt_matmul,
		.cublasLtMatrixTransform = lt_transform,
		.cublasLtMatmulAlgoGetHeuristic = lt_heuristic,
		.cublasLtMatmulAlgoGetIds = lt_ids,
		.cublasLtMatmulAlgoInit = lt_init,
		.cublasLtMatmulAlgoCheck = lt_check,
		.cublasLtMatmulAlgoCapGetAttribute = lt_cap,
		.cublasLtMatmulAlgoConfigGetAttribute = lt_config_get,
		.cublasLtMatmulAlgoConfigSetAttribute = lt_config_set,
		.cublasLtGetVersion = lt_version,
		.cublasLtGetCudartVersion = lt_cudart,
		.cublasLtGetProperty = lt_property,
		.cublasLtHeuristicsCacheGetCapacity = lt_get_capacity,
		.cublasLtHeuristicsCacheSetCapacity = lt_set_capacity,
		.cublasLtMatmulDescCreate = matmul_create,
		.cublasLtMatmulDescDestroy = matmul_destroy,
		.cublasLtMatmulDescSetAttribute = matmul_set,
		.cublasLtMatrixLayoutCreate = layout_create,
		.cublasLtMatrixLayoutDestroy = layout_destroy,
		.cublasLtMatrixLayoutSetAttribute = layout_set,
		.cublasLtMatrixTransformDescCreate = transform_create,
		.cublasLtMatrixTransformDescDestroy = transform_destroy,
		.cublasLtMatrixTransformDescSetAttribute = transform_set,
		.cublasLtMatmulPreferenceCreate = preference_create,
		.cublasLtMatmulPreferenceDestroy = preference_destroy,
		.cublasLtMatmulPreferenceSetAttribute = preference_set,
		.cublasLtEmulationDescCreate = emulation_create,
		.cublasLtEmulationDescDestroy = emulation_destroy,
		.cublasLtEmulationDescSetAttribute = emulation_set,
	};
	((struct ckt_library_loaded *)ckt_library_loaded(CKT_LIB_CUBLASLT))->open = true;
}

void double_install_newer(void)
{
	double_install();
	ckt_cublasLt.cublasLtMatmulAlgoGetHeuristicForStream = lt_heuristic_for_stream;
	ckt_cublasLt.cublasLtMatmulAlgoCheckForStream = lt_check_for_stream;
}
