/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options; see jit.h. */
#include "server/worker/module/jit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "server/worker/session/call.h"

/* Options whose value is a number that the driver reads. */
static const CUjit_option numbers[] = {CU_JIT_MAX_REGISTERS, CU_JIT_THREADS_PER_BLOCK,
	CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_TARGET_FROM_CUCONTEXT, CU_JIT_TARGET,
	CU_JIT_FALLBACK_STRATEGY, CU_JIT_GENERATE_DEBUG_INFO, CU_JIT_LOG_VERBOSE,
	CU_JIT_GENERATE_LINE_INFO, CU_JIT_CACHE_MODE, CU_JIT_NEW_SM3X_OPT, CU_JIT_FAST_COMPILE,
	CU_JIT_LTO, CU_JIT_FTZ, CU_JIT_PREC_DIV, CU_JIT_PREC_SQRT, CU_JIT_FMA,
	CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES, CU_JIT_POSITION_INDEPENDENT_CODE,
	CU_JIT_MIN_CTA_PER_SM, CU_JIT_MAX_THREADS_PER_BLOCK, CU_JIT_OVERRIDE_DIRECTIVE_VALUES,
	CU_JIT_SPLIT_COMPILE};

CUresult ckt_worker_jit_option(struct ckt_jit *jit, uint32_t key, uint64_t value)
{
	if (key == CU_JIT_WALL_TIME) /* an output that no client can receive */
		return CUDA_SUCCESS;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (key == (uint32_t)numbers[i]) {
			jit->keys[jit->count] = numbers[i];
			jit->values[jit->count++] = (void *)(uintptr_t)value;
			return CUDA_SUCCESS;
		}
	ckt_warning("JIT option %u", key);
	return CKT_WORKER_UNSUPPORTED("an option of the just-in-time compiler");
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
