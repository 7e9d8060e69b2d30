/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/stream.c: streams, the driver's; what the runtime says of them itself. */
#include "files.h"

static void add_one(void *word)
{
	++*(int *)word;
}

static void test_streams(void)
{
	cudaStream_t stream, other;
	cudaLaunchAttributeValue value = {0};
	unsigned flags = 77;
	unsigned long long id = 0, second = 0;
	int device = 77, priority = 77, least, greatest, word = 0;
	MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), OK);
	IS(cudaStreamGetFlags(stream, &flags), OK);
	IS(flags, cudaStreamNonBlocking);
	IS(cudaDeviceGetStreamPriorityRange(&least, &greatest), OK);
	MUST(cudaStreamCreateWithPriority(&other, cudaStreamDefault, greatest), OK);
	IS(cudaStreamGetPriority(other, &priority), OK);
	IS(priority, greatest);
	IS(cudaStreamGetId(stream, &id), OK);
	IS(cudaStreamGetId(other, &second), OK);
	YES(id != second);
	IS(cudaStreamGetDevice(stream, &device), OK);
	IS(device, 0);
	IS(cudaStreamGetDevice(stream, NULL), BAD);
	IS(cudaLaunchHostFunc(stream, add_one, &word), OK);
	IS(cudaStreamSynchronize(stream), OK);
	IS(word, 1);
	IS(cudaStreamQuery(stream), OK);
	value.syncPolicy = cudaSyncPolicySpin;
	IS(cudaStreamSetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value), OK);
	IS(cudaStreamCopyAttributes(other, stream), OK);
	value.syncPolicy = cudaSyncPolicyAuto;
	IS(cudaStreamGetAttribute(other, cudaLaunchAttributeSynchronizationPolicy, &value), OK);
	IS(value.syncPolicy, cudaSyncPolicySpin);
	IS(cudaStreamDestroy(stream), OK);
	IS(cudaStreamDestroy(other), OK);
	/* A stream of the other device. */
	IS(cudaSetDevice(1), OK);
	MUST(cudaStreamCreate(&other), OK);
	IS(cudaSetDevice(0), OK);
	IS(cudaStreamGetDevice(other, &device), OK);
	IS(device, 1);
	IS(cudaStreamDestroy(other), OK);
	static cudaStream_t const defaults[] = {NULL, cudaStreamLegacy, cudaStreamPerThread};
	for (size_t i = 0; i < COUNT(defaults); i++) {
		IS(cudaStreamDestroy(defaults[i]), cudaErrorInvalidResourceHandle);
		IS(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	}
	IS(cudaStreamCreate(NULL), BAD);
	IS(cudaStreamCreateWithFlags(&stream, 1u << 10), BAD);
	IS(cudaStreamWaitEvent(NULL, NULL, 0), cudaErrorInvalidResourceHandle);
	cudaGetLastError();
}

UNIT_SUITE(stream, {"streams", test_streams})
