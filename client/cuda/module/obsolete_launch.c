/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches from before CUDA 4.0.  The program sets shape and parameters on the function, then
 * launches it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/module/function.h"
#include "cudacommon/interface.h"

enum { PARAMS_MAX = 4096 };

struct setting {
	struct setting *next;
	uint64_t function;
	unsigned block[3], shared_bytes, size;
	uint8_t params[PARAMS_MAX];
};

static CKT_LOCK(lock);
static struct setting *settings;

/*
 * Finds or makes the function's setting, and keeps the lock held after success.  Frees the settings
 * of functions that no longer exist.
 */
static CUresult enter(CUfunction handle, struct setting **ret_setting)
{
	struct ckt_function *f;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	struct setting **link = &settings, *s;
	while ((s = *link) && s->function != f->object.id) {
		if (ckt_cudacommon_object_find(s->function, CKT_KIND_FUNCTION)) {
			link = &s->next;
		} else {
			*link = s->next;
			free(s);
		}
	}
	if (!s) {
		s = calloc(1, sizeof *s);
		if (!s) {
			pthread_mutex_unlock(&lock);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		s->function = f->object.id;
		s->block[0] = s->block[1] = s->block[2] = 1;
		s->next = settings;
		settings = s;
	}
	*ret_setting = s;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z)
{
	struct setting *s;
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	int side[3] = {x, y, z},
	    most = ckt_client_device_attribute(
		    context->device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	for (int i = 0; i < 3; i++)
		if (side[i] <= 0 ||
			side[i] > ckt_client_device_attribute(
					  context->device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i))
			return CUDA_ERROR_INVALID_VALUE;
	if ((int64_t)x * y * z > most)
		return CUDA_ERROR_INVALID_VALUE;
	result = enter(handle, &s);
	if (result)
		return result;
	for (int i = 0; i < 3; i++)
		s->block[i] = (unsigned)side[i];
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuFuncSetSharedSize(CUfunction handle, unsigned int bytes)
{
	struct setting *s;
	CUresult result = enter(handle, &s);
	if (result)
		return result;
	s->shared_bytes = bytes;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuParamSetSize(CUfunction handle, unsigned int bytes)
{
	struct setting *s;
	if (bytes > PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = enter(handle, &s);
	if (result)
		return result;
	s->size = bytes;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuParamSetv(CUfunction handle, int offset, void *data, unsigned int bytes)
{
	struct setting *s;
	if (!data || offset < 0 || offset > PARAMS_MAX || bytes > PARAMS_MAX - (unsigned)offset)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = enter(handle, &s);
	if (result)
		return result;
	memcpy(s->params + offset, data, bytes);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuParamSeti(CUfunction handle, int offset, unsigned int value)
{
	return cuParamSetv(handle, offset, &value, sizeof value);
}

CKT_EXPORT CUresult cuParamSetf(CUfunction handle, int offset, float value)
{
	return cuParamSetv(handle, offset, &value, sizeof value);
}

CKT_EXPORT CUresult cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream)
{
	struct setting *s, own;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = enter(handle, &s);
	if (result)
		return result;
	own = *s;
	pthread_mutex_unlock(&lock);
	size_t size = own.size;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, own.params, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END};
	return cuLaunchKernel(handle, (unsigned)width, (unsigned)height, 1, own.block[0],
		own.block[1], own.block[2], own.shared_bytes, stream, NULL, extra);
}

CKT_EXPORT CUresult cuLaunchGrid(CUfunction handle, int width, int height)
{
	return cuLaunchGridAsync(handle, width, height, NULL);
}

CKT_EXPORT CUresult cuLaunch(CUfunction handle)
{
	return cuLaunchGridAsync(handle, 1, 1, NULL);
}
