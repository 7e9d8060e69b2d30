/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options; see jit.h. */
#include "server/worker/module/jit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "server/worker/session/call.h"

CUresult ckt_worker_jit_option(struct ckt_jit *jit, uint32_t key, uint64_t value)
{
	switch (key) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
	case CU_JIT_NEW_SM3X_OPT:
	case CU_JIT_FAST_COMPILE:
	case CU_JIT_LTO:
	case CU_JIT_FTZ:
	case CU_JIT_PREC_DIV:
	case CU_JIT_PREC_SQRT:
	case CU_JIT_FMA:
	case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
	case CU_JIT_POSITION_INDEPENDENT_CODE:
	case CU_JIT_MIN_CTA_PER_SM:
	case CU_JIT_MAX_THREADS_PER_BLOCK:
	case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
	case CU_JIT_SPLIT_COMPILE:
		jit->keys[jit->count] = (CUjit_option)key;
		jit->values[jit->count++] = (void *)(uintptr_t)value;
		return CUDA_SUCCESS;
	case CU_JIT_WALL_TIME: /* an output that no client can receive */
		return CUDA_SUCCESS;
	default:
		ckt_warning("JIT option %u", key);
		return CKT_WORKER_UNSUPPORTED("an option of the just-in-time compiler");
	}
}

static void add(struct ckt_jit *jit, CUjit_option key, void *value)
{
	jit->keys[jit->count] = key;
	jit->values[jit->count++] = value;
}

void ckt_worker_jit_add_logs(struct ckt_jit *jit, struct ckt_jit_logs *logs)
{
	if (logs->info_size) {
		add(jit, CU_JIT_INFO_LOG_BUFFER, logs->info);
		add(jit, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)logs->info_size);
	}
	if (logs->error_size) {
		add(jit, CU_JIT_ERROR_LOG_BUFFER, logs->error);
		add(jit, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)logs->error_size);
	}
}

struct ckt_jit_logs *ckt_worker_jit_logs_new(uint32_t info_max, uint32_t error_max)
{
	struct ckt_jit_logs *logs = malloc(sizeof *logs);
	if (!logs)
		return NULL;
	logs->info[0] = logs->error[0] = 0;
	logs->info_size = info_max < CKT_JIT_LOG_MAX ? info_max : CKT_JIT_LOG_MAX;
	logs->error_size = error_max < CKT_JIT_LOG_MAX ? error_max : CKT_JIT_LOG_MAX;
	return logs;
}

void ckt_worker_jit_say(struct ckt_jit_logs *logs, const char *text)
{
	if (logs->error_size)
		snprintf(logs->error, logs->error_size, "%s", text);
}
