/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of two GPUs by the driver API, primary and not: each has modules, variables, streams and events of its own, which the other's
 * calls are refused.
 */
#include "gpus.h"
#include "multiply.h"

DRIVER(cuDeviceGet);
DRIVER(cuDevicePrimaryCtxRetain);
DRIVER(cuDevicePrimaryCtxRelease);
DRIVER(cuCtxCreate);
DRIVER(cuCtxDestroy);
DRIVER(cuCtxSetCurrent);
DRIVER(cuCtxGetCurrent);
DRIVER(cuCtxGetDevice);
DRIVER(cuCtxPushCurrent);
DRIVER(cuCtxPopCurrent);
DRIVER(cuCtxSynchronize);
DRIVER(cuModuleLoadData);
DRIVER(cuModuleUnload);
DRIVER(cuModuleGetGlobal);
DRIVER(cuModuleGetFunction);
DRIVER(cuLaunchKernel);
DRIVER(cuMemAlloc);
DRIVER(cuMemFree);
DRIVER(cuMemcpyHtoD);
DRIVER(cuMemcpyDtoH);
DRIVER(cuMemcpyPeer);
DRIVER(cuStreamCreate);
DRIVER(cuStreamDestroy);
DRIVER(cuStreamGetCtx);
DRIVER(cuStreamWaitEvent);
DRIVER(cuStreamSynchronize);
DRIVER(cuEventCreate);
DRIVER(cuEventRecord);
DRIVER(cuEventDestroy);
DRIVER(cuPointerGetAttribute);

enum { N = 5000, CONTEXTS = 4 };

/* Two primary contexts, two of the program's own. */
static struct place {
	int device;
	CUcontext context;
	CUmodule module;
	CUfunction function;
	CUdeviceptr scale, data;
	CUstream stream;
	CUevent event;
	unsigned factor;
} places[CONTEXTS];

static unsigned host[N];

static void look_up(void)
{
	LOOK_UP(cuDeviceGet);
	LOOK_UP(cuDevicePrimaryCtxRetain);
	LOOK_UP(cuDevicePrimaryCtxRelease);
	LOOK_UP(cuCtxCreate);
	LOOK_UP(cuCtxDestroy);
	LOOK_UP(cuCtxSetCurrent);
	LOOK_UP(cuCtxGetCurrent);
	LOOK_UP_OLD(cuCtxGetDevice);
	LOOK_UP(cuCtxPushCurrent);
	LOOK_UP(cuCtxPopCurrent);
	LOOK_UP_OLD(cuCtxSynchronize);
	LOOK_UP(cuModuleLoadData);
	LOOK_UP(cuModuleUnload);
	LOOK_UP(cuModuleGetGlobal);
	LOOK_UP(cuModuleGetFunction);
	LOOK_UP(cuLaunchKernel);
	LOOK_UP(cuMemAlloc);
	LOOK_UP(cuMemFree);
	LOOK_UP(cuMemcpyHtoD);
	LOOK_UP(cuMemcpyDtoH);
	LOOK_UP(cuMemcpyPeer);
	LOOK_UP(cuStreamCreate);
	LOOK_UP(cuStreamDestroy);
	LOOK_UP_OLD(cuStreamGetCtx);
	LOOK_UP(cuStreamWaitEvent);
	LOOK_UP(cuStreamSynchronize);
	LOOK_UP(cuEventCreate);
	LOOK_UP(cuEventRecord);
	LOOK_UP(cuEventDestroy);
	LOOK_UP(cuPointerGetAttribute);
}

static void multiply(struct place *p, CUstream stream)
{
	unsigned n = N;
	void *params[] = {&p->data, &n};

	CU(p_cuLaunchKernel(p->function, (N + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL));
}

static void settle(struct place *p, int i)
{
	CUdevice device;
	CUcontext context;
	size_t size;

	p->device = i % 2;
	p->factor = 3 + 2 * i;
	CU(p_cuDeviceGet(&device, p->device));
	if (i < 2) {
		CU(p_cuDevicePrimaryCtxRetain(&p->context, device));
	} else {
		CU(p_cuCtxCreate(&p->context, NULL, 0, device));
		CU(p_cuCtxGetCurrent(&context));
		EXPECT(context == p->context);
	}
	CU(p_cuCtxSetCurrent(p->context));
	CU(p_cuCtxGetDevice(&device));
	EXPECT(device == p->device);
	CU(p_cuModuleLoadData(&p->module, ptx));
	CU(p_cuModuleGetFunction(&p->function, p->module, "multiply"));
	CU(p_cuModuleGetGlobal(&p->scale, &size, p->module, "scale"));
	EXPECT(size == 4);
	CU(p_cuMemcpyHtoD(p->scale, &p->factor, 4));
	CU(p_cuMemAlloc(&p->data, sizeof(host)));
	CU(p_cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
	CU(p_cuEventCreate(&p->event, CU_EVENT_DISABLE_TIMING));
	for (unsigned k = 0; k < N; k++)
		host[k] = k + 1000 * i;
	CU(p_cuMemcpyHtoD(p->data, host, sizeof(host)));
	CU(p_cuStreamGetCtx(p->stream, &context));
	EXPECT(context == p->context);
}

/* Every context multiplies by the factor in its own variable. */
static void verify(unsigned times)
{
	for (int i = 0; i < CONTEXTS; i++) {
		struct place *p = &places[i];
		unsigned wrong = 0, power = 1;
		CUcontext of;
		int ordinal;

		for (unsigned t = 0; t < times; t++)
			power *= p->factor;
		CU(p_cuCtxSetCurrent(p->context));
		CU(p_cuStreamSynchronize(p->stream));
		CU(p_cuMemcpyDtoH(host, p->data, sizeof(host)));
		for (unsigned k = 0; k < N; k++)
			wrong += host[k] != (k + 1000 * i) * power;
		EXPECT(wrong == 0);
		CU(p_cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p->data));
		EXPECT(ordinal == p->device);
		CU(p_cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p->data));
		EXPECT(of == p->context);
	}
}

int main(void)
{
	CUcontext popped;

	need_two_gpus();
	look_up();
	for (int i = 0; i < CONTEXTS; i++)
		settle(&places[i], i);
	/* A chain through all contexts: each stream waits for the one before. */
	for (int i = 0; i < CONTEXTS; i++) {
		CU(p_cuCtxSetCurrent(places[i].context));
		if (i)
			CU(p_cuStreamWaitEvent(places[i].stream, places[i - 1].event, 0));
		multiply(&places[i], places[i].stream);
		CU(p_cuEventRecord(places[i].event, places[i].stream));
	}
	verify(1);
	/* What belongs to another context is refused, on the same GPU and on the other. */
	CU(p_cuCtxSetCurrent(places[0].context));
	for (int i = 1; i < CONTEXTS; i++) {
		unsigned n = N;
		void *params[] = {&places[0].data, &n};

		CU_ERROR(p_cuLaunchKernel(places[0].function, 1, 1, 1, 32, 1, 1, 0, places[i].stream, params, NULL), CUDA_ERROR_INVALID_HANDLE);
		CU_ERROR(p_cuEventRecord(places[i].event, places[0].stream), CUDA_ERROR_INVALID_HANDLE);
	}
	/* Pushed and popped, contexts of two GPUs stay apart. */
	CU(p_cuCtxPushCurrent(places[3].context));
	CU(p_cuCtxPushCurrent(places[2].context));
	multiply(&places[2], places[2].stream);
	CU(p_cuCtxPopCurrent(&popped));
	EXPECT(popped == places[2].context);
	multiply(&places[3], places[3].stream);
	CU(p_cuCtxPopCurrent(&popped));
	EXPECT(popped == places[3].context);
	multiply(&places[0], places[0].stream);
	CU(p_cuCtxSetCurrent(places[1].context));
	multiply(&places[1], places[1].stream);

	phase();

	verify(2);
	for (int i = 0; i < CONTEXTS; i++) {
		CU(p_cuCtxSetCurrent(places[i].context));
		multiply(&places[i], NULL);
		CU(p_cuCtxSynchronize());
	}
	verify(3);
	/* Data goes round: each gets its neighbour's. */
	for (int i = 0; i < CONTEXTS; i++) {
		struct place *to = &places[i], *from = &places[(i + 1) % CONTEXTS];

		CU(p_cuCtxSetCurrent(to->context));
		CU(p_cuMemcpyPeer(to->data, to->context, from->data, from->context, sizeof(host)));
		CU(p_cuMemcpyDtoH(host, to->data, sizeof(host)));
		print_checksum("round", host, sizeof(host));
	}
	/* The end of a context is not the end of another on the same GPU. */
	for (int i = CONTEXTS - 1; i >= 0; i--) {
		struct place *p = &places[i];

		CU(p_cuCtxSetCurrent(p->context));
		multiply(p, NULL);
		CU(p_cuCtxSynchronize());
		CU(p_cuEventDestroy(p->event));
		CU(p_cuStreamDestroy(p->stream));
		CU(p_cuMemFree(p->data));
		CU(p_cuModuleUnload(p->module));
		if (i < 2)
			CU(p_cuDevicePrimaryCtxRelease(p->device));
		else
			CU(p_cuCtxDestroy(p->context));
	}
	return finish();
}
