/* Genuine libraries, opened when they are first used; see libs.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "rpc/log.h"
#include "server/worker/libs/libs.h"
#include "server/worker/worker.h"

/* Majors of the CUDA 12 and 13 toolkits' libraries; the client's own comes first. */
enum { MAJOR_MAX = 13, MAJOR_MIN = 9 };

static struct ckt_library_loaded loaded[CKT_LIB_COUNT];

const struct ckt_library_loaded *ckt_library_loaded(enum ckt_lib lib)
{
	return &loaded[lib];
}

static void *open_major(const struct ckt_library *library, unsigned major, struct ckt_library_loaded *ret)
{
	snprintf(ret->file, sizeof ret->file, "%s.%u", library->soname, major);
	ret->major = major;
	return dlopen(ret->file, RTLD_NOW | RTLD_LOCAL);
}

static void find_functions(const struct ckt_library_functions *functions, void *handle)
{
	for (unsigned i = 0; i < functions->count; i++)
		functions->entries[i] = dlsym(handle, functions->names[i]);
}

CUresult ckt_library_open(struct ckt_worker *worker, const struct ckt_library *library, uint32_t version, char *ret_message, size_t message_size)
{
	struct ckt_library_loaded *state = &loaded[library->lib];
	if (state->open)
		return CUDA_SUCCESS;
	unsigned wanted = version / 10000;
	void *handle = wanted >= MAJOR_MIN && wanted <= MAJOR_MAX ? open_major(library, wanted, state) : NULL;
	for (unsigned major = MAJOR_MAX; !handle && major >= MAJOR_MIN; major--)
		handle = open_major(library, major, state);
	if (!handle) {
		const char *cause = dlerror();
		snprintf(ret_message, message_size, "the server has no %s: %s", library->soname, cause ? cause : "not found");
		return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
	}
	find_functions(library->functions, handle);
	state->version = library->version ? library->version() : 0;
	state->open = true;
	ckt_info("%s: version %u", state->file, state->version);
	return CUDA_SUCCESS;
}

int ckt_library_open_call(struct ckt_wcall *call, const struct ckt_library *library)
{
	char message[1024] = "";
	uint32_t version = ckt_get_u32(&call->args);
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_library_open(call->worker, library, version, message, sizeof message);
	if (result) {
		ckt_log_user("%s", message);
		ckt_warning("%s", message);
		return result;
	}
	ckt_put_u32(ckt_wcall_results(call, 4), loaded[library->lib].version);
	return CUDA_SUCCESS;
}
