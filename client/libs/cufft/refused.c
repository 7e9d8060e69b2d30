/* What is not supported (rpc/api/cufft.api says why): each says its name once. */
#include "client/libs/cufft/cufft.h"

#define REFUSED(name, parameters) \
	cufftResult name parameters \
	{ \
		static bool once; \
		const struct ckt_client_table *client = ckt_client(); \
		if (client) \
			client->unsupported(#name, &once); \
		return CUFFT_NOT_SUPPORTED; \
	}

/* Exported by NVIDIA's library and in no header. */
CUFFTAPI cufftResult cufftDebug(void);
CUFFTAPI cufftResult cufftXtMakePlanGuru64(void);

REFUSED(cufftDebug, (void))
REFUSED(cufftXtMakePlanGuru64, (void))
REFUSED(cufftXtSetGPUs, (cufftHandle handle, int nGPUs, int *whichGPUs))
REFUSED(cufftXtMalloc, (cufftHandle plan, cudaLibXtDesc **descriptor, cufftXtSubFormat format))
REFUSED(cufftXtMemcpy, (cufftHandle plan, void *dstPointer, void *srcPointer, cufftXtCopyType type))
REFUSED(cufftXtFree, (cudaLibXtDesc *descriptor))
REFUSED(cufftXtExecDescriptor, (cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction))
REFUSED(cufftXtExecDescriptorC2C, (cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction))
REFUSED(cufftXtExecDescriptorR2C, (cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output))
REFUSED(cufftXtExecDescriptorC2R, (cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output))
REFUSED(cufftXtExecDescriptorZ2Z, (cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction))
REFUSED(cufftXtExecDescriptorD2Z, (cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output))
REFUSED(cufftXtExecDescriptorZ2D, (cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output))
REFUSED(cufftXtQueryPlan, (cufftHandle plan, void *queryStruct, cufftXtQueryType queryType))
REFUSED(cufftXtSetCallback, (cufftHandle plan, void **callback_routine, cufftXtCallbackType cbType, void **caller_info))
REFUSED(cufftXtClearCallback, (cufftHandle plan, cufftXtCallbackType cbType))
REFUSED(cufftXtSetCallbackSharedSize, (cufftHandle plan, cufftXtCallbackType cbType, size_t sharedSize))
REFUSED(cufftXtSetJITCallback, (cufftHandle plan, const char *lto_callback_symbol_name, const void *lto_callback_fatbin,
	size_t lto_callback_fatbin_size, cufftXtCallbackType type, void **caller_info))
