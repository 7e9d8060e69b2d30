/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/ipc/ipc_event.c: the descriptor of the soft GPU's events, and answers of a worker
 * that lies about it.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cudacommon/event_handle.h"
#include "server/worker/driver.h"
#include "server/worker/ipc/ipc_state.h"
#include "tests/unit/worker/inside.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static CUresult make(const CUipcEventHandle *handle, int fd)
{
	struct ckt_ipc_import import = {.id = ID(EVENT, 252)};
	CUresult result = ckt_ipc_make_event(&ckt_worker, &import, handle, fd);
	CU_ASSERT_FALSE(fd >= 0 && is_open(fd));
	if (!result)
		IS(ASK(event_destroy, .id = ID(EVENT, 252)), CUDA_SUCCESS);
	return result;
}

static void test_page(void)
{
	CUevent event;
	CUipcEventHandle handle, lie;
	struct ckt_event_handle page;
	int fd = -1, again;
	MUST(ckt_driver.cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), 0);
	MUST(ckt_driver.cuIpcGetEventHandle(&handle, event), 0);
	YES(ckt_ipc_event_has_page(&handle));
	IS(ckt_ipc_event_page(&handle, &fd), CUDA_SUCCESS);
	MUST(fd >= 0, true);
	/* A handle of another driver. */
	memset(&lie, 'n', sizeof lie);
	NO(ckt_ipc_event_has_page(&lie));
	IS(ckt_ipc_event_page(&lie, &again), CUDA_SUCCESS);
	IS(again, -1);
	YES(make(&lie, -1) != CUDA_SUCCESS);
	/* What the other worker says of processes and descriptors counts for nothing. */
	YES(ckt_event_handle_read(&handle, &page));
	page.process = 1;
	page.descriptor = 0;
	ckt_event_handle_write(&page, &lie);
	IS(make(&lie, fcntl(fd, F_DUPFD_CLOEXEC, 3)), CUDA_SUCCESS);
	/* Not even the page of our own event, where no descriptor came with it, or another file. */
	YES(make(&handle, -1) != CUDA_SUCCESS);
	YES(make(&handle, open("/dev/null", O_RDWR | O_CLOEXEC)) != CUDA_SUCCESS);
	page.id[0] ^= 1;
	ckt_event_handle_write(&page, &lie);
	YES(make(&lie, fcntl(fd, F_DUPFD_CLOEXEC, 3)) != CUDA_SUCCESS);
	IS(ckt_driver.cuEventDestroy_v2(event), 0);
	close(fd);
}

static void test_answer(void)
{
	struct ckt_event_handle page = {.process = 1};
	struct ckt_ipc_answer answer = {.found = CKT_IPC_HERE};
	YES(ckt_ipc_answer_good(&answer, CKT_IPC_EVENT, -1));
	NO(ckt_ipc_answer_good(&answer, CKT_IPC_EVENT, 3));
	NO(ckt_ipc_answer_good(&answer, CKT_IPC_BLOCK, -1));
	ckt_event_handle_write(&page, &answer.event);
	NO(ckt_ipc_answer_good(&answer, CKT_IPC_EVENT, -1));
	YES(ckt_ipc_answer_good(&answer, CKT_IPC_EVENT, 3));
	answer.found = CKT_IPC_NONE;
	NO(ckt_ipc_answer_good(&answer, CKT_IPC_EVENT, 3));
}

UNIT_SUITE(ipc_event, {"page", test_page}, {"answer", test_answer})
