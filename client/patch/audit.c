/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcricket-audit.so: an rtld audit module (LD_AUDIT, set by cricket-run).  It redirects the
 * static CUDA runtimes of libraries that the program opens with dlopen.  The loader calls
 * la_activity(LA_ACT_CONSISTENT) when a group of libraries is mapped, before any of their
 * constructors. libcricket-patch.so handles what the program itself needs: it is done before the
 * second consistent state.  If a library has a shim (libraries.h), this module answers the loader's
 * search with the shim, also for libraries that the program itself needs.
 *
 *	la_objsearch(libcublas.so.13 or a path) -> the shim's path
 *	la_activity(ADD) -> la_objopen ... -> la_activity(CONSISTENT): patch what was opened since the last one
 *
 * Threading: the loader holds its lock around every call here.  The module is in a namespace with
 * its own libc.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/patch/libraries.h"
#include "client/patch/nvrtc.h"
#include "client/patch/redirect.h"
#include "client/patch/patch_log.h"

enum { PENDING_MAX = 4096, SUSPECTS_MAX = 256 };

static struct ckt_runtime runtime;
static struct ckt_loaded_object suspects[SUSPECTS_MAX];
static const struct link_map *pending_maps[PENDING_MAX];
static unsigned pending_count;
static bool started, wants_ptx;

__attribute__((visibility("default"))) unsigned la_version(unsigned version)
{
	ckt_patch_log_init(environ);
	ckt_patch_libraries_init((const void *)la_version, environ);
	wants_ptx = ckt_nvrtc_wanted(environ);
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/*
 * Answers only for the original name, as the program or a library gives it.  The loader later also
 * asks for each place where it looks for that name.
 */
__attribute__((visibility("default"))) char *la_objsearch(
	const char *name, uintptr_t *cookie, unsigned flag)
{
	const char *shim = flag == LA_SER_ORIG ? ckt_patch_library_shim(name) : NULL;

	if (shim && strcmp(shim, name) != 0)
		ckt_patch_log_debug("%s is taken for %s", shim, name);
	return (char *)(shim ? shim : name);
}

/* Returns no flags: no PLT calls are traced, so nothing slows down. */
__attribute__((visibility("default"))) unsigned la_objopen(
	struct link_map *map, Lmid_t namespace_id, uintptr_t *cookie)
{
	ckt_patch_library_loaded(map->l_name);
	if (pending_count < PENDING_MAX)
		pending_maps[pending_count++] = map;
	return 0;
}

__attribute__((visibility("default"))) unsigned la_objclose(uintptr_t *cookie)
{
	const struct link_map *map = (const struct link_map *)*cookie;

	/*
	 * The cookie is the map unless another audit module changed it.  A failed open closes its
	 * libraries before the consistent state.
	 */
	for (unsigned i = 0; i < pending_count; i++)
		if (pending_maps[i] == map)
			pending_maps[i] = NULL;
	if (runtime.found && map && map->l_addr == runtime.object.base)
		runtime.found = false;
	return 0;
}

static void treat_pending(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < pending_count; i++) {
		struct ckt_loaded_object object;

		if (!pending_maps[i] || !ckt_loaded_object_from_link_map(&object, pending_maps[i]))
			continue;
		if (!runtime.found && ckt_patch_runtime_recognise(&runtime, &object))
			continue;
		if (started && wants_ptx && ckt_nvrtc_redirect(&object))
			continue;
		if (started && count < SUSPECTS_MAX && ckt_redirect_suspect(&object))
			suspects[count++] = object;
	}
	pending_count = 0;
	for (unsigned i = 0; i < count && runtime.found; i++)
		ckt_redirect_object(&suspects[i], &runtime);
}

__attribute__((visibility("default"))) void la_activity(uintptr_t *cookie, unsigned flag)
{
	int saved = errno;

	if (flag == LA_ACT_CONSISTENT && pending_count) {
		treat_pending();
		started = true;
	}
	errno = saved;
}
