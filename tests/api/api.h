/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls functions of CUDA by their exported names and prints what each answered, one line a call:
 *
 *	memory.alloc
 *	  cuMemAlloc_v2: 0 CUDA_SUCCESS; aligned=yes
 *
 * A program is a list of cases, each run in a process of its own.  Nothing printed may depend on
 * the machine: no addresses, times or sizes of a device, but relations between them.  Outputs are
 * poisoned before a call, so that one that is not written shows.  What a GPU's own driver answers
 * is kept in tests/truth/api; a case that was recorded is not changed any more, new calls go into
 * new cases.
 *
 *	CASE(alloc)
 *	{
 *		CUdeviceptr p = 1;
 *		NEED(cuInit, 0);
 *		CALL(cuMemAlloc_v2, &p, 100);
 *		YES("aligned", p % 256 == 0);
 *	}
 *
 * Included once, by the program's one source file.  One thread at a time calls.
 */
#pragma once

/* Every version of a function under its own name. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define API_CASES_MAX 256
#define API_CASE_SECONDS 60

static struct {
	const char *name;
	void (*run)(void);
} api_cases[API_CASES_MAX];
static int api_case_count;
static void *api_driver, *api_runtime;
static void *api_called;
static const char *api_program;

#define CASE(name)                                                             \
	static void case_##name(void);                                         \
	__attribute__((constructor)) static void case_##name##_registers(void) \
	{                                                                      \
		api_register(#name, case_##name);                              \
	}                                                                      \
	static void case_##name(void)

static inline void api_register(const char *name, void (*run)(void))
{
	if (api_case_count == API_CASES_MAX)
		abort();
	api_cases[api_case_count].name = name;
	api_cases[api_case_count++].run = run;
}

/* The function of that exported name, or NULL. */
static inline void *api_symbol(const char *name)
{
	void **library =
		strncmp(name, "cuda", 4) && strncmp(name, "__cuda", 6) ? &api_driver : &api_runtime;
	if (!*library)
		*library = dlopen(library == &api_driver ? "libcuda.so.1" : "libcudart.so.13",
			RTLD_NOW | RTLD_GLOBAL);
	if (!*library) {
		printf("  %s\n", dlerror());
		exit(2);
	}
	return dlsym(*library, name);
}

/* Begins a line; the function's name stands there even when the call never returns. */
static inline int api_begin_of(const char *name, const char *what)
{
	api_called = api_symbol(name);
	printf(what ? "\n  %s(%s):" : "\n  %s:", name, what);
	if (!api_called)
		printf(" missing");
	fflush(stdout);
	return api_called != NULL;
}

static inline int api_begin(const char *name)
{
	return api_begin_of(name, NULL);
}

/* Names of results, of the driver's or the runtime's own kind. */
static inline int api_answered(const char *name, int result)
{
	const char *text = NULL;
	if (!strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6)) {
		const char *(*get)(int) = (const char *(*)(int))api_symbol("cudaGetErrorName");
		text = get(result);
	} else {
		CUresult (*get)(CUresult, const char **) =
			(CUresult(*)(CUresult, const char **))api_symbol("cuGetErrorName");
		get((CUresult)result, &text);
	}
	printf(" %d %s", result, text ? text : "?");
	fflush(stdout);
	return result;
}

#define FUNCTION_AS(type_of, name) ((__typeof__(&type_of))api_symbol(#name))
#define FUNCTION(name) FUNCTION_AS(name, name)
/*
 * The result as an int; -1 when the function is missing.  CALL_AS takes the type from another
 * function, where the header lacks the name.
 */
#define CALL_AS(type_of, name, ...)                                                              \
	(api_begin(#name) ? api_answered(                                                        \
				    #name, (int)((__typeof__(&type_of))api_called)(__VA_ARGS__)) \
			  : -1)
#define CALL(name, ...) CALL_AS(name, name, ##__VA_ARGS__)
/*
 * One call of many of the same function: api.list names it by what it is about, as
 * `function(what)`.
 */
#define CALL_OF(what, name, ...)                                                                 \
	(api_begin_of(#name, what)                                                               \
			? api_answered(#name, (int)((__typeof__(&name))api_called)(__VA_ARGS__)) \
			: -1)
/* The case is over when the call fails. */
#define NEED(name, ...)                          \
	do {                                     \
		if (CALL(name, ##__VA_ARGS__)) { \
			api_end_case();          \
		}                                \
	} while (0)
/* A function that returns no result: the line of a call made through FUNCTION(name). */
#define CALLED(name) printf("\n  " #name ": returned")

/* By exit, so that a session is told that its program ends. */
static inline void api_end_case(void)
{
	printf("\n");
	exit(0);
}

/* What a call put out, behind its result. */
static inline void NUMBER(const char *what, long long value)
{
	printf("; %s=%lld", what, value);
}
static inline void HEX(const char *what, unsigned long long value)
{
	printf("; %s=%#llx", what, value);
}
static inline void YES(const char *what, int condition)
{
	printf("; %s=%s", what, condition ? "yes" : "no");
}
static inline void TEXT(const char *what, const char *text)
{
	printf("; %s=%s", what, text ? text : "(null)");
}
static inline void FLOAT(const char *what, double value)
{
	printf("; %s=%g", what, value);
}

/* Few bytes as they are, many by their sum (FNV-1a). */
static inline void BYTES(const char *what, const void *data, size_t size)
{
	const uint8_t *byte = (const uint8_t *)data;
	uint64_t sum = 0xcbf29ce484222325;
	printf("; %s=", what);
	for (size_t i = 0; i < size; i++) {
		sum = (sum ^ byte[i]) * 0x100000001b3;
		if (size <= 32)
			printf("%02x", byte[i]);
	}
	if (size > 32)
		printf("%zu bytes %016llx", size, (unsigned long long)sum);
}

/* What the program itself remarks about a call's effect, on a line of its own. */
#define REMARK(...) (printf("\n  - "), printf(__VA_ARGS__))

static inline void api_run(int number)
{
	pid_t child;
	int status;
	printf("%s.%s", api_program, api_cases[number].name);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(API_CASE_SECONDS);
		api_cases[number].run();
		api_end_case();
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		exit(2);
	if (WIFSIGNALED(status))
		printf("\n  - died of signal %d\n", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		printf("\n  - exited %d\n", WEXITSTATUS(status));
}

/* PROGRAM [CASE...]: these cases, or all. */
int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	api_program = slash ? slash + 1 : argv[0];
	if (!strncmp(api_program, "api-", 4))
		api_program += 4;
	for (int i = 0; i < api_case_count; i++) {
		int wanted = argc < 2;
		for (int a = 1; a < argc; a++)
			wanted |= !strcmp(argv[a], api_cases[i].name);
		if (wanted)
			api_run(i);
	}
	return 0;
}
