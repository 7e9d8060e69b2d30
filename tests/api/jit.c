/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the JIT compiler and of the linker: what is accepted, what is refused, what is written
 * back.
 */
#include "driver.h"

static const char broken[] =
	".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n	not.an.instruction;\n	ret;\n}\n";

/* Loads with these options; answers the module, or NULL. */
static CUmodule with(unsigned count, CUjit_option *options, void **values)
{
	CUmodule module = NULL;
	return CALL(cuModuleLoadDataEx, &module, api_ptx, count, options, values) ? NULL : module;
}

static void one(CUjit_option option, unsigned long value)
{
	void *values[] = {(void *)value};
	CUmodule module = with(1, &option, values);
	HEX("option", option);
	HEX("value", value);
	YES("left", values[0] == (void *)value);
	if (module)
		QUIET(cuModuleUnload, module);
}

static void two(CUjit_option first, unsigned long a, CUjit_option second, unsigned long b)
{
	CUjit_option options[] = {first, second};
	void *values[] = {(void *)a, (void *)b};
	CUmodule module = with(2, options, values);
	NUMBER("first", first);
	NUMBER("second", second);
	if (module)
		QUIET(cuModuleUnload, module);
}

CASE(registers)
{
	static const unsigned long most[] = {16, 32, 255, 256, 1000, 1, 0, -1ul};
	start();
	for (unsigned i = 0; i < 8; i++)
		one(CU_JIT_MAX_REGISTERS, most[i]);
}

/* What the compiler aimed at is written back. */
CASE(threads)
{
	static const unsigned long least[] = {32, 64, 100, 256, 1024, 1025, 0, 1};
	start();
	for (unsigned i = 0; i < 8; i++) {
		CUjit_option option = CU_JIT_THREADS_PER_BLOCK;
		void *values[] = {(void *)least[i]};
		CUmodule module = with(1, &option, values);
		NUMBER("asked", (long long)least[i]);
		NUMBER("answered", (long long)(uintptr_t)values[0]);
		if (module)
			QUIET(cuModuleUnload, module);
	}
	two(CU_JIT_THREADS_PER_BLOCK, 256, CU_JIT_MAX_REGISTERS, 32);
}

CASE(level)
{
	start();
	for (unsigned long level = 0; level < 7; level++)
		one(CU_JIT_OPTIMIZATION_LEVEL, level);
	one(CU_JIT_OPTIMIZATION_LEVEL, -1ul);
	two(CU_JIT_OPTIMIZATION_LEVEL, 0, CU_JIT_OPTIMIZATION_LEVEL, 3);
}

/* The device is of 9.0. */
CASE(target)
{
	static const unsigned long targets[] = {90, 75, 80, 89, 87, 70, 52, 100, 120, 0, 91, 999,
		CU_COMPUTE_ACCELERATED_TARGET_BASE + 90};
	start();
	one(CU_JIT_TARGET_FROM_CUCONTEXT, 0);
	one(CU_JIT_TARGET_FROM_CUCONTEXT, 7);
	for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		one(CU_JIT_TARGET, targets[i]);
	two(CU_JIT_TARGET, 90, CU_JIT_THREADS_PER_BLOCK, 256);
	two(CU_JIT_TARGET, 90, CU_JIT_TARGET_FROM_CUCONTEXT, 0);
}

CASE(fallback)
{
	start();
	for (unsigned long strategy = 0; strategy < 4; strategy++)
		one(CU_JIT_FALLBACK_STRATEGY, strategy);
}

CASE(rest)
{
	static const CUjit_option options[] = {CU_JIT_GENERATE_DEBUG_INFO, CU_JIT_LOG_VERBOSE,
		CU_JIT_GENERATE_LINE_INFO, CU_JIT_CACHE_MODE, CU_JIT_NEW_SM3X_OPT,
		CU_JIT_FAST_COMPILE, CU_JIT_GLOBAL_SYMBOL_COUNT, CU_JIT_LTO, CU_JIT_FTZ,
		CU_JIT_PREC_DIV, CU_JIT_PREC_SQRT, CU_JIT_FMA, CU_JIT_REFERENCED_KERNEL_COUNT,
		CU_JIT_REFERENCED_VARIABLE_COUNT, CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES,
		CU_JIT_POSITION_INDEPENDENT_CODE, CU_JIT_MIN_CTA_PER_SM,
		CU_JIT_MAX_THREADS_PER_BLOCK, CU_JIT_OVERRIDE_DIRECTIVE_VALUES,
		CU_JIT_SPLIT_COMPILE};
	start();
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		one(options[i], 0);
		one(options[i], 1);
	}
	one(CU_JIT_CACHE_MODE, 2);
	one(CU_JIT_CACHE_MODE, 3);
	one(CU_JIT_MAX_THREADS_PER_BLOCK, 2000);
	one(CU_JIT_MIN_CTA_PER_SM, 100);
}

CASE(unknown)
{
	start();
	one(CU_JIT_NUM_OPTIONS, 0);
	one((CUjit_option)36, 0);
	one((CUjit_option)60, 0);
	one((CUjit_option)1000, 0);
	one((CUjit_option)-1, 0);
}

/* No list, no values, a null among pointers. */
CASE(lists)
{
	CUmodule module = NULL;
	CUjit_option options[] = {CU_JIT_OPTIMIZATION_LEVEL};
	void *values[] = {(void *)2};
	start();
	CALL(cuModuleLoadDataEx, &module, api_ptx, 1, NULL, values);
	CALL(cuModuleLoadDataEx, &module, api_ptx, 1, NULL, NULL);
	CALL(cuModuleLoadDataEx, &module, api_ptx, 0, options, values);
	CALL(cuModuleLoadDataEx, NULL, api_ptx, 1, options, values);
	CALL(cuModuleLoadDataEx, &module, NULL, 1, options, values);
}

static void time_of(const char *text)
{
	CUmodule module = NULL;
	CUjit_option option = CU_JIT_WALL_TIME;
	void *values[] = {(void *)0xabababababababab};
	float ms;
	CALL(cuModuleLoadDataEx, &module, text, 1, &option, values);
	memcpy(&ms, values, sizeof(ms));
	YES("written", values[0] != (void *)0xabababababababab);
	YES("milliseconds", ms >= 0 && ms < 60000);
	YES("above it nothing", (uintptr_t)values[0] >> 32 == 0);
}

CASE(wall_time)
{
	start();
	time_of(api_ptx);
	time_of(broken);
}

static void logs(
	const char *text, unsigned long info_size, unsigned long error_size, unsigned long verbose)
{
	CUmodule module = NULL;
	char info[4096], error[4096];
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
	void *values[] = {info, (void *)info_size, error, (void *)error_size, (void *)verbose};
	memset(info, '#', sizeof(info));
	memset(error, '#', sizeof(error));
	CALL(cuModuleLoadDataEx, &module, text, 5, options, values);
	NUMBER("room", (long long)error_size);
	size_t filled = (uintptr_t)values[3], used = 0;
	while (used < sizeof(error) && error[used] != '#' && error[used])
		used++;
	YES("said why", used > 0);
	YES("ended", used < sizeof(error) && error[used] == 0);
	YES("within", used < error_size || !used);
	YES("full", used + 1 == error_size);
	YES("size is the text's", filled == used);
	YES("size counts the end", filled == used + 1);
	YES("size left", filled == error_size);
	YES("behind it nothing", error_size >= sizeof(error) || error[error_size] == '#');
	size_t told = 0;
	while (told < sizeof(info) && info[told] != '#' && info[told])
		told++;
	YES("info", told > 0);
	YES("info ended", told < sizeof(info) && info[told] == 0);
	YES("info size is the text's", (uintptr_t)values[1] == told);
	YES("info size counts the end", (uintptr_t)values[1] == told + 1);
	YES("info size left", (uintptr_t)values[1] == info_size);
	YES("buffers left", values[0] == info && values[2] == error);
	if (module)
		QUIET(cuModuleUnload, module);
}

CASE(logs)
{
	start();
	logs(broken, 4096, 4096, 0);
	logs(broken, 4096, 4096, 1);
	logs(broken, 16, 16, 0);
	logs(broken, 1, 1, 0);
	logs(broken, 0, 0, 0);
	logs(api_ptx, 4096, 4096, 0);
	logs("nonsense", 4096, 4096, 0);
}

CASE(logs_verbose)
{
	start();
	logs(api_ptx, 4096, 4096, 1);
	logs(api_ptx, 16, 16, 1);
}

/* A buffer without a size, a size without a buffer, a buffer that is NULL. */
CASE(logs_halves)
{
	CUmodule module = NULL;
	char log[64];
	CUjit_option buffer = CU_JIT_ERROR_LOG_BUFFER, size = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
	CUjit_option both[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
	void *value = log;
	start();
	memset(log, '#', sizeof(log));
	CALL(cuModuleLoadDataEx, &module, broken, 1, &buffer, &value);
	YES("untouched", log[0] == '#');
	value = (void *)sizeof(log);
	CALL(cuModuleLoadDataEx, &module, broken, 1, &size, &value);
	NUMBER("size", (long long)(uintptr_t)value);
	void *values[] = {(void *)sizeof(log), NULL};
	CALL(cuModuleLoadDataEx, &module, broken, 2, both, values);
	NUMBER("size", (long long)(uintptr_t)values[0]);
	void *turned[] = {(void *)sizeof(log), log};
	CALL(cuModuleLoadDataEx, &module, broken, 2, both, turned);
	YES("said why", log[0] != '#' && log[0]);
}

/* The linker takes the same options, and says at the end. */
CASE(link)
{
	static const CUjit_option options[] = {CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_MAX_REGISTERS,
		CU_JIT_FALLBACK_STRATEGY, CU_JIT_THREADS_PER_BLOCK, CU_JIT_GENERATE_DEBUG_INFO,
		CU_JIT_TARGET_FROM_CUCONTEXT, CU_JIT_NUM_OPTIONS, (CUjit_option)60};
	void *image = NULL;
	size_t size = 0;
	start();
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		CUlinkState state = NULL;
		CUjit_option option = options[i];
		void *value = (void *)(uintptr_t)(option == CU_JIT_MAX_REGISTERS ? 32
				: option == CU_JIT_THREADS_PER_BLOCK             ? 256
										 : 1);
		int failed = CALL(cuLinkCreate_v2, 1, &option, &value, &state);
		NUMBER("option", options[i]);
		if (failed)
			continue;
		CALL(cuLinkAddData_v2, state, CU_JIT_INPUT_PTX, (void *)api_ptx, sizeof(api_ptx),
			"text", 0, NULL, NULL);
		CALL(cuLinkComplete, state, &image, &size);
		YES("image", image != NULL);
		CALL(cuLinkDestroy, state);
	}
}

CASE(link_logs)
{
	char info[2048] = "", error[2048] = "";
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
	void *values[] = {info, (void *)sizeof(info), error, (void *)sizeof(error),
		(void *)0xabababababababab};
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 0;
	start();
	NEED(cuLinkCreate_v2, 5, options, values, &state);
	CALL(cuLinkAddData_v2, state, CU_JIT_INPUT_PTX, (void *)api_ptx, sizeof(api_ptx), "text", 0,
		NULL, NULL);
	CALL(cuLinkComplete, state, &image, &size);
	YES("no error", !error[0]);
	YES("error size left", values[3] == (void *)sizeof(error));
	NUMBER("error size less the text's",
		(long long)(uintptr_t)values[3] - (long long)strlen(error));
	YES("time written", values[4] != (void *)0xabababababababab);
	CALL(cuLinkDestroy, state);
	values[1] = (void *)sizeof(info);
	values[3] = (void *)sizeof(error);
	NEED(cuLinkCreate_v2, 4, options, values, &state);
	CALL(cuLinkAddData_v2, state, CU_JIT_INPUT_PTX, (void *)broken, sizeof(broken), "text", 0,
		NULL, NULL);
	YES("said why", error[0] != 0);
	CALL(cuLinkComplete, state, &image, &size);
	YES("said why", error[0] != 0);
	CALL(cuLinkDestroy, state);
}

/* Options of one input. */
CASE(link_input)
{
	static const CUjit_option options[] = {CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_MAX_REGISTERS,
		CU_JIT_FALLBACK_STRATEGY, CU_JIT_NUM_OPTIONS, (CUjit_option)60};
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 0;
	start();
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		CUjit_option option = options[i];
		void *value = (void *)(uintptr_t)(option == CU_JIT_MAX_REGISTERS ? 32 : 1);
		NEED(cuLinkCreate_v2, 0, NULL, NULL, &state);
		CALL(cuLinkAddData_v2, state, CU_JIT_INPUT_PTX, (void *)api_ptx, sizeof(api_ptx),
			"text", 1, &option, &value);
		NUMBER("option", options[i]);
		CALL(cuLinkComplete, state, &image, &size);
		CALL(cuLinkDestroy, state);
	}
}

CASE(library)
{
	char error[256];
	CUlibrary library = NULL;
	CUkernel got = NULL;
	CUfunction function = NULL;
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {error, (void *)sizeof(error)};
	CUjit_option level = CU_JIT_OPTIMIZATION_LEVEL, unknown = (CUjit_option)60;
	void *value = (void *)9;
	start();
	memset(error, '#', sizeof(error));
	if (!CALL(cuLibraryLoadData, &library, broken, options, values, 2, NULL, NULL, 0)) {
		CALL(cuLibraryGetKernel, &got, library, "k");
		CALL(cuKernelGetFunction, &function, got);
		CALL(cuLibraryUnload, library);
	}
	YES("said why", error[0] != '#' && error[0]);
	if (!CALL(cuLibraryLoadData, &library, api_ptx, &level, &value, 1, NULL, NULL, 0)) {
		CALL(cuLibraryGetKernel, &got, library, "fill");
		CALL(cuKernelGetFunction, &function, got);
		CALL(cuLibraryUnload, library);
	}
	if (!CALL(cuLibraryLoadData, &library, api_ptx, &unknown, &value, 1, NULL, NULL, 0))
		CALL(cuLibraryUnload, library);
}
