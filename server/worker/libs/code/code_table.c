/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind code.h; see code_table.h. */
#include "server/worker/libs/code/code_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/session/host_budget.h"
#include "base/grow.h"
#include "server/worker/libs/id_map.h"
#include "server/worker/worker.h"

/* The part of a library's code that tells it from another build's. */
enum { BEGINNING = 4096 };

struct loaded {
	CUlibrary library;
	uint32_t code;
	uint32_t kernels, touches; /* entries in the lists below */
};
struct module {
	CUmodule module;
	CUcontext context;
	uint32_t code;
	bool ahead;
};
struct touched {
	CUcontext context;
	const void *handle; /* NULL: free */
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
	/* Keyed by hashes of contents and by handles; a value is the index in the list plus 1. */
	struct ckt_id_map code_keys, use_keys, loaded_places, kernel_places;
	/* Open addressing, at most half full; every launch of a library looks here. */
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

uint64_t ckt_code_looks(void)
{
	return code.code_keys.looks + code.use_keys.looks + code.loaded_places.looks +
		code.kernel_places.looks;
}

/* An index in a list; -1 if nothing has the key. */
static int64_t place_find(struct ckt_id_map *map, uint64_t key)
{
	return (int64_t)(uintptr_t)ckt_id_map_find(map, key) - 1;
}

static bool place_put(struct ckt_id_map *map, uint64_t key, size_t place)
{
	return ckt_id_map_put(map, key, (void *)(uintptr_t)(place + 1));
}

static bool charge(uint64_t bytes)
{
	return ckt_budget_charge(bytes, "what libraries load of their code");
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

static uint64_t key_of(const struct ckt_code *wanted)
{
	uint64_t key = ckt_id_map_key(wanted->offset, wanted->hash, sizeof wanted->hash);
	return ckt_id_map_key(key ^ wanted->size, wanted->file, strlen(wanted->file));
}

static bool is_same(const struct ckt_code *have, const struct ckt_code *wanted)
{
	return have->offset == wanted->offset && have->size == wanted->size &&
		!strcmp(have->file, wanted->file) &&
		!memcmp(have->hash, wanted->hash, sizeof have->hash) &&
		have->preserved == wanted->preserved && have->own == wanted->own;
}

bool ckt_code_add_known(const struct ckt_code *wanted, uint32_t *ret_code)
{
	uint64_t key = key_of(wanted);
	int64_t first = place_find(&code.code_keys, key);
	/* Few entries share a key: the same bytes with other options. */
	for (int64_t i = first; i >= 0; i = (int64_t)code.codes[i].next - 1)
		if (is_same(&code.codes[i], wanted)) {
			*ret_code = (uint32_t)i;
			return true;
		}
	if (!charge(sizeof *wanted))
		return false;
	if (CKT_GROW(code.codes, code.code_count, code.code_room, 64) ||
		!place_put(&code.code_keys, key, code.code_count)) {
		ckt_budget_uncharge(sizeof *wanted);
		return false;
	}
	code.codes[code.code_count] = *wanted;
	code.codes[code.code_count].next = (uint32_t)(first + 1);
	*ret_code = (uint32_t)code.code_count++;
	return true;
}

bool ckt_code_add(const struct ckt_code_place *place, bool preserved, bool own, uint32_t *ret_code)
{
	struct ckt_code wanted = {
		.offset = place->offset, .size = place->size, .preserved = preserved, .own = own};
	bool in_file = place->file[0];
	if (in_file)
		strcpy(wanted.file, place->file);
	else
		wanted.offset = 0;
	ckt_blob_hash(place->data, in_file && place->size > BEGINNING ? BEGINNING : place->size,
		wanted.hash);
	if (!ckt_code_add_known(&wanted, ret_code))
		return false;
	struct ckt_code *entry = &code.codes[*ret_code];
	/* The library may free the bytes before the first use. */
	if (!in_file && !entry->bytes && !entry->kept && charge(place->size)) {
		entry->bytes = malloc(place->size);
		if (entry->bytes)
			memcpy(entry->bytes, place->data, place->size);
		else
			ckt_budget_uncharge(place->size);
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

bool ckt_code_use_add(
	enum ckt_code_use_kind kind, uint32_t index, const char *symbol, uint32_t *ret_use)
{
	size_t length = strlen(symbol);
	uint64_t key = ckt_id_map_key((uint64_t)kind << 32 | index, symbol, length);
	int64_t same = place_find(&code.use_keys, key);
	if (same >= 0 && code.uses[same].kind == kind && code.uses[same].code == index &&
		!strcmp(code.uses[same].symbol, symbol)) {
		*ret_use = (uint32_t)same;
		return true;
	}
	if (!charge(sizeof *code.uses + length))
		return false;
	char *copy = strdup(symbol);
	if (!copy || CKT_GROW(code.uses, code.use_count, code.use_room, 256) ||
		!place_put(&code.use_keys, key, code.use_count)) {
		free(copy);
		ckt_budget_uncharge(sizeof *code.uses + length);
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
	pthread_mutex_unlock(&code.lock);
	if (!bytes)
		return;
	/* The blobs charge the bytes themselves. */
	ckt_budget_uncharge(size);
	bool kept = ckt_blobs_add(&worker->blobs, bytes, size, hash) == 0;
	free(bytes);
	pthread_mutex_lock(&code.lock);
	/* The list may have been reallocated. */
	code.codes[code.uses[use].code].kept |= kept;
	pthread_mutex_unlock(&code.lock);
}

/*
 * ---- Touched handles
 */

static size_t slot_of(CUcontext context, const void *handle)
{
	uint64_t key = ((uint64_t)(uintptr_t)handle ^ (uint64_t)(uintptr_t)context << 1) *
		0x9e3779b97f4a7c15;
	size_t i = (key >> 20) & (code.touched_room - 1);
	while (code.touched[i].handle &&
		(code.touched[i].handle != handle || code.touched[i].context != context))
		i = (i + 1) & (code.touched_room - 1);
	return i;
}

bool ckt_code_touched(CUcontext context, const void *handle)
{
	return code.touched_room && code.touched[slot_of(context, handle)].handle;
}

/* Without memory the table stays as it is, and a use is then noted twice. */
static void rebuild(size_t room, CUcontext without_context, CUlibrary without_library)
{
	struct touched *old = code.touched;
	size_t old_room = code.touched_room;
	if (!charge(room * sizeof *old))
		return;
	struct touched *list = calloc(room, sizeof *list);
	if (!list) {
		ckt_budget_uncharge(room * sizeof *list);
		return;
	}
	code.touched = list;
	code.touched_room = room;
	code.touched_count = 0;
	for (size_t i = 0; i < old_room; i++) {
		if (!old[i].handle || (without_context && old[i].context == without_context) ||
			(without_library && old[i].library == without_library))
			continue;
		code.touched[slot_of(old[i].context, old[i].handle)] = old[i];
		code.touched_count++;
	}
	ckt_budget_uncharge(old_room * sizeof *old);
	free(old);
}

static struct loaded *loaded_find(CUlibrary library)
{
	int64_t place = place_find(&code.loaded_places, (uintptr_t)library);
	return place < 0 ? NULL : &code.loaded[place];
}

void ckt_code_touch(CUcontext context, const void *handle, CUlibrary library)
{
	if (2 * (code.touched_count + 1) > code.touched_room)
		rebuild(code.touched_room ? 2 * code.touched_room : 256, NULL, NULL);
	if (code.touched_count + 1 >= code.touched_room)
		return;
	struct touched *place = &code.touched[slot_of(context, handle)];
	struct loaded *loaded = place->handle ? NULL : loaded_find(library);
	if (loaded)
		loaded->touches++;
	code.touched_count += !place->handle;
	*place = (struct touched){context, handle, library};
}

/* ---- Libraries and their kernels */

bool ckt_code_library_add(CUlibrary library, uint32_t index)
{
	if (loaded_find(library))
		return true;
	if (!charge(sizeof *code.loaded))
		return false;
	if (CKT_GROW(code.loaded, code.loaded_count, code.loaded_room, 64) ||
		!place_put(&code.loaded_places, (uintptr_t)library, code.loaded_count)) {
		ckt_budget_uncharge(sizeof *code.loaded);
		return false;
	}
	code.loaded[code.loaded_count++] = (struct loaded){.library = library, .code = index};
	code.codes[index].library = library;
	code.codes[index].loads++;
	return true;
}

bool ckt_code_library_find(CUlibrary library, uint32_t *ret_code)
{
	const struct loaded *loaded = loaded_find(library);
	if (loaded)
		*ret_code = loaded->code;
	return loaded != NULL;
}

bool ckt_code_library_of(uint32_t index, CUlibrary *ret_library)
{
	struct ckt_code *entry = &code.codes[index];
	/*
	 * The known library is unloaded and another copy remains.  No library is known to load the
	 * same code twice, so the search is rare.
	 */
	for (size_t i = 0; entry->loads && !entry->library && i < code.loaded_count; i++)
		if (code.loaded[i].code == index)
			entry->library = code.loaded[i].library;
	*ret_library = entry->library;
	return entry->library != NULL;
}

static void kernel_drop(size_t place)
{
	struct ckt_code_kernel *kernel = &code.kernels[place],
			       *last = &code.kernels[code.kernel_count - 1];
	ckt_id_map_drop(&code.kernel_places, (uintptr_t)kernel->kernel);
	ckt_budget_uncharge(sizeof *kernel + strlen(kernel->name));
	free(kernel->name);
	*kernel = *last;
	code.kernel_count--;
	/* The key is already in the table, so the replacement needs no memory. */
	if (place < code.kernel_count)
		place_put(&code.kernel_places, (uintptr_t)kernel->kernel, place);
}

bool ckt_code_library_drop(CUlibrary library, uint32_t *ret_code, bool *ret_used)
{
	struct loaded *loaded = loaded_find(library);
	if (!loaded)
		return false;
	struct loaded gone = *loaded;
	size_t place = (size_t)(loaded - code.loaded);
	*ret_code = gone.code;
	ckt_id_map_drop(&code.loaded_places, (uintptr_t)library);
	code.loaded[place] = code.loaded[--code.loaded_count];
	if (place < code.loaded_count)
		place_put(&code.loaded_places, (uintptr_t)code.loaded[place].library, place);
	ckt_budget_uncharge(sizeof gone);
	/* Libraries usually unload in reverse order, so their kernels are at the end. */
	for (size_t i = code.kernel_count; i-- > 0 && gone.kernels;)
		if (code.kernels[i].library == library) {
			kernel_drop(i);
			gone.kernels--;
		}
	size_t before = code.touched_count;
	if (code.touched_room && gone.touches)
		rebuild(code.touched_room, NULL, library);
	*ret_used = code.touched_count != before;
	struct ckt_code *entry = &code.codes[*ret_code];
	entry->loads--;
	if (entry->library == library)
		entry->library = NULL;
	if (entry->ahead == library) {
		entry->ahead = NULL;
		entry->handed = false;
	}
	return true;
}

void ckt_code_kernel_add(CUkernel kernel, CUlibrary library, const char *name)
{
	struct loaded *loaded = loaded_find(library);
	size_t length = strlen(name);
	if (!loaded || ckt_code_kernel_find(kernel) || !charge(sizeof *code.kernels + length))
		return;
	char *copy = strdup(name);
	if (!copy || CKT_GROW(code.kernels, code.kernel_count, code.kernel_room, 256) ||
		!place_put(&code.kernel_places, (uintptr_t)kernel, code.kernel_count)) {
		free(copy);
		ckt_budget_uncharge(sizeof *code.kernels + length);
		return;
	}
	loaded->kernels++;
	code.kernels[code.kernel_count++] =
		(struct ckt_code_kernel){kernel, library, loaded->code, copy};
}

const struct ckt_code_kernel *ckt_code_kernel_find(const void *handle)
{
	int64_t place = place_find(&code.kernel_places, (uintptr_t)handle);
	return place < 0 ? NULL : &code.kernels[place];
}

/* ---- Modules */

static bool module_add(CUmodule module, CUcontext context, uint32_t index, bool ahead)
{
	if (CKT_GROW(code.modules, code.module_count, code.module_room, 16))
		return false;
	if (!charge(sizeof *code.modules))
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
		if (code.modules[i].ahead && code.modules[i].code == index &&
			code.modules[i].context == context && !code.codes[index].own) {
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
			ckt_budget_uncharge(sizeof *code.modules);
			return true;
		}
	return false;
}

void ckt_code_forget_context(CUcontext context)
{
	pthread_mutex_lock(&code.lock);
	for (size_t i = code.module_count; i-- > 0;)
		if (code.modules[i].context == context) {
			code.modules[i] = code.modules[--code.module_count];
			ckt_budget_uncharge(sizeof *code.modules);
		}
	if (code.touched_room)
		rebuild(code.touched_room, context, NULL);
	pthread_mutex_unlock(&code.lock);
}
