/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's errors, versions, profiler and log, and what it says of the driver's entry points.
 */
#include "runtime.h"
#include <cuda_profiler_api.h>

CASE(error_names)
{
	const char *unknown = FUNCTION(cudaGetErrorName)((cudaError_t)12345);
	CALLED(cudaGetErrorName);
	TEXT("unknown", unknown);
	for (int i = 0; i <= 1000; i++) {
		const char *name = FUNCTION(cudaGetErrorName)((cudaError_t)i);
		if (!strcmp(name, unknown))
			continue;
		CALLED(cudaGetErrorName);
		NUMBER("error", i);
		TEXT("name", name);
	}
	CALLED(cudaGetErrorName);
	TEXT("negative", FUNCTION(cudaGetErrorName)((cudaError_t)-1));
}

CASE(error_strings)
{
	uint64_t sum = 0;
	int count = 0;
	for (int i = 0; i <= 1000; i++) {
		const char *text = FUNCTION(cudaGetErrorString)((cudaError_t)i);
		for (const char *c = text; *c; c++)
			sum = sum * 31 + (uint8_t)*c;
		count += strcmp(text, FUNCTION(cudaGetErrorString)((cudaError_t)12345)) != 0;
	}
	CALLED(cudaGetErrorString);
	NUMBER("known", count);
	HEX("sum", sum);
	CALLED(cudaGetErrorString);
	TEXT("unknown", FUNCTION(cudaGetErrorString)((cudaError_t)12345));
	CALLED(cudaGetErrorString);
	TEXT("success", FUNCTION(cudaGetErrorString)(cudaSuccess));
	CALLED(cudaGetErrorString);
	TEXT("invalid", FUNCTION(cudaGetErrorString)(cudaErrorInvalidValue));
}

CASE(last_error)
{
	CALL(cudaGetLastError);
	CALL(cudaPeekAtLastError);
	CALL(cudaSetDevice, 999);
	CALL(cudaPeekAtLastError);
	CALL(cudaPeekAtLastError);
	CALL(cudaGetLastError);
	CALL(cudaGetLastError);
	CALL(cudaMemcpy, NULL, NULL, 1, (enum cudaMemcpyKind)77);
	CALL(cudaDeviceSynchronize);
	CALL(cudaGetLastError);
}

CASE(versions)
{
	int version = -7, drivers = -7;
	CALL(cudaRuntimeGetVersion, &version);
	NUMBER("major", version / 1000);
	YES("a minor", version % 1000 % 10 == 0);
	CALL(cudaDriverGetVersion, &drivers);
	YES("serves it", drivers / 1000 >= version / 1000);
}

CASE(versions_wrong)
{
	CALL(cudaRuntimeGetVersion, NULL);
	CALL(cudaDriverGetVersion, NULL);
	CALL(cudaGetLastError);
}

CASE(profiler)
{
	CALL(cudaProfilerStart);
	CALL(cudaProfilerStop);
	CALL(cudaProfilerStop);
	CALL(cudaProfilerStart);
	CALL(cudaProfilerStart);
	CALL(cudaGetLastError);
}

CASE(entry_points)
{
	void *f = (void *)8, *g = NULL;
	enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)77;
	CALL(cudaGetDriverEntryPointByVersion, "cuMemAlloc", &f, 12000, cudaEnableDefault, &status);
	NUMBER("status", status);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
	status = (enum cudaDriverEntryPointQueryResult)77;
	CALL(cudaGetDriverEntryPointByVersion, "cuMemcpyHtoDAsync", &f, 13000,
		cudaEnablePerThreadDefaultStream, &status);
	NUMBER("status", status);
	YES("per thread", f == api_symbol("cuMemcpyHtoDAsync_v2_ptsz"));
	CALL(cudaGetDriverEntryPointByVersion, "cuMemcpyHtoDAsync", &f, 13000,
		cudaEnableLegacyStream, &status);
	YES("legacy", f == api_symbol("cuMemcpyHtoDAsync_v2"));
	CALL_AS(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz,
		"cuMemcpyHtoDAsync", &f, 13000, cudaEnableDefault, &status);
	NUMBER("status", status);
	YES("per thread", f == api_symbol("cuMemcpyHtoDAsync_v2_ptsz"));
	CALL_AS(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz,
		"cuMemcpyHtoDAsync", &g, 13000, cudaEnableLegacyStream, &status);
	YES("legacy", g == api_symbol("cuMemcpyHtoDAsync_v2"));
	CALL(cudaGetDriverEntryPointByVersion, "cuMemAlloc", &f, 13000, cudaEnableDefault, NULL);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
}

CASE(entry_points_first)
{
	void *f = (void *)8;
	enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)77;
	CALL(cudaGetDriverEntryPoint, "cuMemAlloc", &f, cudaEnableDefault, &status);
	NUMBER("status", status);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
	CALL(cudaGetDriverEntryPoint, "cuStreamQuery", &f, cudaEnablePerThreadDefaultStream,
		&status);
	YES("per thread", f == api_symbol("cuStreamQuery_ptsz"));
	CALL_AS(cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz, "cuStreamQuery", &f,
		cudaEnableDefault, &status);
	NUMBER("status", status);
	YES("per thread", f == api_symbol("cuStreamQuery_ptsz"));
}

CASE(entry_points_none)
{
	void *f = (void *)8;
	enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)77;
	CALL(cudaGetDriverEntryPointByVersion, "cuNotThere", &f, 13000, cudaEnableDefault, &status);
	NUMBER("status", status);
	YES("null", f == NULL);
	f = (void *)8;
	CALL(cudaGetDriverEntryPointByVersion, "cuLibraryLoadData", &f, 11000, cudaEnableDefault,
		&status);
	NUMBER("status", status);
	YES("null", f == NULL);
	f = (void *)8;
	CALL(cudaGetDriverEntryPointByVersion, "cuNotThere", &f, 13000, cudaEnableDefault, NULL);
	YES("null", f == NULL);
	CALL(cudaGetLastError);
}

CASE(entry_points_wrong)
{
	void *f = (void *)8;
	enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)77;
	CALL(cudaGetDriverEntryPointByVersion, "cuMemAlloc", &f, 13000, 0x80, &status);
	CALL(cudaGetDriverEntryPointByVersion, "", &f, 13000, 0, &status);
	CALL(cudaGetDriverEntryPointByVersion, NULL, &f, 13000, 0, &status);
	CALL(cudaGetDriverEntryPointByVersion, "cuMemAlloc", NULL, 13000, 0, &status);
	CALL(cudaGetLastError);
}

static int logged;

static void take_log(void *data, cudaLogLevel level, char *message, size_t length)
{
	(void)data, (void)level, (void)message, (void)length;
	logged++;
}

CASE(logs)
{
	cudaLogIterator iterator = 77;
	cudaLogsCallbackHandle handle = NULL;
	char buffer[256] = "before";
	size_t size = sizeof(buffer);
	QUIET(cudaDeviceSynchronize);
	CALL(cudaLogsCurrent, &iterator, 0);
	CALL(cudaLogsDumpToMemory, &iterator, buffer, &size, 0);
	NUMBER("size", (long long)size);
	CALL(cudaLogsRegisterCallback, take_log, NULL, &handle);
	YES("some", handle != NULL);
	CALL(cudaLogsUnregisterCallback, handle);
	CALL(cudaLogsDumpToFile, &iterator, "/dev/null", 0);
	NUMBER("logged", logged);
}

CASE(logs_wrong)
{
	cudaLogIterator iterator = 77;
	cudaLogsCallbackHandle handle = NULL;
	char buffer[256];
	size_t size = sizeof(buffer);
	QUIET(cudaDeviceSynchronize);
	QUIET(cudaLogsCurrent, &iterator, 0);
	CALL(cudaLogsCurrent, NULL, 0);
	CALL(cudaLogsCurrent, &iterator, 1);
	CALL(cudaLogsDumpToMemory, &iterator, NULL, &size, 0);
	CALL(cudaLogsDumpToMemory, &iterator, buffer, NULL, 0);
	CALL(cudaLogsDumpToMemory, &iterator, buffer, &size, 1);
	CALL(cudaLogsDumpToFile, &iterator, NULL, 0);
	CALL(cudaLogsDumpToFile, &iterator, "/nonexistent/log", 0);
	CALL(cudaLogsRegisterCallback, NULL, NULL, &handle);
	CALL(cudaLogsUnregisterCallback, NULL);
	CALL(cudaGetLastError);
}

CASE(entry_points_null)
{
	void *f = (void *)8;
	enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)77;
	CALL(cudaGetDriverEntryPointByVersion, NULL, &f, 13000, 0, &status);
	CALL(cudaGetLastError);
}

CASE(entry_points_flags)
{
	void *f = (void *)8;
	enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)77;
	CALL(cudaGetDriverEntryPointByVersion, "cuMemAlloc", &f, 13000,
		cudaEnableLegacyStream | cudaEnablePerThreadDefaultStream, &status);
	CALL(cudaGetDriverEntryPointByVersion, "cuMemAlloc", &f, 2000, 0, &status);
	NUMBER("status", status);
	CALL(cudaGetDriverEntryPointByVersion, "cuMemAlloc", &f, 99000, 0, &status);
	NUMBER("status", status);
	CALL(cudaGetDriverEntryPointByVersion, "cudaMalloc", &f, 13000, 0, &status);
	NUMBER("status", status);
	CALL(cudaGetLastError);
}

CASE(logs_flags)
{
	cudaLogIterator iterator = 77;
	static char buffer[32768];
	size_t size = sizeof(buffer);
	QUIET(cudaDeviceSynchronize);
	QUIET(cudaLogsCurrent, &iterator, 0);
	CALL(cudaLogsDumpToMemory, &iterator, buffer, &size, 1);
	CALL(cudaLogsDumpToFile, &iterator, "/dev/null", 1);
	size = 0;
	CALL(cudaLogsDumpToMemory, &iterator, buffer, &size, 0);
	CALL(cudaGetLastError);
}

/* What succeeds in between leaves the last error as it is. */
CASE(last_error_stays)
{
	CALL(cudaStreamSynchronize, NULL);
	CALL(cudaMemcpy, NULL, NULL, 8, cudaMemcpyHostToDevice);
	CALL(cudaPeekAtLastError);
	CALL(cudaStreamQuery, NULL);
	CALL(cudaPeekAtLastError);
	CALL(cudaDeviceReset);
	CALL(cudaGetLastError);
}
