/* Memory for NCCL's use, and its registration, which changes nothing here: every rank's sockets take any memory. */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/nccl/api.h"
#include "softgpu/libs/nccl/comm.h"

static ncclResult_t invalid(const char *what)
{
	ckt_comm_say("invalid argument: %s", what);
	return ncclInvalidArgument;
}

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUcontext context;
	CUdeviceptr address = 0;
	if (!ptr || !size)
		return invalid("no memory to allocate");
	if (!d || ckt_softlib_context(&context) != CUDA_SUCCESS || d->mem_alloc(&address, size) != CUDA_SUCCESS)
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
	return d && d->mem_free((CUdeviceptr)ptr) == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}
CKT_ALIAS(MemFree);

/* In a list, so that a handle that is none is noticed. */
struct registration {
	struct registration *next;
	uint64_t comm;		/* its number */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registration *registrations;

static ncclResult_t make(ncclComm_t handle, const void *buffer, size_t size, void **ret_handle)
{
	struct ncclComm *comm = buffer && size && ret_handle ? ckt_comm_get(handle) : NULL;
	if (!comm)
		return invalid("no such communicator, or nothing to register");
	ncclResult_t result = ckt_comm_usable(comm);
	struct registration *made = result == ncclSuccess ? malloc(sizeof *made) : NULL;
	if (made) {
		pthread_mutex_lock(&lock);
		*made = (struct registration){.next = registrations, .comm = comm->number};
		registrations = made;
		pthread_mutex_unlock(&lock);
		*ret_handle = made;
	}
	ckt_comm_put(comm);
	return made || result != ncclSuccess ? result : ncclSystemError;
}

static ncclResult_t end(ncclComm_t handle, const void *registration)
{
	struct ncclComm *comm = ckt_comm_get(handle);
	struct registration *found = NULL;
	if (!comm)
		return invalid("no such communicator");
	pthread_mutex_lock(&lock);
	for (struct registration **link = &registrations; *link && !found; link = &(*link)->next) {
		if (*link == registration && (*link)->comm == comm->number) {
			found = *link;
			*link = found->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	ckt_comm_put(comm);
	free(found);
	return found ? ncclSuccess : invalid("no such registration of the communicator");
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
	return make(comm, buff, size, handle);
}
CKT_ALIAS(CommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	return end(comm, handle);
}
CKT_ALIAS(CommDeregister);

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
	if (winFlags != NCCL_WIN_DEFAULT && winFlags != NCCL_WIN_COLL_SYMMETRIC)
		return invalid("no such flags of a window");
	return make(comm, buff, size, (void **)win);
}
CKT_ALIAS(CommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	return end(comm, win);
}
CKT_ALIAS(CommWindowDeregister);
