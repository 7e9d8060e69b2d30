/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/event.c: events. */
#include "files.h"

static void test_events(void)
{
	cudaEvent_t a, b;
	float ms = -1;
	IS(cudaEventCreate(NULL), BAD);
	IS(cudaEventCreateWithFlags(&a, 0x100), BAD);
	MUST(cudaEventCreate(&a), OK);
	MUST(cudaEventCreateWithFlags(&b, cudaEventDisableTiming), OK);
	IS(cudaEventQuery(a), OK); /* never recorded: nothing to wait for */
	IS(cudaEventElapsedTime(&ms, a, a), cudaErrorInvalidResourceHandle);
	IS(cudaEventRecord(a, NULL), OK);
	IS(cudaEventRecordWithFlags(b, NULL, 0), OK);
	IS(cudaEventRecordWithFlags(b, NULL, 0x80), BAD);
	IS(cudaEventSynchronize(a), OK);
	IS(cudaEventElapsedTime(&ms, a, a), OK);
	YES(ms == 0);
	IS(cudaEventElapsedTime(NULL, a, a), BAD);
	/* one without time */
	IS(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
	IS(cudaEventDestroy(a), OK);
	IS(cudaEventDestroy(b), OK);
	cudaGetLastError();
}

UNIT_SUITE(event, {"events", test_events})
