/* SPDX-License-Identifier: Apache-2.0 */
/* Device variables, found by the address of their host variables. */
#include "client/cudart/symbol.h"
#include "client/cudart/api.h"
#include "client/cudart/memcpy.h"
#include "client/cudart/module.h"
#include "client/cudart/registration.h"
#include "client/cudart/variants.h"

static cudaError_t find(const void *symbol, CUdeviceptr *ret_address, size_t *ret_size)
{
	cudaError_t error = ckt_rt_enter();
	if (error)
		return error;
	/*
	 * The symbol of a managed variable is the variable's address, and not the registered
	 * pointer.
	 */
	struct ckt_rt_variable *variable = ckt_rt_variable_find(symbol);
	if (!variable || variable->managed)
		variable = ckt_rt_managed_find(symbol);
	return variable ? ckt_rt_variable_address(variable, ret_address, ret_size)
			: cudaErrorInvalidSymbol;
}

cudaError_t ckt_rt_symbol(const void *symbol, size_t offset, size_t count, CUdeviceptr *ret_address)
{
	CUdeviceptr address;
	size_t size, end;
	cudaError_t error = find(symbol, &address, &size);
	if (error)
		return error;
	if (__builtin_add_overflow(offset, count, &end) || end > size)
		return cudaErrorInvalidValue;
	*ret_address = address + offset;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
	CUdeviceptr address;
	size_t size;
	CKT_RT_REQUIRE(devPtr, cudaErrorInvalidValue);
	cudaError_t error = find(symbol, &address, &size);
	CKT_RT_REQUIRE(!error, error);
	*devPtr = (void *)(uintptr_t)address;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
	CUdeviceptr address;
	size_t found;
	CKT_RT_REQUIRE(size, cudaErrorInvalidValue);
	cudaError_t error = find(symbol, &address, &found);
	CKT_RT_REQUIRE(!error, error);
	*size = found;
	return cudaSuccess;
}

static cudaError_t copy_to(const void *symbol, const void *src, size_t count, size_t offset,
	enum cudaMemcpyKind kind, cudaStream_t stream, bool async)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	if (!count)
		return cudaSuccess;
	CKT_RT_REQUIRE(kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
			kind == cudaMemcpyDefault,
		cudaErrorInvalidMemcpyDirection);
	cudaError_t error = ckt_rt_symbol(symbol, offset, count, &address);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_copy((void *)(uintptr_t)address, src, count, kind, stream, async);
}

static cudaError_t copy_from(void *dst, const void *symbol, size_t count, size_t offset,
	enum cudaMemcpyKind kind, cudaStream_t stream, bool async)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	if (!count)
		return cudaSuccess;
	CKT_RT_REQUIRE(kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
			kind == cudaMemcpyDefault,
		cudaErrorInvalidMemcpyDirection);
	cudaError_t error = ckt_rt_symbol(symbol, offset, count, &address);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_copy(dst, (const void *)(uintptr_t)address, count, kind, stream, async);
}

cudaError_t ckt_rt_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t default_stream)
{
	return copy_to(symbol, src, count, offset, kind, default_stream, false);
}

cudaError_t ckt_rt_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
	enum cudaMemcpyKind kind, cudaStream_t default_stream)
{
	return copy_from(dst, symbol, count, offset, kind, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_to(symbol, src, count, offset, kind, stream, true);
}

CKT_RT_API cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_from(dst, symbol, count, offset, kind, stream, true);
}
