/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See dlopen.h.
 */
#include "client/preload/dlopen.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "client/patch/libraries.h"
#include "client/preload/needed.h"
#include "client/patch/patch_log.h"

typedef void *dlopen_function(const char *name, int flags);

static void *first_call(const char *name, int flags);

/* Read by the entry below.  The first call finds the real dlopen. */
__attribute__((visibility("hidden"))) _Atomic(dlopen_function *) ckt_dlopen_next = first_call;
static bool on;

/* The jump keeps the caller's arguments and return address; only the name may change. */
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	".p2align 4\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	movq	(%rsp), %rdx\n"
	"	pushq	%rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	ckt_dlopen_name\n"
	"	popq	%rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	movq	%rax, %rdi\n"
	"	jmp	*ckt_dlopen_next(%rip)\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n");

static dlopen_function *real_dlopen(void)
{
	dlopen_function *next = atomic_load(&ckt_dlopen_next);

	if (next == first_call) {
		next = (dlopen_function *)dlsym(RTLD_NEXT, "dlopen");
		if (next)
			atomic_store(&ckt_dlopen_next, next);
	}
	return next;
}

/* Called only if the program has no other dlopen: a glibc before 2.34 without libdl.so.2. */
static void *first_call(const char *name, int flags)
{
	dlopen_function *next = real_dlopen();

	return next && next != first_call ? next(name, flags) : NULL;
}

static bool has_audit(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (strncmp(*environment, "LD_AUDIT=", 9) == 0 &&
			strstr(*environment, "libcricket-audit.so"))
			return true;
	return false;
}

void ckt_dlopen_init(char *const *environment)
{
	ckt_patch_log_init((char **)environment);
	on = !has_audit(environment);
}

/*
 * Opens the shim of a needed library first, so that its SONAME is already loaded when the loader
 * looks for it.
 */
static bool open_needed(const char *soname, void *opaque)
{
	const char *shim = ckt_patch_library_shim(soname);

	if (!shim)
		return false;
	/*
	 * RTLD_NOW: the relocations of later libraries need the whole shim.  RTLD_LOCAL: the
	 * library that needs the shim adds it to its own scope.
	 */
	if (!real_dlopen()(shim, RTLD_NOW | RTLD_LOCAL))
		ckt_patch_log("cannot open %s, which %s needs: %s", shim, (const char *)opaque,
			dlerror());
	else
		ckt_patch_log_debug(
			"%s is taken for %s, which %s needs", shim, soname, (const char *)opaque);
	ckt_patch_library_loaded(shim);
	return true;
}

static bool is_open(const char *path)
{
	void *handle = real_dlopen()(path, RTLD_LAZY | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle != NULL;
}

const char *ckt_dlopen_name(const char *name, int flags, const void *caller)
{
	int saved = errno;
	const char *shim;
	struct link_map *map = NULL;
	Dl_info info;

	if (!real_dlopen() || !on || !name || !name[0])
		return name;
	shim = ckt_patch_library_shim(name);
	if (shim) {
		/*
		 * NVIDIA's library may be loaded instead: the program was linked with it, and its
		 * functions jump to the shim (takeover.h).
		 */
		if ((flags & RTLD_NOLOAD) && !is_open(shim))
			shim = name;
		else if (strcmp(shim, name) != 0)
			ckt_patch_log_debug("%s is taken for %s", shim, name);
		ckt_patch_library_loaded(shim);
	} else if (!(flags & RTLD_NOLOAD)) {
		if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP))
			map = NULL;
		ckt_needed_walk(name, map, open_needed, (void *)name);
	}
	errno = saved;
	return shim ? shim : name;
}
