/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The soft GPU's driver with long calls: loading a module, linking and instantiating a graph return
 * only when something was set by cuMemsetD8Async, each for itself (or with CUDA_ERROR_TIMEOUT after
 * 20 s, where nothing comes past them).
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

static atomic_uint sets; /* that ended no long call yet */

/*
 * Everything else is found in the soft GPU's library, which the linker would leave out where
 * nothing of it is named.
 */
EXPORT CUresult (*const slow_driver_next)(unsigned int) = cuInit;

static CUresult wait_for_set(void)
{
	for (int i = 0; i < 60000 && !sets; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	if (!sets)
		return CUDA_ERROR_TIMEOUT;
	sets--;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	CUresult result = NEXT(cuMemsetD8Async)(dst, value, count, stream);
	sets++;
	return result;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
	CUjit_option *options, void **values)
{
	/* The worker has kernels of its own. */
	CUresult result = strstr(image, ".entry nothing(") ? wait_for_set() : CUDA_SUCCESS;
	return result ? result : NEXT(cuModuleLoadDataEx)(module, image, count, options, values);
}

EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size)
{
	CUresult result = wait_for_set();
	return result ? result : NEXT(cuLinkComplete)(state, cubin, size);
}

EXPORT CUresult cuGraphInstantiateWithParams(
	CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUresult result = wait_for_set();
	return result ? result : NEXT(cuGraphInstantiateWithParams)(exec, graph, params);
}
