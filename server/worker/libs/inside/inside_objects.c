/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, modules and limits of libraries; see inside.h. */
#include "server/worker/driver.h"
#include "checkpoint/journal.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/objects/counted_handles.h"
#include "server/worker/worker.h"

/* The context is the executor's current one, so its journal can count what is made in it. */
static bool may_count(void)
{
	CUcontext current;
	const struct ckt_object *object = ckt_inside_has_tables() ? ckt_worker.current : NULL;
	return object && !ckt_driver.cuCtxGetCurrent(&current) && current == object->real;
}

/* Leaves a note, for a thread that must not touch the journal. */
static void note(enum ckt_inside_note_kind kind, CUcontext context, unsigned flags, int priority)
{
	if (context || !ckt_driver.cuCtxGetCurrent(&context))
		ckt_inside_note((struct ckt_inside_note){
			.kind = kind, .context = context, .flags = flags, .priority = priority});
}

/*
 * ---- Streams and events: the first ones move what the driver places later, so the journal records
 * them
 */

static CUresult create_stream(CUstream *stream, unsigned flags, int priority)
{
	if (!stream)
		return CUDA_ERROR_INVALID_VALUE;
	bool counts = may_count();
	CUresult result = counts ? ckt_counted_stream_create(&ckt_worker, flags, priority, stream)
				 : ckt_driver.cuStreamCreateWithPriority(stream, flags, priority);
	if (!result)
		ckt_inside_count_streams(1);
	if (!result && !counts)
		note(CKT_NOTE_STREAM, NULL, flags, priority);
	return result;
}

static CUresult CUDAAPI stream_create(CUstream *stream, unsigned flags)
{
	return create_stream(stream, flags, 0);
}

static CUresult CUDAAPI stream_create_with_priority(CUstream *stream, unsigned flags, int priority)
{
	return create_stream(stream, flags, priority);
}

static CUresult CUDAAPI stream_destroy(CUstream stream)
{
	CUcontext context = NULL;
	CUresult result = ckt_driver.cuStreamGetCtx(stream, &context);
	bool counted = !result && may_count() && context == ckt_worker.current->real;
	if (counted)
		ckt_counted_stream_destroy(&ckt_worker, ckt_worker.current->id, stream);
	else
		result = ckt_driver.cuStreamDestroy_v2(stream);
	if (!result)
		ckt_inside_count_streams(-1);
	if (!result && !counted)
		note(CKT_NOTE_STREAM_END, context, 0, 0);
	return result;
}

static CUresult CUDAAPI event_create(CUevent *event, unsigned flags)
{
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	bool counts = may_count();
	CUresult result = counts ? ckt_counted_event_create(&ckt_worker, flags, event)
				 : ckt_driver.cuEventCreate(event, flags);
	if (!result)
		ckt_inside_count_events(1);
	if (!result && !counts)
		note(CKT_NOTE_EVENT, NULL, flags, 0);
	return result;
}

/* An event does not reveal its context; a library makes and destroys its events in one context. */
static CUresult CUDAAPI event_destroy(CUevent event)
{
	CUresult result = CUDA_SUCCESS;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	bool counted = may_count();
	if (counted)
		ckt_counted_event_destroy(&ckt_worker, ckt_worker.current->id, event);
	else
		result = ckt_driver.cuEventDestroy_v2(event);
	if (!result)
		ckt_inside_count_events(-1);
	if (!result && !counted)
		note(CKT_NOTE_EVENT_END, NULL, 0, 0);
	return result;
}

static CUresult CUDAAPI set_limit(CUlimit limit, size_t value)
{
	static CUresult(CUDAAPI * real)(CUlimit, size_t);
	if (may_count())
		return ckt_driver.cuCtxSetLimit(limit, value);
	/* ckt_driver's entry also writes the journal, which only the executor may do. */
	if (!real)
		*(void **)&real = ckt_inside_real("cuCtxSetLimit");
	return real(limit, value);
}

/*
 * ---- Devices: the session's devices and numbers, even if the process sees more
 * (session_devices.h)
 */

static CUresult CUDAAPI device_count(int *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (int)ckt_worker.device_count;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI device_get(CUdevice *device, int ordinal)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (ordinal < 0 || ordinal >= (int)ckt_worker.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ckt_worker.devices[ordinal].ordinal;
	return CUDA_SUCCESS;
}

/*
 * ---- Modules: the driver places them in the order of these calls
 */

static CUresult counted(CUresult result)
{
	if (!result)
		ckt_inside_count_modules();
	return result;
}

static CUresult CUDAAPI module_load(CUmodule *module, const char *file)
{
	return counted(ckt_driver.cuModuleLoad(module, file));
}

static CUresult CUDAAPI module_load_data(CUmodule *module, const void *image)
{
	return counted(ckt_driver.cuModuleLoadData(module, image));
}

static CUresult CUDAAPI module_load_data_ex(
	CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values)
{
	return counted(ckt_driver.cuModuleLoadDataEx(module, image, count, options, values));
}

static CUresult CUDAAPI module_load_fat_binary(CUmodule *module, const void *binary)
{
	return counted(ckt_driver.cuModuleLoadFatBinary(module, binary));
}

static CUresult CUDAAPI library_load_data(CUlibrary *library, const void *code,
	CUjit_option *options, void **values, unsigned count, CUlibraryOption *library_options,
	void **library_values, unsigned library_count)
{
	return counted(ckt_driver.cuLibraryLoadData(library, code, options, values, count,
		library_options, library_values, library_count));
}

static CUresult CUDAAPI library_load_from_file(CUlibrary *library, const char *file,
	CUjit_option *options, void **values, unsigned count, CUlibraryOption *library_options,
	void **library_values, unsigned library_count)
{
	return counted(ckt_driver.cuLibraryLoadFromFile(library, file, options, values, count,
		library_options, library_values, library_count));
}

const struct ckt_inside_hook ckt_inside_object_hooks[] = {
	{"cuStreamCreate", (void *)stream_create},
	{"cuStreamCreateWithPriority", (void *)stream_create_with_priority},
	{"cuStreamDestroy_v2", (void *)stream_destroy},
	{"cuEventCreate", (void *)event_create},
	{"cuEventDestroy_v2", (void *)event_destroy},
	{"cuCtxSetLimit", (void *)set_limit},
	{"cuDeviceGetCount", (void *)device_count},
	{"cuDeviceGet", (void *)device_get},
	{"cuModuleLoad", (void *)module_load},
	{"cuModuleLoadData", (void *)module_load_data},
	{"cuModuleLoadDataEx", (void *)module_load_data_ex},
	{"cuModuleLoadFatBinary", (void *)module_load_fat_binary},
	{"cuLibraryLoadData", (void *)library_load_data},
	{"cuLibraryLoadFromFile", (void *)library_load_from_file},
	{NULL, NULL},
};
