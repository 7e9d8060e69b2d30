/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The soft GPU's libraries compute on the CPU. Like the genuine ones, they still load code into the
 * driver: a module with a variable and kernels.  An eager driver loads all of it when a library is
 * first used.  A lazy driver loads a kernel when the library first does that kind of work.  This
 * affects the addresses of variables in a program's modules, which a restore must reproduce.
 */
#include "softgpu/libs/common/code.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/libs/common/driver.h"

enum { KERNELS = 8, USES_MAX = 256 };

#define KERNEL(n) ".visible .entry soft_kernel_" #n "()\n{\nret;\n}\n"
/* Each library has its own copy in its own file, which distinguishes them. */
static const char ptx[] =
	".version 6.4\n.target sm_70\n.address_size 64\n.visible .global .align 8 .b8 soft_variable[1024];\n" KERNEL(
		0) KERNEL(1) KERNEL(2) KERNEL(3) KERNEL(4) KERNEL(5) KERNEL(6) KERNEL(7);

static struct {
	pthread_mutex_t lock;
	bool asked, eager;
	CUlibrary library;
	CUresult (*load)(CUlibrary *, const void *, CUjit_option *, void **, unsigned,
		CUlibraryOption *, void **, unsigned);
	CUresult (*kernel)(CUkernel *, CUlibrary, const char *);
	CUresult (*function)(CUfunction *, CUkernel);
	struct {
		CUcontext context;
		unsigned kernel;
	} uses[USES_MAX];
	unsigned use_count;
} code = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * Loads the module once.  False if the driver lacks a function for this, which is no error.
 * Precondition: locked.
 */
static bool open_code(void)
{
	CUresult (*mode)(CUmoduleLoadingMode *) = NULL;
	CUmoduleLoadingMode found = CU_MODULE_EAGER_LOADING;
	if (code.asked)
		return code.library != NULL;
	code.asked = true;
	*(void **)&code.load = ckt_softlib_symbol("cuLibraryLoadData");
	*(void **)&code.kernel = ckt_softlib_symbol("cuLibraryGetKernel");
	*(void **)&code.function = ckt_softlib_symbol("cuKernelGetFunction");
	*(void **)&mode = ckt_softlib_symbol("cuModuleGetLoadingMode");
	if (!code.load || !code.kernel || !code.function || !mode || mode(&found))
		return false;
	code.eager = found == CU_MODULE_EAGER_LOADING;
	CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
	void *values[] = {(void *)(uintptr_t)1};
	if (code.load(&code.library, ptx, NULL, NULL, 0, options, values, 1))
		code.library = NULL;
	return code.library != NULL;
}

static bool is_used(CUcontext context, unsigned kernel)
{
	for (unsigned i = 0; i < code.use_count; i++)
		if (code.uses[i].context == context && code.uses[i].kernel == kernel)
			return true;
	return false;
}

void ckt_softlib_code_begin(void)
{
	pthread_mutex_lock(&code.lock);
	/* This loads only the library.  A lazy driver loads each kernel on its first use. */
	open_code();
	pthread_mutex_unlock(&code.lock);
}

void ckt_softlib_code_use(void (*run)(const void *data))
{
	CUcontext context;
	char name[32];
	CUkernel kernel;
	CUfunction function;
	/*
	 * The kernel's number comes from the function's offset in its file, so it is the same in
	 * every process.
	 */
	Dl_info info;
	if (ckt_softlib_context(&context) || !dladdr(*(void **)&run, &info))
		return;
	unsigned number = (unsigned)(((uintptr_t)run - (uintptr_t)info.dli_fbase) >> 4) % KERNELS;
	pthread_mutex_lock(&code.lock);
	if (open_code() && !is_used(context, number) && code.use_count < USES_MAX) {
		snprintf(name, sizeof name, "soft_kernel_%u", number);
		if (!code.kernel(&kernel, code.library, name))
			code.function(&function, kernel);
		code.uses[code.use_count].context = context;
		code.uses[code.use_count++].kernel = number;
	}
	pthread_mutex_unlock(&code.lock);
}
