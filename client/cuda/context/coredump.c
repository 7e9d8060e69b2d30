/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of core dumps.  The driver would write a dump on the GPU node, so Cricket makes none.
 * Enabling dumps is not supported.  The client keeps the other settings and returns them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fork.h"
#include "client/conn/call.h"
#include "client/cuda/context/context.h"
#include "cudacommon/interface.h"

enum { TEXT_MAX = 1024 };

static CKT_LOCK(lock);
static bool trigger_host = true, lightweight;
static unsigned generation;
static char file[TEXT_MAX], pipe_name[TEXT_MAX];

/* Precondition: locked. */
static void default_names(void)
{
	char host[256] = "";
	gethostname(host, sizeof host - 1);
	if (!*file)
		snprintf(file, sizeof file, "core.cuda.%s.%d", host, (int)getpid());
	if (!*pipe_name)
		snprintf(pipe_name, sizeof pipe_name, "corepipe.cuda.%s.%d", host, (int)getpid());
}

static CUresult give(void *value, size_t *size, const void *from, size_t bytes)
{
	if (value && *size < bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (value)
		memcpy(value, from, bytes);
	*size = bytes;
	return CUDA_SUCCESS;
}

/* If a text was copied, *size stays the size of the program's buffer. */
static CUresult give_text(char *value, size_t *size, const char *text)
{
	size_t buffer_bytes = *size;
	CUresult result = give(value, size, text, strlen(text) + 1);
	if (value)
		*size = buffer_bytes;
	return result;
}

CKT_EXPORT CUresult cuCoredumpGetAttributeGlobal(
	CUcoredumpSettings attribute, void *value, size_t *size)
{
	static const bool off;
	CUresult result;
	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	default_names();
	switch (attribute) {
	case CU_COREDUMP_ENABLE_ON_EXCEPTION:
	case CU_COREDUMP_ENABLE_USER_TRIGGER:
		result = give(value, size, &off, sizeof off);
		break;
	case CU_COREDUMP_TRIGGER_HOST:
		result = give(value, size, &trigger_host, sizeof trigger_host);
		break;
	case CU_COREDUMP_LIGHTWEIGHT:
		result = give(value, size, &lightweight, sizeof lightweight);
		break;
	case CU_COREDUMP_FILE:
		result = give_text(value, size, file);
		break;
	case CU_COREDUMP_PIPE:
		result = give_text(value, size, pipe_name);
		break;
	case CU_COREDUMP_GENERATION_FLAGS:
		result = give(value, size, &generation, sizeof generation);
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static CUresult take(void *target, size_t bytes, const void *value, const size_t *size)
{
	if (*size < bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(target, value, bytes);
	return CUDA_SUCCESS;
}

static CUresult take_text(char *target, const char *text, size_t size)
{
	size_t length = strnlen(text, size);
	if (length >= TEXT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(target, text, length);
	target[length] = 0;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCoredumpSetAttributeGlobal(
	CUcoredumpSettings attribute, void *value, size_t *size)
{
	static bool once;
	bool on = false;
	CUresult result;
	if (!value || !size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	switch (attribute) {
	case CU_COREDUMP_ENABLE_ON_EXCEPTION:
	case CU_COREDUMP_ENABLE_USER_TRIGGER:
		result = take(&on, sizeof on, value, size);
		if (!result && on)
			result = ckt_call_unsupported("a core dump of the GPU", &once);
		break;
	case CU_COREDUMP_TRIGGER_HOST:
		result = take(&trigger_host, sizeof trigger_host, value, size);
		break;
	case CU_COREDUMP_LIGHTWEIGHT:
		result = take(&lightweight, sizeof lightweight, value, size);
		break;
	case CU_COREDUMP_FILE:
		result = take_text(file, value, *size);
		break;
	case CU_COREDUMP_PIPE:
		result = take_text(pipe_name, value, *size);
		break;
	case CU_COREDUMP_GENERATION_FLAGS:
		result = take(&generation, sizeof generation, value, size);
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Every context has the settings of the process. */
CKT_EXPORT CUresult cuCoredumpGetAttribute(CUcoredumpSettings attribute, void *value, size_t *size)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	return result ? result : cuCoredumpGetAttributeGlobal(attribute, value, size);
}

CKT_EXPORT CUresult cuCoredumpSetAttribute(CUcoredumpSettings attribute, void *value, size_t *size)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	return result ? result : cuCoredumpSetAttributeGlobal(attribute, value, size);
}
