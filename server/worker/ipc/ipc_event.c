/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's side of shared events; see ipc_state.h. */
#include <fcntl.h>
#include <unistd.h>

#include "cudacommon/event_handle.h"
#include "server/worker/driver.h"
#include "server/worker/ipc/ipc_state.h"
#include "server/worker/session/handlers.h"

bool ckt_ipc_event_has_page(const CUipcEventHandle *handle)
{
	struct ckt_event_handle page;
	return ckt_event_handle_read(handle, &page);
}

CUresult ckt_ipc_event_page(const CUipcEventHandle *handle, int *ret_fd)
{
	struct ckt_event_handle page;
	*ret_fd = -1;
	if (!ckt_event_handle_read(handle, &page))
		return CUDA_SUCCESS;
	*ret_fd = fcntl(page.descriptor, F_DUPFD_CLOEXEC, 3);
	return *ret_fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/*
 * The driver's event.  Where the handle says which descriptor to open, it is ours, whatever the other
 * worker wrote there.
 */
static CUresult open_event(const CUipcEventHandle *told, int fd, CUevent *ret_event)
{
	struct ckt_event_handle page;
	CUipcEventHandle handle = *told;
	if (!ckt_driver.cuIpcOpenEventHandle)
		return CKT_WORKER_UNSUPPORTED(
			"an event of another process with the server's driver");
	if (ckt_event_handle_read(told, &page)) {
		page.process = 0;
		page.descriptor = fd;
		ckt_event_handle_write(&page, &handle);
	}
	return ckt_driver.cuIpcOpenEventHandle(ret_event, handle);
}

CUresult ckt_ipc_make_event(struct ckt_worker *worker, struct ckt_ipc_import *import,
	const CUipcEventHandle *handle, int fd)
{
	struct ckt_object *object;
	CUevent event;
	CUresult result = open_event(handle, fd, &event);
	if (fd >= 0)
		close(fd);
	if (result)
		return result;
	result = ckt_objects_add(&worker->objects, import->id, CKT_KIND_EVENT, false, &object);
	if (result) {
		ckt_driver.cuEventDestroy_v2(event);
		return result;
	}
	object->real = event;
	object->context = import->context;
	object->event.flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
	object->event.imported = true;
	return CUDA_SUCCESS;
}
