/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/patch/compat.c: programs of CUDA 12: the adapters, over functions of CUDA 13 that this
 * program itself exports (linked with -rdynamic).
 */
#include <CUnit/Basic.h>
#include <driver_types.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/patch/compat12.h"
#include "client/patch/redirect.h"
#include "cudacommon/static_runtimes.h"

#define EXPORT __attribute__((visibility("default")))

static struct ckt_runtime runtime;
static struct cudaMemLocation seen_location;
static const void *seen_edges;
static size_t seen_count;

EXPORT cudaError_t cudaPointerGetAttributes(
	struct cudaPointerAttributes *attributes, const void *pointer);
EXPORT cudaError_t cudaPointerGetAttributes(
	struct cudaPointerAttributes *attributes, const void *pointer)
{
	memset(attributes, 0x5a, sizeof(*attributes));
	attributes->type = cudaMemoryTypeDevice;
	attributes->device = 3;
	attributes->devicePointer = (void *)pointer;
	attributes->hostPointer = NULL;
	return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	memset(properties, 0x5a, sizeof(*properties));
	strcpy(properties->name, "test");
	properties->totalGlobalMem = 12345678901;
	properties->unifiedFunctionPointers = 77;
	properties->major = 9;
	return device ? cudaErrorInvalidDevice : cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	*value = 1000 + attribute;
	return cudaSuccess;
}

EXPORT cudaError_t cudaMemAdvise(const void *pointer, size_t count, enum cudaMemoryAdvise advice,
	struct cudaMemLocation location);
EXPORT cudaError_t cudaMemAdvise(const void *pointer, size_t count, enum cudaMemoryAdvise advice,
	struct cudaMemLocation location)
{
	seen_location = location;
	return cudaSuccess;
}

EXPORT cudaError_t cudaGraphAddDependencies(
	void *graph, const void *from, const void *to, const void *edges, size_t count);
EXPORT cudaError_t cudaGraphAddDependencies(
	void *graph, const void *from, const void *to, const void *edges, size_t count)
{
	seen_edges = edges;
	seen_count = count;
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceReset(void);
EXPORT cudaError_t cudaDeviceReset(void)
{
	return cudaSuccess;
}

static void *target(unsigned major, const char *name)
{
	for (unsigned i = 0; i < ckt_static_names_count; i++)
		if (strcmp(ckt_static_names[i], name) == 0)
			return ckt_redirect_target(&runtime, major, name, i);
	return NULL;
}

static void same_names(void)
{
	CU_ASSERT_PTR_EQUAL(target(13, "cudaMemAdvise"), cudaMemAdvise);
	CU_ASSERT_PTR_NOT_EQUAL(target(12, "cudaMemAdvise"), cudaMemAdvise);
	CU_ASSERT_PTR_EQUAL(target(12, "cudaMemAdvise_v2"), cudaMemAdvise);
	CU_ASSERT_PTR_EQUAL(target(12, "cudaThreadExit"), cudaDeviceReset);
	CU_ASSERT_PTR_EQUAL(target(13, "cudaGetDeviceProperties"), cudaGetDeviceProperties);
}

static void refusals_name_the_call(void)
{
	cudaError_t (*refused)(void) = (cudaError_t(*)(void))target(13, "cudaMalloc");
	char text[512] = "";
	int pipes[2], saved = dup(STDERR_FILENO);

	CU_ASSERT_FATAL(pipe(pipes) == 0);
	dup2(pipes[1], STDERR_FILENO);
	CU_ASSERT_EQUAL(refused(), cudaErrorNotSupported);
	CU_ASSERT_EQUAL(refused(), cudaErrorNotSupported);
	dup2(saved, STDERR_FILENO);
	close(pipes[1]);
	CU_ASSERT(read(pipes[0], text, sizeof(text) - 1) > 0);
	char *first = strstr(text, "cudaMalloc,");
	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	CU_ASSERT_PTR_NULL(strstr(first + 1, "cudaMalloc,"));
	CU_ASSERT_PTR_NOT_EQUAL(target(13, "cudaMalloc"), target(13, "cudaFree"));
}

static void properties_of_12(void)
{
	cudaError_t (*function)(void *, int) =
		(cudaError_t(*)(void *, int))target(12, "cudaGetDeviceProperties_v2");
	/* exactly: an overrun is ASan's to find */
	struct ckt_device_properties_12 *properties = malloc(sizeof(*properties));

	CU_ASSERT_EQUAL(function(properties, 0), cudaSuccess);
	CU_ASSERT_STRING_EQUAL(properties->name, "test");
	CU_ASSERT_EQUAL(properties->totalGlobalMem, 12345678901);
	CU_ASSERT_EQUAL(properties->unifiedFunctionPointers, 77);
	CU_ASSERT_EQUAL(properties->major, 9);
	CU_ASSERT_EQUAL(properties->clockRate, 1000 + cudaDevAttrClockRate);
	CU_ASSERT_EQUAL(properties->memoryClockRate, 1000 + cudaDevAttrMemoryClockRate);
	CU_ASSERT_EQUAL(properties->cooperativeMultiDeviceLaunch, 0);
	CU_ASSERT_EQUAL(function(properties, 1), cudaErrorInvalidDevice);
	free(properties);
}

static void pointer_attributes_of_12(void)
{
	cudaError_t (*function)(void *, const void *) =
		(cudaError_t(*)(void *, const void *))target(12, "cudaPointerGetAttributes");
	struct {
		struct ckt_pointer_attributes_12 attributes;
		unsigned char after[64];
	} memory;

	memset(&memory, 0x11, sizeof(memory));
	CU_ASSERT_EQUAL(function(&memory.attributes, (void *)0x1234), cudaSuccess);
	CU_ASSERT_EQUAL(memory.attributes.device, 3);
	CU_ASSERT_PTR_EQUAL(memory.attributes.devicePointer, (void *)0x1234);
	for (size_t i = 0; i < sizeof(memory.after); i++)
		CU_ASSERT_EQUAL(memory.after[i], 0x11);
}

static void locations_and_edges_of_12(void)
{
	cudaError_t (*advise)(const void *, size_t, int, int) =
		(cudaError_t(*)(const void *, size_t, int, int))target(12, "cudaMemAdvise");
	cudaError_t (*add)(void *, void *, void *, size_t) = (cudaError_t(*)(
		void *, void *, void *, size_t))target(12, "cudaGraphAddDependencies");

	CU_ASSERT_EQUAL(advise(NULL, 0, cudaMemAdviseSetReadMostly, 2), cudaSuccess);
	CU_ASSERT(seen_location.type == cudaMemLocationTypeDevice && seen_location.id == 2);
	CU_ASSERT_EQUAL(advise(NULL, 0, cudaMemAdviseSetReadMostly, -1), cudaSuccess);
	CU_ASSERT(seen_location.type == cudaMemLocationTypeHost);
	seen_edges = &runtime;
	CU_ASSERT_EQUAL(add(NULL, NULL, NULL, 5), cudaSuccess);
	CU_ASSERT(seen_edges == NULL && seen_count == 5);
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	ckt_loaded_object_from_info(&runtime.object, info);
	runtime.found = ckt_loaded_object_dynamic(&runtime.object, &runtime.dynamic);
	return 1; /* the first one is the program */
}

int main(void)
{
	dl_iterate_phdr(visit, NULL);
	if (!runtime.found)
		return 1;
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("compat", NULL, NULL);
	CU_add_test(suite, "same names", same_names);
	CU_add_test(suite, "refusals", refusals_name_the_call);
	CU_add_test(suite, "device properties", properties_of_12);
	CU_add_test(suite, "pointer attributes", pointer_attributes_of_12);
	CU_add_test(suite, "locations and edges", locations_and_edges_of_12);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
