/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcricket-client.so, the library to name in LD_PRELOAD.  Its dependencies do the work.
 * libcricket-patch.so redirects static runtimes.  Our libcudart.so.13, libcuda.so.1 and
 * libnvidia-ml.so.1 replace the shared libraries.  This library exports only the functions of
 * system_calls.c and dlopen.c.  It starts no thread or process, and opens no connection.
 *
 * Its SONAME is libcudart.so.13.  The loader maps preloaded libraries first, but maps their
 * dependencies after those of the program.  So a program linked with a shared runtime would load
 * NVIDIA's runtime before ours, or would not start without one.  A preloaded library with this
 * SONAME prevents that.  It needs our real libcudart.so.13 by path ($ORIGIN/...), because the plain
 * name would mean this file.  A program linked directly with libcuda.so.1 needs cricket-run, which
 * also preloads that library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/preload/dlopen.h"
#include "client/preload/device_files.h"
#include "client/patch/libraries.h"

/* Triton searches the file system for libcuda.so.1 and does not open it by name. */
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
 * Python's frameworks detect GPUs in their own ways.  Any other program is unchanged until it opens
 * a library.
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
