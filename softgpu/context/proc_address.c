/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress with the generated table, and the refusal of export tables. */
#include <string.h>

#include "cudacommon/interface.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/gen.h"

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
	cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
	cuuint64_t both =
		CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	if (!symbol || !pfn || (flags & ~both) || (flags & both) == both ||
		cudaVersion > CKT_SOFT_DRIVER_VERSION)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_soft_entry *best = NULL;
	bool known = false;
	for (size_t i = 0; i < ckt_soft_entry_count; i++) {
		if (strcmp(ckt_soft_entries[i].name, symbol))
			continue;
		known = true;
		if (ckt_soft_entries[i].since <= cudaVersion)
			best = &ckt_soft_entries[i];
	}
	*pfn = NULL;
	if (best)
		*pfn = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && best->per_thread
			? best->per_thread
			: best->function;
	if (symbolStatus)
		*symbolStatus = best ? CU_GET_PROC_ADDRESS_SUCCESS
			: known      ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	/*
	 * Not an error, even without symbolStatus (seen with CUDA 13.0): the NULL address shows it.
	 */
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	void *found = NULL;
	CUresult result =
		cuGetProcAddress_v2(symbol, pfn ? &found : NULL, cudaVersion, flags, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	*pfn = found;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	/* The soft GPU has no undocumented tables of internal functions. */
	(void)pExportTableId;
	if (ppExportTable)
		*ppExportTable = NULL;
	ckt_soft_debug("cuGetExportTable: there are no undocumented tables");
	return CKT_AS_CUDA_NOT_SUPPORTED;
}
