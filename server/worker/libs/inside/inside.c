/* SPDX-License-Identifier: Apache-2.0 */
/* The pass-through libcuda.so.1 in the worker's process; see inside.h. */
#include "server/worker/libs/inside/inside.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "server/worker/driver.h"
#include "server/worker/libs/code/code.h"
#include "server/worker/libs/state.h"
#include "server/worker/module/module_loading.h"
#include "server/worker/worker.h"

enum { HOOKS_MAX = 96 };

static struct {
	char file[PATH_MAX];
	void *handle, *driver;
	_Atomic uint64_t modules;
	_Atomic int64_t streams, events;
} inside;

static __thread uint64_t serving_owner;

/*
 * Finds the library: the path in CRICKET_INSIDE (a copy that the worker's user can read), the one
 * installed beside the worker, or the one in the build directory.
 */
static int find_file(void)
{
	static const char *const places[] = {"inside/libcuda.so.1", "libs/inside/libcuda.so.1"};
	const char *told = getenv("CRICKET_INSIDE");
	char exe[PATH_MAX];
	if (told && *told) {
		snprintf(inside.file, sizeof inside.file, "%s", told);
		return 0;
	}
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	if (n < 0)
		return -errno;
	exe[n] = 0;
	char *slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		int length = snprintf(inside.file, sizeof inside.file, "%s/%s", exe, places[i]);
		if (length < (int)sizeof inside.file && access(inside.file, R_OK) == 0)
			return 0;
	}
	snprintf(inside.file, sizeof inside.file, "%s", "");
	return -ENOENT;
}

/* ---- The driver's name */

struct relro {
	uintptr_t address;
	bool read_only;
};

static int look_for_relro(struct dl_phdr_info *info, size_t size, void *opaque)
{
	struct relro *relro = opaque;
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_GNU_RELRO && relro->address >= start &&
			relro->address - start < p->p_memsz)
			relro->read_only = true;
	}
	return 0;
}

/*
 * The names by which glibc was asked for an object, and the place of that list in struct link_map:
 * behind the public fields, since glibc 2.3.
 */
struct libname {
	char *name;
	struct libname *next;
};

struct link_map_head {
	struct link_map public;
	struct link_map *real;
	long namespace;
	struct libname *names;
};

static const char driver_name[] = "libcuda.so.1";

/*
 * glibc keeps every name by which an object was requested.  The driver opens itself by its own
 * name, and a server's --driver may be that name, too.  A structure that does not look like glibc's
 * is left alone: check_found() then reports that the driver still has its name.
 */
static void hide_names(struct link_map *map)
{
	const struct link_map_head *head = (const struct link_map_head *)map;
	if (head->real != map || head->namespace != 0)
		return;
	for (struct libname *n = head->names; n; n = n->next)
		if (strcmp(n->name, driver_name) == 0)
			strcpy(n->name, driver_name + strlen("lib"));
}

/*
 * For a request of "libcuda.so.1", glibc returns the first loaded object that has this DT_SONAME or
 * was requested by this name.  That object is the driver, because the worker opens it first.  A
 * session without libraries must not load anything more, or its modules would lie at other
 * addresses than in the images of earlier builds.  So this function renames the driver: it moves
 * the offset of its DT_SONAME by three characters, to "cuda.so.1".
 */
static int hide_driver_name(void *driver)
{
	struct link_map *map;
	if (dlinfo(driver, RTLD_DI_LINKMAP, &map))
		return -EINVAL;
	ElfW(Dyn) *soname = NULL;
	const char *strings = NULL;
	for (ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SONAME)
			soname = d;
		else if (d->d_tag == DT_STRTAB)
			strings = (const char *)d->d_un.d_ptr;
	}
	hide_names(map);
	if (!soname || !strings || strcmp(strings + soname->d_un.d_val, driver_name))
		return 0;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)soname / page * page);
	struct relro relro = {.address = (uintptr_t)soname};
	dl_iterate_phdr(look_for_relro, &relro);
	/* An entry has 16 aligned bytes, so it lies in one page. */
	if (mprotect(start, page, PROT_READ | PROT_WRITE))
		return -errno;
	soname->d_un.d_val += strlen("lib");
	if (relro.read_only)
		mprotect(start, page, PROT_READ);
	return 0;
}

/* ---- Opening */

void *ckt_inside_real(const char *name)
{
	return dlsym(inside.driver, name);
}

static void unknown_version(const char *name, int version)
{
	ckt_error("%s: a library wants the version of CUDA %d.%d, which this build of "
		  "cricket-worker does not know: the library may fail; install a newer Cricket",
		name, version / 1000, version % 1000 / 10);
}

static size_t add_hooks(
	struct ckt_inside_hook *all, size_t count, const struct ckt_inside_hook *more)
{
	for (; more->name && count < HOOKS_MAX; more++)
		/* Libraries do without functions that a driver lacks. */
		if (ckt_inside_real(more->name))
			all[count++] = *more;
	return count;
}

static int set_hooks(void *handle, char *ret_message, size_t message_size)
{
	struct ckt_inside_hook hooks[HOOKS_MAX];
	size_t count = add_hooks(hooks, 0, ckt_inside_memory_hooks);
	count = add_hooks(hooks, count, ckt_inside_host_hooks);
	count = add_hooks(hooks, count, ckt_inside_object_hooks);
	/* Last, because these hooks replace earlier ones. */
	if (ckt_loading_is_lazy())
		count = add_hooks(hooks, count, ckt_inside_code_hooks);
	ckt_inside_set_fn *set;
	*(void **)&set = dlsym(handle, CKT_INSIDE_SET);
	const char *wrong = CKT_INSIDE_SET;
	if (set && set(ckt_inside_real, hooks, count, unknown_version, &wrong) == 0)
		return 0;
	snprintf(ret_message, message_size,
		"%s belongs to another build of cricket-worker, or the driver is too "
		"old for it (%s)",
		inside.file, wrong);
	return -ENOEXEC;
}

/* Opens the driver as a library's runtime does; the result must be the pass-through library. */
static int check_found(void *handle, char *ret_message, size_t message_size)
{
	struct link_map *map = NULL;
	char other[PATH_MAX] = "none";
	void *found = dlopen(driver_name, RTLD_LAZY | RTLD_NOLOAD);
	if (found && !dlinfo(found, RTLD_DI_LINKMAP, &map))
		snprintf(other, sizeof other, "%s", map->l_name);
	if (found)
		dlclose(found);
	if (found == handle)
		return 0;
	snprintf(ret_message, message_size,
		"libraries in the worker would find another %s than %s: %s is already "
		"loaded",
		driver_name, inside.file, other);
	return -EEXIST;
}

int ckt_inside_open(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	if (inside.handle)
		return 0;
	int error = find_file();
	if (error) {
		snprintf(ret_message, message_size,
			"inside/libcuda.so.1 is missing beside cricket-worker: install "
			"Cricket again");
		return error;
	}
	Dl_info driver;
	if (!ckt_driver.cuInit || !dladdr((void *)ckt_driver.cuInit, &driver)) {
		snprintf(ret_message, message_size, "the driver is not open");
		return -EINVAL;
	}
	inside.driver = dlopen(driver.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	error = inside.driver ? hide_driver_name(inside.driver) : -ENOENT;
	if (error) {
		snprintf(ret_message, message_size,
			"%s: cannot redirect the libraries' calls of this driver: %s",
			driver.dli_fname, strerror(-error));
		return error;
	}
	void *handle = dlopen(inside.file, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(ret_message, message_size, "%s", dlerror());
		return -ENOEXEC;
	}
	error = set_hooks(handle, ret_message, message_size);
	if (!error)
		error = check_found(handle, ret_message, message_size);
	if (error)
		dlclose(handle);
	else
		inside.handle = handle;
	(void)worker;
	return error;
}

/*
 * ---- The served object
 */

uint64_t ckt_inside_enter(uint64_t owner)
{
	uint64_t before = serving_owner;
	serving_owner = owner;
	return before;
}

void ckt_inside_leave(uint64_t before)
{
	serving_owner = before;
}

uint64_t ckt_inside_captured_call(void)
{
	return ckt_lib_capture_id && ckt_inside_has_tables() ? ckt_lib_capture_id : 0;
}

uint64_t ckt_inside_owner(void)
{
	uint64_t owner = ckt_inside_captured_call();
	if (!owner)
		owner = serving_owner;
	/* Without an object, the memory belongs to the context. */
	if (!owner && ckt_inside_has_tables() && ckt_worker.current)
		owner = ckt_worker.current->id;
	return owner | CKT_MEMORY_LIBRARY;
}

bool ckt_inside_has_tables(void)
{
	struct ckt_worker *worker = &ckt_worker;
	return !worker->go || pthread_equal(pthread_self(), worker->executor);
}

/* ---- Figures */

void ckt_inside_count_modules(void)
{
	atomic_fetch_add(&inside.modules, 1);
}

void ckt_inside_count_streams(int64_t change)
{
	atomic_fetch_add(&inside.streams, change);
}

void ckt_inside_count_events(int64_t change)
{
	atomic_fetch_add(&inside.events, change);
}

struct ckt_inside_figures ckt_inside_figures(void)
{
	struct ckt_inside_figures figures = ckt_inside_figures_of_memory();
	figures.modules = atomic_load(&inside.modules);
	figures.streams = (uint64_t)atomic_load(&inside.streams);
	figures.events = (uint64_t)atomic_load(&inside.events);
	return figures;
}
