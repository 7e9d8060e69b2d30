/*
 * libcricket-patch.so: linked with -z initfirst, so that its constructor runs before any other of the process, when every library the program
 * needs is mapped and relocated and none has run yet.  It redirects the static CUDA runtimes among them (redirect.h), and NVRTC on the soft GPU (nvrtc.h), and does nothing else.
 * libc's own constructor has not run either: no malloc, no getenv, and the environment comes as an argument.
 */
#include <errno.h>

#include "client/patch/nvrtc.h"
#include "client/patch/redirect.h"
#include "client/patch/say.h"

enum { SUSPECTS_MAX = 64 };

struct walk {
	struct ckt_runtime runtime;
	struct ckt_object suspects[SUSPECTS_MAX];
	unsigned count;
	bool wants_ptx;
};

static int visit(struct dl_phdr_info *info, size_t size, void *opaque)
{
	struct walk *walk = opaque;
	struct ckt_object object;

	ckt_object_from_info(&object, info);
	if (!walk->runtime.found && ckt_runtime_recognise(&walk->runtime, &object))
		return 0;
	if (walk->wants_ptx && ckt_nvrtc_redirect(&object))
		return 0;
	if (walk->count < SUSPECTS_MAX && ckt_redirect_suspect(&object))
		walk->suspects[walk->count++] = object;
	return 0;
}

__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
	static struct walk walk;
	int saved = errno;

	walk.wants_ptx = ckt_nvrtc_wanted(environment);
	if (walk.wants_ptx)
		ckt_say_init(environment);
	dl_iterate_phdr(visit, &walk);
	if (walk.count && walk.runtime.found) {
		ckt_say_init(environment);
		for (unsigned i = 0; i < walk.count; i++)
			ckt_redirect_object(&walk.suspects[i], &walk.runtime);
	}
	errno = saved;
}
