/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API without handles (cublas.h): each context has a handle that its calls go to, made by the
 * first of them, as in the genuine library.
 */
#include <ctype.h>
#include <pthread.h>

#include "client/libs/cublas/cublas.h"
#include "base/fork.h"

/* cublas.h and cublas_v2.h cannot be read together. */
cublasStatus_t cublasInit(void);
cublasStatus_t cublasShutdown(void);
cublasStatus_t cublasGetError(void);
cublasStatus_t cublasGetVersion(int *version);
cublasStatus_t cublasAlloc(int n, int size, void **memory);
cublasStatus_t cublasFree(void *memory);
cublasStatus_t cublasSetKernelStream(cudaStream_t stream);

static CKT_LOCK(lock);
static struct ckt_cublas_default *defaults;

/* Where that context's entry hangs.  Precondition: the lock is held. */
static struct ckt_cublas_default **entry_of(uint64_t context)
{
	struct ckt_cublas_default **at = &defaults;
	while (*at && (*at)->context != context)
		at = &(*at)->next;
	return at;
}

static struct ckt_cublas_default *make(uint64_t context, cublasStatus_t *ret_status)
{
	struct ckt_cublas_default *made = calloc(1, sizeof *made);
	*ret_status = made ? cublasCreate_v2(&made->handle) : CUBLAS_STATUS_ALLOC_FAILED;
	if (*ret_status) {
		free(made);
		return NULL;
	}
	made->context = context;
	made->next = defaults;
	defaults = made;
	return made;
}

static struct ckt_cublas_default *find(cublasStatus_t *ret_status)
{
	const struct ckt_client_table *client = ckt_client();
	*ret_status = CUBLAS_STATUS_NOT_INITIALIZED;
	if (!client || client->enter())
		return NULL;
	*ret_status = CUBLAS_STATUS_SUCCESS;
	pthread_mutex_lock(&lock);
	struct ckt_cublas_default *found = *entry_of(client->context());
	if (!found)
		found = make(client->context(), ret_status);
	pthread_mutex_unlock(&lock);
	return found;
}

struct ckt_cublas_default *ckt_cublas_default(void)
{
	cublasStatus_t ignored;
	return find(&ignored);
}

/* ---- Characters: what is none of a parameter's is refused by the function with enums. */

enum { NONE = -1 };

cublasOperation_t ckt_cublas_char_cublasOperation_t(char c)
{
	switch (toupper((unsigned char)c)) {
	case 'N':
		return CUBLAS_OP_N;
	case 'T':
		return CUBLAS_OP_T;
	case 'C':
		return CUBLAS_OP_C;
	default:
		return (cublasOperation_t)NONE;
	}
}

cublasFillMode_t ckt_cublas_char_cublasFillMode_t(char c)
{
	int upper = toupper((unsigned char)c);
	return upper == 'L'    ? CUBLAS_FILL_MODE_LOWER
		: upper == 'U' ? CUBLAS_FILL_MODE_UPPER
			       : (cublasFillMode_t)NONE;
}

cublasSideMode_t ckt_cublas_char_cublasSideMode_t(char c)
{
	int upper = toupper((unsigned char)c);
	return upper == 'L'    ? CUBLAS_SIDE_LEFT
		: upper == 'R' ? CUBLAS_SIDE_RIGHT
			       : (cublasSideMode_t)NONE;
}

cublasDiagType_t ckt_cublas_char_cublasDiagType_t(char c)
{
	int upper = toupper((unsigned char)c);
	return upper == 'N'    ? CUBLAS_DIAG_NON_UNIT
		: upper == 'U' ? CUBLAS_DIAG_UNIT
			       : (cublasDiagType_t)NONE;
}

/* ---- The rest of cublas.h; its functions of BLAS are generated. */

CKT_LIB_EXPORT cublasStatus_t cublasInit(void)
{
	cublasStatus_t status;
	find(&status);
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasShutdown(void)
{
	const struct ckt_client_table *client = ckt_client();
	if (!client)
		return CUBLAS_STATUS_SUCCESS;
	pthread_mutex_lock(&lock);
	struct ckt_cublas_default **at = entry_of(client->context()), *ended = *at;
	if (ended)
		*at = ended->next;
	pthread_mutex_unlock(&lock);
	if (ended)
		cublasDestroy_v2(ended->handle);
	free(ended);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasGetError(void)
{
	struct ckt_cublas_default *own = ckt_cublas_default();
	if (!own)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	cublasStatus_t error = own->error;
	own->error = CUBLAS_STATUS_SUCCESS;
	return error;
}

CKT_LIB_EXPORT cublasStatus_t cublasGetVersion(int *version)
{
	struct ckt_cublas_default *own = ckt_cublas_default();
	return cublasGetVersion_v2(own ? own->handle : NULL, version);
}

CKT_LIB_EXPORT cublasStatus_t cublasSetKernelStream(cudaStream_t stream)
{
	struct ckt_cublas_default *own = ckt_cublas_default();
	return cublasSetStream_v2(own ? own->handle : NULL, stream);
}

CKT_LIB_EXPORT cublasStatus_t cublasAlloc(int n, int size, void **memory)
{
	uint64_t address = 0;
	const struct ckt_client_table *client = ckt_client();
	if (!memory)
		return CUBLAS_STATUS_INVALID_VALUE;
	*memory = NULL;
	if (n <= 0 || size <= 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	CUresult result = client ? client->enter() : CUDA_ERROR_NOT_INITIALIZED;
	if (!result)
		result = client->workspace_alloc((size_t)n * (size_t)size, &address);
	*memory = (void *)(uintptr_t)address;
	return result == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED
		: result                          ? CUBLAS_STATUS_INTERNAL_ERROR
						  : CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasFree(void *memory)
{
	const struct ckt_client_table *client = ckt_client();
	if (!memory)
		return CUBLAS_STATUS_SUCCESS;
	return !client || client->workspace_free((uintptr_t)memory) ? CUBLAS_STATUS_INTERNAL_ERROR
								    : CUBLAS_STATUS_SUCCESS;
}
