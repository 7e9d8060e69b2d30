/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's log, which programs read: lines about unsupported calls.  It keeps the last
 * LOG_BYTES bytes.  A position counts the bytes ever written, modulo 2^32.  An iterator is a
 * position.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cuda/context/driver_log.h"
#include "base/fork.h"
#include "client/conn/call.h"
#include "cudacommon/interface.h"

enum { LOG_BYTES = 25600, LINE_BYTES = 512 };

struct CUlogsCallbackEntry_st {
	struct CUlogsCallbackEntry_st *next;
	CUlogsCallback call;
	void *data;
};

static CKT_LOCK(lock);
static char ring[LOG_BYTES];
static uint32_t written;
static bool wrapped;
static struct CUlogsCallbackEntry_st *callbacks;

static void note(const char *name)
{
	char line[LINE_BYTES];
	int saved_errno = errno;
	int length = snprintf(line, sizeof line, "%s is not supported by a remote session", name);
	if (length < 0 || length >= (int)sizeof line)
		length = sizeof line - 1;
	pthread_mutex_lock(&lock);
	for (int i = 0; i <= length; i++) {
		ring[written % LOG_BYTES] = i < length ? line[i] : '\n';
		wrapped |= ++written >= LOG_BYTES;
	}
	/* Callbacks must not call the driver (CUDA's reference says so): the lock is held. */
	for (struct CUlogsCallbackEntry_st *c = callbacks; c; c = c->next)
		c->call(c->data, CU_LOG_LEVEL_ERROR, line, (size_t)length);
	pthread_mutex_unlock(&lock);
	errno = saved_errno;
}

void ckt_client_driver_log_init(void)
{
	ckt_call_noted = note;
}

/*
 * The position of the oldest whole line at or after the iterator (NULL: in the log).  Precondition:
 * locked.
 */
static uint32_t first_line(const CUlogIterator *iterator)
{
	uint32_t oldest = wrapped ? written - LOG_BYTES : 0, from = iterator ? *iterator : oldest;
	if (written - from > written - oldest)
		from = oldest;
	if (from == oldest && wrapped) {
		/* The beginning of the oldest line may be overwritten. */
		while (from != written && ring[from % LOG_BYTES] != '\n')
			from++;
		from += from != written;
	}
	return from;
}

CKT_EXPORT CUresult cuLogsCurrent(CUlogIterator *ret_iterator, unsigned int flags)
{
	if (!ret_iterator)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*ret_iterator = written;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* Copies whole lines only; the last ones if there is not enough room. *size excludes the NUL. */
CKT_EXPORT CUresult cuLogsDumpToMemory(
	CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	/* CUDA ignores the flags (measured on an H200). */
	if (!buffer || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!*size)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	uint32_t from = first_line(iterator);
	bool some = from != written;
	while (written - from > *size - 1) {
		while (ring[from % LOG_BYTES] != '\n')
			from++;
		from++;
	}
	size_t length = written - from;
	for (size_t i = 0; i < length; i++)
		buffer[i] = ring[(from + i) % LOG_BYTES];
	buffer[length] = 0;
	*size = length;
	if (iterator)
		*iterator = written;
	pthread_mutex_unlock(&lock);
	return some && !length ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *path, unsigned int flags)
{
	static char copy[LOG_BYTES + 1];
	static CKT_LOCK(copy_lock);
	size_t size = sizeof copy;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	int saved_errno = errno, fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	CUresult result = fd < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (!result) {
		pthread_mutex_lock(&copy_lock);
		result = cuLogsDumpToMemory(iterator, copy, &size, 0);
		if (!result && write(fd, copy, size) != (ssize_t)size)
			result = CUDA_ERROR_OPERATING_SYSTEM;
		pthread_mutex_unlock(&copy_lock);
		close(fd);
	}
	errno = saved_errno;
	return result;
}

CKT_EXPORT CUresult cuLogsRegisterCallback(
	CUlogsCallback call, void *data, CUlogsCallbackHandle *ret_handle)
{
	if (!call)
		return CUDA_ERROR_INVALID_VALUE;
	struct CUlogsCallbackEntry_st *entry = malloc(sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	*entry = (struct CUlogsCallbackEntry_st){.next = callbacks, .call = call, .data = data};
	callbacks = entry;
	pthread_mutex_unlock(&lock);
	if (ret_handle)
		*ret_handle = entry;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (struct CUlogsCallbackEntry_st **link = &callbacks; *link; link = &(*link)->next) {
		if (*link == handle) {
			*link = handle->next;
			free(handle);
			result = CUDA_SUCCESS;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}
