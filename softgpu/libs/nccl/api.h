/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes that the header lacks, and NCCL's second names. */
#pragma once

#include <nccl.h>

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
void ncclResetDebugInit(void);

/*
 * Every function of NCCL has a second name.  A profiler that replaces the first name calls the
 * second.
 */
#define CKT_ALIAS(name) \
	extern __typeof__(nccl##name) pnccl##name __attribute__((alias("nccl" #name)))
