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
#include "rpc/cufft_refused.inc"
