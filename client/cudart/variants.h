/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the headers declare only with special macros: per-thread versions written by hand,
 * and bodies of generated functions.  From each body, gen.py makes a synchronous function NAME
 * (legacy default stream) and its version NAME_ptds (the thread's own stream).
 */
#pragma once

#include <cuda_runtime_api.h>

#pragma GCC visibility push(default)
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t dst, cudaStream_t src);
cudaError_t cudaLaunchKernelExC_ptsz(
	const cudaLaunchConfig_t *config, const void *func, void **args);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **funcPtr,
	unsigned int cudaVersion, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *driverStatus);
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
	cudaGraphInstantiateParams *instantiateParams);
#pragma GCC visibility pop

cudaError_t ckt_rt_cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
	size_t wOffset, size_t hOffset, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
	cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height,
	enum cudaMemcpyKind kind, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
	cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t count,
	enum cudaMemcpyKind kind, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset,
	size_t hOffset, size_t count, enum cudaMemcpyKind kind, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpy3D(const struct cudaMemcpy3DParms *p, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpy3DPeer(
	const struct cudaMemcpy3DPeerParms *p, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
	enum cudaMemcpyKind kind, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemset(void *devPtr, int value, size_t count, cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height,
	cudaStream_t default_stream);
cudaError_t ckt_rt_cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
	struct cudaExtent extent, cudaStream_t default_stream);
