/* The tables behind code.h; see code_table.h. */
#include "server/worker/libs/code_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/grow.h"
#include "server/worker/worker.h"

/* Of a library's code, what tells it from another build's. */
enum { BEGINNING = 4096, NONE = -1 };

struct loaded {
	CUlibrary library;
	uint32_t code;
};
struct module {
	CUmodule module;
	CUcontext context;
	uint32_t code;
	bool ahead;
};
struct touched {
	CUcontext context;
	const void *handle;		/* NULL: free */
	CUlibrary library;
};

static struct {
	pthread_mutex_t lock;
	struct ckt_code *codes;
	size_t code_count, code_room;
	struct ckt_code_use *uses;
	size_t use_count, use_room;
	struct loaded *loaded;
	size_t loaded_count, loaded_room;
	struct ckt_code_kernel *kernels;
	size_t kernel_count, kernel_room;
	struct module *modules;
	size_t module_count, module_room;
	/* Open addressing, at most half full; looked at before every launch of a library. */
	struct touched *touched;
	size_t touched_count, touched_room;
} code = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ckt_code_lock(void)
{
	pthread_mutex_lock(&code.lock);
}

void ckt_code_unlock(void)
{
	pthread_mutex_unlock(&code.lock);
}

/* ---- Code */

uint32_t ckt_code_count(void)
{
	return (uint32_t)code.code_count;
}

struct ckt_code *ckt_code_entry(uint32_t index)
{
	return &code.codes[index];
}

bool ckt_code_add_known(const struct ckt_code *wanted, uint32_t *ret_code)
{
	for (size_t i = 0; i < code.code_count; i++) {
		struct ckt_code *have = &code.codes[i];
		if (have->offset == wanted->offset && have->size == wanted->size && !strcmp(have->file, wanted->file) &&
		    !memcmp(have->hash, wanted->hash, sizeof have->hash) && have->preserved == wanted->preserved && have->own == wanted->own) {
			*ret_code = (uint32_t)i;
			return true;
		}
	}
	if (CKT_GROW(code.codes, code.code_count, code.code_room, 64))
		return false;
	code.codes[code.code_count] = *wanted;
	*ret_code = (uint32_t)code.code_count++;
	return true;
}

bool ckt_code_add(const struct ckt_code_place *place, bool preserved, bool own, uint32_t *ret_code)
{
	struct ckt_code wanted = {.offset = place->offset, .size = place->size, .preserved = preserved, .own = own};
	bool in_file = place->file[0];
	if (in_file)
		strcpy(wanted.file, place->file);
	else
		wanted.offset = 0;
	ckt_hash(place->data, in_file && place->size > BEGINNING ? BEGINNING : place->size, wanted.hash);
	if (!ckt_code_add_known(&wanted, ret_code))
		return false;
	struct ckt_code *entry = &code.codes[*ret_code];
	/* The library may free it before it is used. */
	if (!in_file && !entry->bytes && !entry->kept) {
		entry->bytes = malloc(place->size);
		if (entry->bytes)
			memcpy(entry->bytes, place->data, place->size);
	}
	return true;
}

CUlibrary ckt_code_take_ahead(uint32_t index)
{
	struct ckt_code *entry = &code.codes[index];
	if (!entry->ahead || entry->own || entry->handed)
		return NULL;
	entry->handed = true;
	return entry->ahead;
}

/* ---- Uses */

bool ckt_code_use_add(enum ckt_code_use_kind kind, uint32_t index, const char *symbol, uint32_t *ret_use)
{
	char *copy = strdup(symbol);
	if (!copy || CKT_GROW(code.uses, code.use_count, code.use_room, 256)) {
		free(copy);
		return false;
	}
	code.uses[code.use_count] = (struct ckt_code_use){kind, index, copy};
	*ret_use = (uint32_t)code.use_count++;
	return true;
}

uint32_t ckt_code_use_count(void)
{
	return (uint32_t)code.use_count;
}

const struct ckt_code_use *ckt_code_use_at(uint32_t use)
{
	return &code.uses[use];
}

void ckt_code_keep(struct ckt_worker *worker, uint32_t use)
{
	uint8_t hash[CKT_HASH_SIZE];
	pthread_mutex_lock(&code.lock);
	struct ckt_code *entry = &code.codes[code.uses[use].code];
	uint8_t *bytes = entry->bytes;
	uint64_t size = entry->size;
	entry->bytes = NULL;
	entry->kept |= bytes != NULL;
	pthread_mutex_unlock(&code.lock);
	if (bytes)
		ckt_blobs_add(&worker->blobs, bytes, size, hash);
	free(bytes);
}

/* ---- What was touched */

static size_t slot_of(CUcontext context, const void *handle)
{
	uint64_t key = ((uint64_t)(uintptr_t)handle ^ (uint64_t)(uintptr_t)context << 1) * 0x9e3779b97f4a7c15;
	size_t i = (key >> 20) & (code.touched_room - 1);
	while (code.touched[i].handle && (code.touched[i].handle != handle || code.touched[i].context != context))
		i = (i + 1) & (code.touched_room - 1);
	return i;
}

bool ckt_code_touched(CUcontext context, const void *handle)
{
	return code.touched_room && code.touched[slot_of(context, handle)].handle;
}

/* Without memory what is there stays: a use is then noted twice. */
static void rebuild(size_t room, CUcontext without_context, CUlibrary without_library)
{
	struct touched *old = code.touched;
	size_t old_room = code.touched_room;
	struct touched *list = calloc(room, sizeof *list);
	if (!list)
		return;
	code.touched = list;
	code.touched_room = room;
	code.touched_count = 0;
	for (size_t i = 0; i < old_room; i++) {
		if (!old[i].handle || (without_context && old[i].context == without_context) || (without_library && old[i].library == without_library))
			continue;
		code.touched[slot_of(old[i].context, old[i].handle)] = old[i];
		code.touched_count++;
	}
	free(old);
}

void ckt_code_touch(CUcontext context, const void *handle, CUlibrary library)
{
	if (2 * (code.touched_count + 1) > code.touched_room)
		rebuild(code.touched_room ? 2 * code.touched_room : 256, NULL, NULL);
	if (code.touched_count + 1 >= code.touched_room)
		return;
	struct touched *place = &code.touched[slot_of(context, handle)];
	code.touched_count += !place->handle;
	*place = (struct touched){context, handle, library};
}

/* ---- Libraries and their kernels */

bool ckt_code_library_add(CUlibrary library, uint32_t index)
{
	if (CKT_GROW(code.loaded, code.loaded_count, code.loaded_room, 64))
		return false;
	code.loaded[code.loaded_count++] = (struct loaded){library, index};
	return true;
}

bool ckt_code_library_find(CUlibrary library, uint32_t *ret_code)
{
	for (size_t i = 0; i < code.loaded_count; i++)
		if (code.loaded[i].library == library) {
			*ret_code = code.loaded[i].code;
			return true;
		}
	return false;
}

bool ckt_code_library_of(uint32_t index, CUlibrary *ret_library)
{
	for (size_t i = 0; i < code.loaded_count; i++)
		if (code.loaded[i].code == index) {
			*ret_library = code.loaded[i].library;
			return true;
		}
	return false;
}

bool ckt_code_library_drop(CUlibrary library, uint32_t *ret_code, bool *ret_used)
{
	size_t before = code.touched_count;
	bool found = false;
	for (size_t i = code.loaded_count; i-- > 0;)
		if (code.loaded[i].library == library) {
			*ret_code = code.loaded[i].code;
			code.loaded[i] = code.loaded[--code.loaded_count];
			found = true;
		}
	if (!found)
		return false;
	for (size_t i = code.kernel_count; i-- > 0;)
		if (code.kernels[i].library == library) {
			free(code.kernels[i].name);
			code.kernels[i] = code.kernels[--code.kernel_count];
		}
	if (code.touched_room)
		rebuild(code.touched_room, NULL, library);
	*ret_used = code.touched_count != before;
	struct ckt_code *entry = &code.codes[*ret_code];
	if (entry->ahead == library) {
		entry->ahead = NULL;
		entry->handed = false;
	}
	return true;
}

void ckt_code_kernel_add(CUkernel kernel, CUlibrary library, const char *name)
{
	uint32_t index;
	if (!ckt_code_library_find(library, &index) || ckt_code_kernel_find(kernel))
		return;
	char *copy = strdup(name);
	if (!copy || CKT_GROW(code.kernels, code.kernel_count, code.kernel_room, 256)) {
		free(copy);
		return;
	}
	code.kernels[code.kernel_count++] = (struct ckt_code_kernel){kernel, library, index, copy};
}

const struct ckt_code_kernel *ckt_code_kernel_find(const void *handle)
{
	for (size_t i = 0; i < code.kernel_count; i++)
		if ((const void *)code.kernels[i].kernel == handle)
			return &code.kernels[i];
	return NULL;
}

/* ---- Modules */

static bool module_add(CUmodule module, CUcontext context, uint32_t index, bool ahead)
{
	if (CKT_GROW(code.modules, code.module_count, code.module_room, 16))
		return false;
	code.modules[code.module_count++] = (struct module){module, context, index, ahead};
	return true;
}

bool ckt_code_module_add(CUmodule module, CUcontext context, uint32_t index)
{
	return module_add(module, context, index, false);
}

bool ckt_code_ahead_module_add(uint32_t index, CUcontext context, CUmodule module)
{
	return module_add(module, context, index, true);
}

CUmodule ckt_code_take_ahead_module(uint32_t index, CUcontext context)
{
	for (size_t i = 0; i < code.module_count; i++)
		if (code.modules[i].ahead && code.modules[i].code == index && code.modules[i].context == context && !code.codes[index].own) {
			code.modules[i].ahead = false;
			return code.modules[i].module;
		}
	return NULL;
}

bool ckt_code_module_drop(CUmodule module, uint32_t *ret_code)
{
	for (size_t i = 0; i < code.module_count; i++)
		if (code.modules[i].module == module) {
			*ret_code = code.modules[i].code;
			code.modules[i] = code.modules[--code.module_count];
			return true;
		}
	return false;
}

void ckt_code_forget_context(CUcontext context)
{
	pthread_mutex_lock(&code.lock);
	for (size_t i = code.module_count; i-- > 0;)
		if (code.modules[i].context == context)
			code.modules[i] = code.modules[--code.module_count];
	if (code.touched_room)
		rebuild(code.touched_room, context, NULL);
	pthread_mutex_unlock(&code.lock);
}
