/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcricket-client.so, the library to name in LD_PRELOAD.  Its dependencies do the work:
 * libcricket-patch.so redirects static runtimes, our libcudart.so.13, libcuda.so.1 and
 * libnvidia-ml.so.1 stand for the shared ones.  It exports what system_calls.c and dlopen.c have
 * and nothing else, starts nothing and connects to nothing.
 *
 * Its SONAME is libcudart.so.13.  The loader maps preloaded libraries first, but what they need
 * only after what the program needs; so a program linked with a shared runtime would find NVIDIA's,
 * or none and not start at all, before ours is mapped.  A preloaded library with the SONAME settles
 * the name.  Our real libcudart.so.13 is then needed by path ($ORIGIN/...), because the name alone
 * would mean this file. A program linked directly with libcuda.so.1 needs cricket-run, which
 * preloads that library too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/preload/dlopen.h"
#include "client/preload/device_files.h"
#include "client/patch/libraries.h"

/* Triton looks for libcuda.so.1 in the file system instead of opening it by name. */
static void tell_triton(void)
{
	char path[PATH_MAX];
	Dl_info info;

	if (dladdr((void *)tell_triton, &info) && info.dli_fname &&
		realpath(info.dli_fname, path)) {
		*strrchr(path, '/') = 0;
		setenv("TRITON_LIBCUDA_PATH", path, 0);
	}
}

/*
 * Python's frameworks look for a GPU in ways of their own.  Any other program is left as it was
 * until it opens a library.
 */
__attribute__((constructor)) static void prepare(int argc, char **argv, char **environment)
{
	int saved = errno;

	ckt_patch_libraries_init((const void *)prepare, environment);
	ckt_dlopen_init(environment);
	if (strncmp(program_invocation_short_name, "python", 6) == 0) {
		tell_triton();
		ckt_preload_files_redirect_python();
	}
	errno = saved;
}
