/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the file of a genuine library; see search.h. */
#include "server/worker/libs/search.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/trusted_file.h"

/* Patterns of glob(3): absolute ones, and ones below a prefix. */
static const char *const toolkits[] = {"/usr/local/cuda/lib64", "/usr/local/cuda*/lib64",
	"/usr/local/cuda*/targets/x86_64-linux/lib", "/opt/cuda*/lib64",
	"/opt/cuda*/targets/x86_64-linux/lib"};
static const char *const wheels[] = {"/usr/local/lib/python3*/*-packages/nvidia/*/lib",
	"/usr/lib/python3*/*-packages/nvidia/*/lib",
	"/usr/lib64/python3*/site-packages/nvidia/*/lib",
	"/opt/conda/lib/python3*/site-packages/nvidia/*/lib"};
static const char *const below_roots[] = {
	"/lib64", "/targets/x86_64-linux/lib", "/lib/python3*/site-packages/nvidia/*/lib"};
static const char *const loaders[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
	"/lib64", "/usr/lib64", "/usr/lib", "/usr/local/lib"};

struct dirs {
	char *list[CKT_SEARCH_DIRS_MAX];
	unsigned count;
};

struct look {
	const struct ckt_search *search;
	const char *stem, *version;
	unsigned major;
	struct ckt_search_found *best;
	bool found, best_is_own;
	char refused[512]; /* the first file that did not count, and why */
};

/* ---- Directories */

static void dirs_add(struct dirs *dirs, const char *path)
{
	char real[PATH_MAX];
	struct stat status;
	if (!realpath(path, real) || stat(real, &status) || !S_ISDIR(status.st_mode))
		return;
	for (unsigned i = 0; i < dirs->count; i++)
		if (!strcmp(dirs->list[i], real))
			return;
	if (dirs->count < CKT_SEARCH_DIRS_MAX && (dirs->list[dirs->count] = strdup(real)))
		dirs->count++;
}

static void dirs_add_pattern(struct dirs *dirs, const char *prefix, const char *pattern)
{
	char whole[PATH_MAX];
	glob_t matches;
	if (snprintf(whole, sizeof whole, "%s%s", prefix, pattern) >= (int)sizeof whole ||
		glob(whole, 0, NULL, &matches))
		return;
	for (size_t i = 0; i < matches.gl_pathc; i++)
		dirs_add(dirs, matches.gl_pathv[i]);
	globfree(&matches);
}

/*
 * The parts between colons.  Only absolute paths count, because the worker's own directory has no
 * meaning for the operator.
 */
static void each_part(
	struct dirs *dirs, const char *text, void (*add)(struct dirs *dirs, const char *part))
{
	char part[PATH_MAX];
	for (const char *p = text; *p;) {
		size_t length = strcspn(p, ":");
		if (*p == '/' && length < sizeof part) {
			memcpy(part, p, length);
			part[length] = 0;
			add(dirs, part);
		}
		p += length + (p[length] == ':');
	}
}

static void add_root(struct dirs *dirs, const char *prefix)
{
	for (unsigned i = 0; i < sizeof below_roots / sizeof *below_roots; i++)
		dirs_add_pattern(dirs, prefix, below_roots[i]);
}

/* The lines of ld.so.conf and of ld.so.conf.d that are directories. */
static void add_loader_conf(struct dirs *dirs, const char *root)
{
	char pattern[PATH_MAX], line[PATH_MAX];
	glob_t matches;
	snprintf(pattern, sizeof pattern, "%s/etc/ld.so.conf", root);
	int flags = glob(pattern, 0, NULL, &matches) == 0 ? GLOB_APPEND : 0;
	snprintf(pattern, sizeof pattern, "%s/etc/ld.so.conf.d/*.conf", root);
	if (glob(pattern, flags, NULL, &matches) && !flags)
		return;
	for (size_t i = 0; i < matches.gl_pathc; i++) {
		FILE *file = fopen(matches.gl_pathv[i], "re");
		while (file && fgets(line, sizeof line, file)) {
			line[strcspn(line, " \t#\n")] = 0;
			if (*line == '/')
				dirs_add(dirs, line);
		}
		if (file)
			fclose(file);
	}
	globfree(&matches);
}

static void dirs_fini(struct dirs *dirs)
{
	for (unsigned i = 0; i < dirs->count; i++)
		free(dirs->list[i]);
}

/* ---- Versions */

int ckt_search_compare(const char *a, const char *b)
{
	while (*a || *b) {
		if (!*a || !*b)
			return *a ? 1 : -1;
		char *end_a, *end_b;
		unsigned long x = strtoul(a, &end_a, 10), y = strtoul(b, &end_b, 10);
		if (x != y)
			return x < y ? -1 : 1;
		a = end_a + (*end_a == '.');
		b = end_b + (*end_b == '.');
	}
	return 0;
}

/* "13.1" is a prefix of "13.1.0.3" and of "13.1". */
static bool begins(const char *version, const char *beginning)
{
	size_t length = strlen(beginning);
	return length && !strncmp(version, beginning, length) &&
		(!version[length] || version[length] == '.');
}

/* The version in a file's name after "libcublas.so."; NULL if the name does not fit the stem. */
static const char *version_in(const char *name, const char *stem)
{
	size_t length = strlen(stem);
	if (strncmp(name, stem, length) || name[length] != '.' ||
		!isdigit((unsigned char)name[length + 1]))
		return NULL;
	const char *version = name + length + 1;
	return strspn(version, "0123456789.") == strlen(version) &&
			strlen(version) < CKT_SEARCH_VERSION_MAX
		? version
		: NULL;
}

/* ---- Files */

static void refuse(struct look *look, const char *why)
{
	if (!*look->refused)
		snprintf(look->refused, sizeof look->refused, "%s", why);
}

static void consider(struct look *look, const char *dir, const char *name)
{
	char path[PATH_MAX], real[PATH_MAX], why[512];
	struct stat status;
	const char *version = version_in(name, look->stem);
	unsigned major = version ? (unsigned)strtoul(version, NULL, 10) : 0;
	if (!version || (look->major && look->major != major))
		return;
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
		!realpath(path, real) || stat(real, &status) || !S_ISREG(status.st_mode))
		return;
	/* A link's target says more: libcublas.so.13 -> libcublas.so.13.1.0.3. */
	const char *of_target = version_in(strrchr(real, '/') + 1, look->stem);
	if (of_target && begins(of_target, version))
		version = of_target;
	bool own = *look->version && begins(version, look->version);
	if (look->found &&
		(look->best_is_own > own ||
			(look->best_is_own == own &&
				ckt_search_compare(version, look->best->version) <= 0)))
		return;
	if (ckt_trusted_path(real, look->search->owners, 2, why, sizeof why)) {
		refuse(look, why);
		return;
	}
	snprintf(look->best->path, sizeof look->best->path, "%s", real);
	snprintf(look->best->version, sizeof look->best->version, "%s", version);
	look->best->major = major;
	look->found = true;
	look->best_is_own = own;
}

static void look_in(struct look *look, const struct dirs *dirs)
{
	for (unsigned i = 0; i < dirs->count; i++) {
		DIR *dir = opendir(dirs->list[i]);
		struct dirent *entry;
		if (!dir)
			continue;
		while ((entry = readdir(dir)))
			consider(look, dirs->list[i], entry->d_name);
		closedir(dir);
	}
}

/* ---- The message */

static void __attribute__((format(printf, 3, 4)))
append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

static void append_dirs(char *text, size_t size, const char *what, const struct dirs *dirs)
{
	enum { SHOWN = 3 };
	append(text, size, "%s (", what);
	for (unsigned i = 0; i < dirs->count && i < SHOWN; i++)
		append(text, size, "%s%s", i ? ", " : "", dirs->list[i]);
	if (dirs->count > SHOWN)
		append(text, size, " and %u more", dirs->count - SHOWN);
	append(text, size, "%s)", dirs->count ? "" : "none");
}

enum { ROW_OPERATOR, ROW_SOFT, ROW_INSTALLED, ROW_LOADER, ROWS };

static void tell(
	const struct look *look, const struct dirs rows[ROWS], char *ret_message, size_t size)
{
	char name[128];
	if (look->major)
		snprintf(name, sizeof name, "%s.%u", look->stem, look->major);
	else
		snprintf(name, sizeof name, "%s", look->stem);
	snprintf(ret_message, size, "the server has no %s: searched ", name);
	append_dirs(ret_message, size, "its --library-path", &rows[ROW_OPERATOR]);
	if (look->search->soft_path) {
		append_dirs(
			ret_message, size, " and the directory of its soft GPU", &rows[ROW_SOFT]);
	} else {
		append_dirs(ret_message, size, ", its CUDA toolkits and Python's nvidia packages",
			&rows[ROW_INSTALLED]);
		append_dirs(ret_message, size, ", the loader's directories", &rows[ROW_LOADER]);
	}
	if (*look->refused)
		append(ret_message, size, "; not taken: %s", look->refused);
	else
		append(ret_message, size,
			"; install it there, or name its directory with cricket-server --library-path");
}

/*
 * ---- The search
 */

static void collect(const struct ckt_search *search, struct dirs rows[ROWS])
{
	each_part(&rows[ROW_OPERATOR], search->operator_path, dirs_add);
	if (search->soft_path) {
		each_part(&rows[ROW_SOFT], search->soft_path, dirs_add);
		return;
	}
	for (unsigned i = 0; i < sizeof toolkits / sizeof *toolkits; i++)
		dirs_add_pattern(&rows[ROW_INSTALLED], search->root, toolkits[i]);
	each_part(&rows[ROW_INSTALLED], search->roots, add_root);
	for (unsigned i = 0; i < sizeof wheels / sizeof *wheels; i++)
		dirs_add_pattern(&rows[ROW_INSTALLED], search->root, wheels[i]);
	each_part(&rows[ROW_LOADER], search->loader_path, dirs_add);
	add_loader_conf(&rows[ROW_LOADER], search->root);
	for (unsigned i = 0; i < sizeof loaders / sizeof *loaders; i++)
		dirs_add_pattern(&rows[ROW_LOADER], search->root, loaders[i]);
}

int ckt_search_find(const struct ckt_search *search, const char *stem, unsigned major,
	const char *version, struct ckt_search_found *ret_found, char *ret_message,
	size_t message_size)
{
	struct dirs rows[ROWS] = {0};
	struct look look = {.search = search,
		.stem = stem,
		.version = version,
		.major = major,
		.best = ret_found};
	*ret_found = (struct ckt_search_found){0};
	collect(search, rows);
	for (unsigned i = 0; i < ROWS && !look.found; i++)
		look_in(&look, &rows[i]);
	if (!look.found)
		tell(&look, rows, ret_message, message_size);
	for (unsigned i = 0; i < ROWS; i++)
		dirs_fini(&rows[i]);
	return look.found ? 0 : -ENOENT;
}
