/* client/cudart/ipc.c: handles for other processes, the driver's, and its log. */
#include "files.h"

static void test_refused(void)
{
	cudaIpcMemHandle_t handle = {{0}};
	cudaIpcEventHandle_t event_handle = {{0}};
	cudaEvent_t event;
	void *memory = (void *)77;
	YES(cudaIpcGetMemHandle(&handle, &handle) != OK);	/* of no device */
	YES(cudaIpcGetMemHandle(NULL, NULL) != OK);
	IS(cudaIpcOpenMemHandle(NULL, handle, cudaIpcMemLazyEnablePeerAccess), BAD);
	YES(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess) != OK);	/* of zeros */
	YES(memory == (void *)77);
	YES(cudaIpcCloseMemHandle((void *)0x1234) != OK);
	YES(cudaIpcOpenEventHandle(&event, event_handle) != OK);
	YES(cudaIpcGetEventHandle(&event_handle, NULL) != OK);
	YES(cudaGetLastError() != OK);
	IS(cudaGetLastError(), OK);
}

UNIT_SUITE(ipc, {"refused", test_refused})
