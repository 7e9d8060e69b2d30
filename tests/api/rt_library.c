/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's libraries and their kernels. */
#include "runtime.h"
#include "kernels.h"

static const char other_ptx[] =
	".version 7.8\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .attribute(.managed) .align 4 .b8 both[16] = {1, 2, 3, 4};\n"
	".visible .entry only()\n"
	"{\n"
	"	ret;\n"
	"}\n";

static dim3 size(unsigned x, unsigned y, unsigned z)
{
	dim3 d = {x, y, z};
	return d;
}

static cudaLibrary_t library(const char *ptx)
{
	cudaLibrary_t made = NULL;
	QUIET(cudaLibraryLoadData, &made, ptx, NULL, NULL, 0, NULL, NULL, 0);
	return made;
}

CASE(library)
{
	cudaLibrary_t made = NULL;
	cudaKernel_t fill = NULL, again = NULL, list[8];
	unsigned count = 77, value = 5;
	const char *name = "before";
	struct cudaFuncAttributes a;
	char *p = memory(64);
	void *args[] = {&p, &value};
	CALL(cudaLibraryLoadData, &made, api_ptx, NULL, NULL, 0, NULL, NULL, 0);
	YES("some", made != NULL);
	CALL(cudaLibraryGetKernelCount, &count, made);
	NUMBER("count", count);
	CALL(cudaLibraryGetKernel, &fill, made, "fill");
	YES("some", fill != NULL);
	CALL(cudaLibraryGetKernel, &again, made, "fill");
	YES("the same", again == fill);
	memset(list, 0, sizeof(list));
	CALL(cudaLibraryEnumerateKernels, list, 8, made);
	count = 0;
	for (int i = 0; i < 8; i++)
		count += list[i] == fill;
	NUMBER("fill", count);
	YES("four", list[3] && !list[4]);
	CALL(cudaFuncGetName, &name, (const void *)fill);
	TEXT("name", name);
	CALL(cudaLaunchKernel, (const void *)fill, size(2, 1, 1), size(4, 1, 1), args, 0, NULL);
	CONTENT("bytes", p, 64);
	CALL(cudaKernelSetAttributeForDevice, fill, cudaFuncAttributeMaxDynamicSharedMemorySize,
		50000, 0);
	CALL(cudaFuncGetAttributes, &a, (const void *)fill);
	NUMBER("dynamic", a.maxDynamicSharedSizeBytes);
	CALL(cudaKernelSetAttributeForDevice, fill, cudaFuncAttributeMaxDynamicSharedMemorySize,
		1 << 24, 0);
	CALL(cudaKernelSetAttributeForDevice, fill, (enum cudaFuncAttribute)99, 1, 0);
	CALL(cudaKernelSetAttributeForDevice, fill, cudaFuncAttributeMaxDynamicSharedMemorySize,
		100, 999);
	CALL(cudaLibraryUnload, made);
	CALL(cudaGetLastError);
}

CASE(variables)
{
	cudaLibrary_t made = library(api_ptx);
	cudaKernel_t set_table = NULL;
	unsigned value = 5;
	void *args[] = {&value}, *table = NULL, *fixed = NULL;
	size_t bytes = 77;
	CALL(cudaLibraryGetGlobal, &table, &bytes, made, "table");
	NUMBER("bytes", (long long)bytes);
	CALL(cudaLibraryGetKernel, &set_table, made, "set_table");
	CALL(cudaLaunchKernel, (const void *)set_table, size(1, 1, 1), size(4, 1, 1), args, 0,
		NULL);
	CONTENT("table", table, 16);
	bytes = 77;
	CALL(cudaLibraryGetGlobal, NULL, &bytes, made, "table");
	NUMBER("bytes", (long long)bytes);
	CALL(cudaLibraryGetGlobal, &fixed, NULL, made, "fixed");
	CONTENT("fixed", fixed, 4);
	CALL(cudaLibraryGetGlobal, &table, &bytes, made, "not there");
	CALL(cudaLibraryGetManaged, &table, &bytes, made, "table");
	CALL(cudaGetLastError);
}

CASE(managed)
{
	cudaLibrary_t made = library(other_ptx);
	void *both = NULL;
	size_t bytes = 77;
	CALL(cudaLibraryGetManaged, &both, &bytes, made, "both");
	NUMBER("bytes", (long long)bytes);
	BYTES("both", both, 16);
	CALL(cudaLibraryGetManaged, NULL, &bytes, made, "both");
	CALL(cudaLibraryGetManaged, &both, NULL, made, "not there");
	CALL(cudaLibraryGetGlobal, &both, &bytes, made, "both");
	CALL(cudaLibraryUnload, made);
	CALL(cudaGetLastError);
}

CASE(unified)
{
	cudaLibrary_t made = library(api_ptx);
	void *function = (void *)8;
	CALL(cudaLibraryGetUnifiedFunction, &function, made, "fill");
	CALL(cudaLibraryGetUnifiedFunction, &function, made, "not there");
	CALL(cudaGetLastError);
}

CASE(file)
{
	char path[] = "/tmp/ckt-api-XXXXXX";
	int fd = mkstemp(path);
	cudaLibrary_t made = NULL;
	unsigned count = 77;
	if (fd < 0 || write(fd, other_ptx, sizeof(other_ptx) - 1) != (ssize_t)sizeof(other_ptx) - 1)
		return;
	CALL(cudaLibraryLoadFromFile, &made, path, NULL, NULL, 0, NULL, NULL, 0);
	CALL(cudaLibraryGetKernelCount, &count, made);
	NUMBER("count", count);
	CALL(cudaLibraryUnload, made);
	unlink(path);
	CALL(cudaLibraryLoadFromFile, &made, path, NULL, NULL, 0, NULL, NULL, 0);
	CALL(cudaGetLastError);
}

CASE(options)
{
	enum cudaJitOption jit[] = {
		cudaJitOptimizationLevel, cudaJitErrorLogBufferSizeBytes, cudaJitErrorLogBuffer};
	static char log[512];
	void *values[] = {(void *)(uintptr_t)2, (void *)sizeof(log), log};
	enum cudaLibraryOption option = cudaLibraryHostUniversalFunctionAndDataTable,
			       binary = cudaLibraryBinaryIsPreserved;
	void *yes = (void *)1;
	cudaLibrary_t made = NULL;
	CALL(cudaLibraryLoadData, &made, api_ptx, jit, values, 3, NULL, NULL, 0);
	YES("nothing logged", log[0] == 0);
	CALL(cudaLibraryLoadData, &made, api_ptx, NULL, NULL, 0, &binary, &yes, 1);
	CALL(cudaLibraryLoadData, &made, "nothing that can be loaded", jit, values, 3, NULL, NULL,
		0);
	CALL(cudaGetLastError);
	(void)option;
}

CASE(wrong)
{
	cudaLibrary_t made = library(api_ptx);
	cudaKernel_t kernel = NULL;
	unsigned count = 77;
	CALL(cudaLibraryGetKernel, &kernel, made, "not there");
	CALL(cudaLibraryGetKernel, NULL, made, "fill");
	CALL(cudaLibraryGetKernelCount, NULL, made);
	CALL(cudaLibraryEnumerateKernels, &kernel, 0, made);
	CALL(cudaLibraryEnumerateKernels, NULL, 4, made);
	CALL(cudaLibraryGetKernelCount, &count, NULL);
	CALL(cudaLibraryGetKernel, &kernel, NULL, "fill");
	CALL(cudaLibraryUnload, NULL);
	CALL(cudaGetLastError);
}

CASE(unloaded)
{
	cudaLibrary_t made = library(api_ptx);
	cudaKernel_t nothing = NULL;
	QUIET(cudaLibraryGetKernel, &nothing, made, "nothing");
	CALL(cudaLaunchKernel, (const void *)nothing, size(1, 1, 1), size(1, 1, 1), NULL, 0, NULL);
	CALL(cudaLibraryUnload, made);
	CALL(cudaDeviceSynchronize);
	CALL(cudaGetLastError);
}

/* A text that is none, asked for what it would have. */
CASE(garbage)
{
	cudaLibrary_t made = NULL;
	cudaKernel_t kernel = NULL;
	unsigned count = 77;
	if (!CALL(cudaLibraryLoadData, &made, "nothing that can be loaded", NULL, NULL, 0, NULL,
		    NULL, 0)) {
		CALL(cudaLibraryGetKernelCount, &count, made);
		CALL(cudaLibraryGetKernel, &kernel, made, "fill");
		CALL(cudaLibraryUnload, made);
	}
	CALL(cudaGetLastError);
}
