/* SPDX-License-Identifier: Apache-2.0 */
/* Genuine libraries, opened when they are first used; see libs.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/worker/libs/genuine.h"
#include "server/worker/libs/libs.h"
#include "server/worker/worker.h"

static struct ckt_library_loaded loaded[CKT_LIB_COUNT];

const struct ckt_library_loaded *ckt_library_loaded(enum ckt_lib lib)
{
	return &loaded[lib];
}

static void find_functions(const struct ckt_library_functions *functions, void *handle)
{
	for (unsigned i = 0; i < functions->count; i++)
		functions->entries[i] = dlsym(handle, functions->names[i]);
}

CUresult ckt_library_open(struct ckt_worker *worker, const struct ckt_library *library,
	uint32_t version, char *ret_message, size_t message_size)
{
	struct ckt_library_loaded *state = &loaded[library->lib];
	if (state->open)
		return CUDA_SUCCESS;
	unsigned unit = library->version_unit ? library->version_unit : 10000;
	const struct ckt_genuine *genuine;
	char wanted[CKT_SEARCH_VERSION_MAX] = "";
	/* File names also carry a build number, so the client's version is a prefix. */
	if (version)
		snprintf(wanted, sizeof wanted, "%u.%u.%u", version / unit, version % unit / 100,
			version % 100);
	if (ckt_genuine_open(worker, library->soname, version / unit, wanted, &genuine, ret_message,
		    message_size))
		return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
	snprintf(state->file, sizeof state->file, "%s", genuine->found.path);
	state->major = genuine->found.major;
	find_functions(library->functions, genuine->handle);
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
		/* A program asks again with each of its calls, so each library is logged once. */
		static bool said[CKT_LIB_COUNT];
		if (!said[library->lib]) {
			ckt_log_user("%s", message);
			ckt_warning("%s", message);
		}
		said[library->lib] = true;
		return result;
	}
	ckt_put_u32(ckt_wcall_results(call, 4), loaded[library->lib].version);
	return CUDA_SUCCESS;
}
