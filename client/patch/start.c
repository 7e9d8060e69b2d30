/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcricket-patch.so: linked with -z initfirst, so that its constructor runs before any other in
 * the process.  At that time every library that the program needs is mapped and relocated.  The
 * constructor redirects static CUDA runtimes (redirect.h), NVRTC on the soft GPU (nvrtc.h), and
 * libraries that have a shim (takeover.h).  It does nothing else. libc's own constructor has not
 * run either: no malloc, no getenv, and the environment comes as an argument.
 */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "client/patch/libraries.h"
#include "client/patch/nvrtc.h"
#include "client/patch/redirect.h"
#include "client/patch/patch_log.h"
#include "client/patch/takeover.h"

enum { SUSPECTS_MAX = 64, GENUINE_MAX = 32 };

struct walk {
	struct ckt_runtime runtime;
	struct ckt_loaded_object suspects[SUSPECTS_MAX];
	unsigned count;
	struct ckt_loaded_object genuine[GENUINE_MAX]; /* libraries that can have a shim */
	unsigned genuine_count;
	bool wants_ptx;
};

static bool can_have_shim(const struct ckt_loaded_object *object)
{
	struct ckt_dynamic dynamic;

	return ckt_loaded_object_dynamic(object, &dynamic) && dynamic.soname &&
		ckt_patch_library_known(dynamic.soname);
}

static int visit(struct dl_phdr_info *info, size_t size, void *opaque)
{
	struct walk *walk = opaque;
	struct ckt_loaded_object object;

	ckt_loaded_object_from_info(&object, info);
	if (!walk->runtime.found && ckt_patch_runtime_recognise(&walk->runtime, &object))
		return 0;
	if (walk->wants_ptx && ckt_nvrtc_redirect(&object))
		return 0;
	if (walk->count < SUSPECTS_MAX && ckt_redirect_suspect(&object))
		walk->suspects[walk->count++] = object;
	if (walk->genuine_count < GENUINE_MAX && can_have_shim(&object))
		walk->genuine[walk->genuine_count++] = object;
	return 0;
}

static bool is_same_file(const char *one, const char *other)
{
	struct stat a, b;

	return one && other && stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

/*
 * With an audit module, or if the shims are in LD_LIBRARY_PATH, the loader has already found the
 * shim.
 */
static void take_over(const struct walk *walk, char **environment)
{
	char shim[PATH_MAX];

	ckt_patch_libraries_init((const void *)take_over, environment);
	for (unsigned i = 0; i < walk->genuine_count; i++) {
		struct ckt_dynamic dynamic;

		if (ckt_loaded_object_dynamic(&walk->genuine[i], &dynamic) &&
			ckt_patch_library_path(dynamic.soname, shim) &&
			!is_same_file(ckt_loaded_object_file(&walk->genuine[i]), shim))
			ckt_takeover_object(&walk->genuine[i]);
	}
}

__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
	static struct walk walk;
	int saved = errno;

	walk.wants_ptx = ckt_nvrtc_wanted(environment);
	if (walk.wants_ptx)
		ckt_patch_log_init(environment);
	dl_iterate_phdr(visit, &walk);
	if (walk.count && walk.runtime.found) {
		ckt_patch_log_init(environment);
		for (unsigned i = 0; i < walk.count; i++)
			ckt_redirect_object(&walk.suspects[i], &walk.runtime);
	}
	if (walk.genuine_count) {
		ckt_patch_log_init(environment);
		take_over(&walk, environment);
	}
	errno = saved;
}
