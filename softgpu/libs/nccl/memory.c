/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for NCCL, and its registration, which has no effect here: a rank's sockets accept any
 * memory.
 */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/nccl/api.h"
#include "softgpu/libs/nccl/comm.h"

static ncclResult_t invalid(const char *what)
{
	ckt_soft_nccl_comm_say("invalid argument: %s", what);
	return ncclInvalidArgument;
}

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUcontext context;
	CUdeviceptr address = 0;
	/* The same as cudaMalloc. */
	if (ptr && !size)
		*ptr = NULL;
	if (!ptr || !size)
		return ptr ? ncclSuccess : ncclUnhandledCudaError;
	if (!d || ckt_softlib_context(&context) != CUDA_SUCCESS ||
		d->mem_alloc(&address, size) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	*ptr = (void *)address;
	return ncclSuccess;
}
CKT_ALIAS(MemAlloc);

ncclResult_t ncclMemFree(void *ptr)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	if (!ptr)
		return ncclSuccess;
	return d && d->mem_free((CUdeviceptr)ptr) == CUDA_SUCCESS ? ncclSuccess
								  : ncclUnhandledCudaError;
}
CKT_ALIAS(MemFree);

/* An entry of a list, so that invalid handles are found. */
struct registration {
	struct registration *next;
	uint64_t comm; /* number of the communicator */
	uintptr_t begin, end;
	bool window;
	unsigned refs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registration *registrations;

enum { PAGE = 4096 };

/*
 * Finds a registration that contains the range, or makes one, and counts a reference.
 * Precondition: locked.
 */
static struct registration *hold(const struct registration *wanted)
{
	struct registration *r = wanted->window ? NULL : registrations;
	while (r &&
		(r->window || r->comm != wanted->comm || r->begin > wanted->begin ||
			r->end < wanted->end))
		r = r->next;
	if (!r && (r = malloc(sizeof *r))) {
		*r = *wanted;
		r->next = registrations;
		registrations = r;
	}
	if (r)
		r->refs++;
	return r;
}

static ncclResult_t make(
	ncclComm_t handle, const void *buffer, size_t size, void **ret_handle, bool window)
{
	struct ncclComm *comm = ret_handle ? ckt_soft_nccl_comm_get(handle) : NULL;
	if (!comm)
		return invalid("no such communicator, or nowhere to put the handle");
	ncclResult_t result = ckt_soft_nccl_comm_usable(comm);
	struct registration wanted = {.comm = comm->number,
		.begin = (uintptr_t)buffer / PAGE * PAGE,
		.window = window,
		.end = ((uintptr_t)buffer + size + PAGE - 1) / PAGE * PAGE};
	pthread_mutex_lock(&lock);
	struct registration *made = result == ncclSuccess ? hold(&wanted) : NULL;
	pthread_mutex_unlock(&lock);
	if (made)
		*ret_handle = made;
	ckt_soft_nccl_comm_put(comm);
	return made || result != ncclSuccess ? result : ncclSystemError;
}

/* NULL has no effect, as in NVIDIA's library. */
static ncclResult_t end(ncclComm_t handle, const void *registration)
{
	struct ncclComm *comm = ckt_soft_nccl_comm_get(handle);
	struct registration **link = &registrations;
	if (!comm)
		return invalid("no such communicator");
	pthread_mutex_lock(&lock);
	while (*link && (*link != registration || (*link)->comm != comm->number))
		link = &(*link)->next;
	struct registration *found = *link;
	if (found && !--found->refs) {
		*link = found->next;
		free(found);
	}
	pthread_mutex_unlock(&lock);
	ckt_soft_nccl_comm_put(comm);
	if (!found && registration)
		ckt_soft_nccl_comm_say("no such registration of the communicator");
	return found || !registration ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
	return make(comm, buff, size, handle, false);
}
CKT_ALIAS(CommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	return end(comm, handle);
}
CKT_ALIAS(CommDeregister);

ncclResult_t ncclCommWindowRegister(
	ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
	if (winFlags != NCCL_WIN_DEFAULT && winFlags != NCCL_WIN_COLL_SYMMETRIC)
		return invalid("no such flags of a window");
	if (!buff || !size)
		return invalid("nothing to register");
	return make(comm, buff, size, (void **)win, true);
}
CKT_ALIAS(CommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	return end(comm, win);
}
CKT_ALIAS(CommWindowDeregister);
