/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See needed.h.
 */
#include "client/preload/needed.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/patch/elf_file.h"
#include "client/preload/ld_cache.h"

enum { DEPTH_MAX = 24, SEEN_MAX = 1024 };

/*
 * A library of the walk, and its loader: the loader's DT_RPATH also applies to this library's
 * needs.
 */
struct chain {
	const char *rpath, *runpath;
	char origin[PATH_MAX];
	const struct chain *loader;
};

struct walk {
	ckt_needed_visit *visit;
	void *opaque;
	/* the caller's search directories; NULL if the loader does not report them */
	Dl_serinfo *places;
	/* hashes of names: a walk that skips one name in four billion is harmless */
	uint32_t seen[SEEN_MAX];
	unsigned seen_count, depth;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int has_name(struct dl_phdr_info *info, size_t size, void *opaque)
{
	return info->dlpi_name && strcmp(base_name(info->dlpi_name), opaque) == 0;
}

bool ckt_needed_is_loaded(const char *soname)
{
	return dl_iterate_phdr(has_name, (void *)soname) != 0;
}

static bool first_time(struct walk *walk, const char *name)
{
	uint32_t hash = 2166136261u;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	for (unsigned i = 0; i < walk->seen_count; i++)
		if (walk->seen[i] == hash)
			return false;
	if (walk->seen_count == SEEN_MAX)
		return false;
	walk->seen[walk->seen_count++] = hash;
	return true;
}

static bool is_there(
	const char *directory, size_t length, const char *name, char ret_path[PATH_MAX])
{
	/* An empty element of a list is the current directory. */
	int wrote = length ? snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)length, directory, name)
			   : snprintf(ret_path, PATH_MAX, "./%s", name);

	return wrote > 0 && wrote < PATH_MAX && access(ret_path, R_OK) == 0;
}

/*
 * Expands one element of a run path, with $ORIGIN.  False if the element contains another variable
 * of the loader.
 */
static bool expand(
	const char *element, size_t length, const char *origin, char ret_directory[PATH_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < length;) {
		size_t variable = strncmp(element + i, "$ORIGIN", 7) == 0 ? 7
			: strncmp(element + i, "${ORIGIN}", 9) == 0       ? 9
									  : 0;

		if (variable) {
			size_t bytes = strlen(origin);

			if (used + bytes >= PATH_MAX)
				return false;
			memcpy(ret_directory + used, origin, bytes);
			used += bytes;
			i += variable;
		} else if (element[i] == '$' || used + 1 >= PATH_MAX) {
			return false;
		} else {
			ret_directory[used++] = element[i++];
		}
	}
	ret_directory[used] = 0;
	return true;
}

static bool in_run_path(
	const char *list, const char *origin, const char *name, char ret_path[PATH_MAX])
{
	char directory[PATH_MAX];

	while (list) {
		size_t length = strcspn(list, ":");

		if (expand(list, length, origin, directory) &&
			is_there(directory, strlen(directory), name, ret_path))
			return true;
		list = list[length] ? list + length + 1 : NULL;
	}
	return false;
}

/*
 * Searches the directories that the loader reports: the caller's run paths, LD_LIBRARY_PATH from
 * the start, and the system's directories.
 */
static bool in_places(const struct walk *walk, const char *name, char ret_path[PATH_MAX])
{
	for (unsigned i = 0; walk->places && i < walk->places->dls_cnt; i++)
		if (is_there(walk->places->dls_serpath[i].dls_name,
			    strlen(walk->places->dls_serpath[i].dls_name), name, ret_path))
			return true;
	return false;
}

/*
 * The order is nearly that of ld.so(8).  DT_RUNPATH comes before LD_LIBRARY_PATH here, because
 * glibc does not report the source of the caller's directories.  Another copy of a library needs
 * the same libraries.
 */
static bool locate(const struct walk *walk, const struct chain *loader, const char *name,
	char ret_path[PATH_MAX])
{
	if (strchr(name, '/'))
		return expand(name, strlen(name), loader ? loader->origin : "", ret_path);
	for (const struct chain *one = loader; one && !loader->runpath; one = one->loader)
		if (!one->runpath && one->rpath &&
			in_run_path(one->rpath, one->origin, name, ret_path))
			return true;
	return (loader && loader->runpath &&
		       in_run_path(loader->runpath, loader->origin, name, ret_path)) ||
		in_places(walk, name, ret_path) ||
		ckt_ld_cache_find("/etc/ld.so.cache", name, ret_path, PATH_MAX);
}

static void walk_file(struct walk *walk, const char *path, const struct chain *loader);

static void walk_needs(struct walk *walk, const struct ckt_elf_needs *needs,
	const struct chain *own, char found[PATH_MAX])
{
	for (unsigned i = 0; i < needs->count; i++) {
		const char *name = needs->needed[i];

		if (first_time(walk, name) && !walk->visit(name, walk->opaque) &&
			!ckt_needed_is_loaded(base_name(name)) && locate(walk, own, name, found))
			walk_file(walk, found, own);
	}
}

/* The data of a level is on the heap, because the walk can be deep and a thread's stack small. */
static void walk_file(struct walk *walk, const char *path, const struct chain *loader)
{
	struct level {
		struct ckt_elf_needs needs;
		struct chain own;
		char found[PATH_MAX];
	} * level;
	struct ckt_elf_file file;

	if (walk->depth >= DEPTH_MAX || strlen(path) >= sizeof(level->own.origin) ||
		!ckt_patch_elf_file_map(&file, path))
		return;
	level = malloc(sizeof(*level));
	if (level && ckt_patch_elf_file_needs(&file, &level->needs)) {
		level->own.rpath = level->needs.rpath;
		level->own.runpath = level->needs.runpath;
		level->own.loader = loader;
		strcpy(level->own.origin, path);
		*(char *)base_name(level->own.origin) = 0;
		walk->depth++;
		walk_needs(walk, &level->needs, &level->own, level->found);
		walk->depth--;
	}
	free(level);
	ckt_patch_elf_file_unmap(&file);
}

/* A link_map is the handle that dlopen returns. */
static Dl_serinfo *places_of(const struct link_map *caller)
{
	Dl_serinfo size, *places;

	if (dlinfo((void *)caller, RTLD_DI_SERINFOSIZE, &size) < 0)
		return NULL;
	places = malloc(size.dls_size);
	if (!places)
		return NULL;
	*places = size;
	if (dlinfo((void *)caller, RTLD_DI_SERINFO, places) < 0) {
		free(places);
		return NULL;
	}
	return places;
}

void ckt_needed_walk(
	const char *name, const struct link_map *caller, ckt_needed_visit *visit, void *opaque)
{
	char path[PATH_MAX];

	if (ckt_needed_is_loaded(base_name(name)))
		return;
	struct walk *walk = calloc(1, sizeof(*walk));
	if (!walk)
		return;
	walk->visit = visit;
	walk->opaque = opaque;
	walk->places = caller ? places_of(caller) : NULL;
	if (strchr(name, '/') ? !strchr(name, '$') &&
				snprintf(path, sizeof(path), "%s", name) < (int)sizeof(path)
			      : locate(walk, NULL, name, path))
		walk_file(walk, path, NULL);
	free(walk->places);
	free(walk);
}
