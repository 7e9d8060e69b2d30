/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/ipc.c: handles for other processes, the driver's, and its log. */
#include "files.h"

static void test_refused(void)
{
	cudaIpcMemHandle_t handle = {{0}};
	cudaIpcEventHandle_t event_handle = {{0}};
	cudaEvent_t event;
	void *memory = (void *)77;
	YES(cudaIpcGetMemHandle(&handle, &handle) != OK); /* of no device */
	YES(cudaIpcGetMemHandle(NULL, NULL) != OK);
	IS(cudaIpcOpenMemHandle(NULL, handle, cudaIpcMemLazyEnablePeerAccess), BAD);
	/* of zeros */
	YES(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess) != OK);
	YES(memory == (void *)77);
	YES(cudaIpcCloseMemHandle((void *)0x1234) != OK);
	YES(cudaIpcOpenEventHandle(&event, event_handle) != OK);
	YES(cudaIpcGetEventHandle(&event_handle, NULL) != OK);
	YES(cudaGetLastError() != OK);
	IS(cudaGetLastError(), OK);
}

/* Whatever a driver does to the handle when it refuses. */
static void test_untouched(void)
{
	cudaIpcEventHandle_t handle, kept, zeros = {{0}};
	cudaEvent_t event, plain;
	IS(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming), OK);
	IS(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming), OK);
	IS(cudaIpcGetEventHandle(&handle, event), OK);
	YES(memcmp(&handle, &zeros, sizeof handle) != 0);
	kept = handle;
	YES(cudaIpcGetEventHandle(&handle, plain) != OK);
	YES(memcmp(&handle, &kept, sizeof handle) == 0);
	IS(cudaIpcGetEventHandle(NULL, event), BAD);
	YES(cudaGetLastError() != OK);
	IS(cudaEventDestroy(event), OK);
	IS(cudaEventDestroy(plain), OK);
}

UNIT_SUITE(ipc, {"refused", test_refused}, {"untouched", test_untouched})
