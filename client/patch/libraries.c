/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See libraries.h.
 */
#include "client/patch/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAJORS = 3, HASH_DIGITS = 8 };

struct library {
	const char *name;
	unsigned majors[MAJORS]; /* the newest first; 0: no more */
	int refusal;             /* the library's own NOT_SUPPORTED status */
};

/*
 * Libraries that may have a shim.  A shim exists only if its file exists, because a build can omit
 * libraries.
 */
static const struct library libraries[] = {
	{"cublas", {13, 12}, 15},
	{"cublasLt", {13, 12}, 15},
	{"cufft", {12, 11}, 16},
	{"cusolver", {12, 11}, 9},
	{"cusparse", {12}, 10},
	{"curand", {10}, 999},
	{"cudnn", {9}, 3000},
	{"nccl", {2}, 3},
	{"cusparseLt", {0}, 10},
	{"cutensor", {2}, 15},
	{"nvjpeg", {13, 12}, 9},
};
enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]), CUBLAS = 0, CUBLASLT = 1 };

struct wanted {
	/* index into libraries and into its majors; MAJORS: not named */
	unsigned library, major;
};

static const char *directory;
static bool off[LIBRARIES];
static _Atomic(signed char) there[LIBRARIES][MAJORS]; /* 0: not checked yet, 1: yes, -1: no */
static _Atomic(char *) paths[LIBRARIES][MAJORS];
static atomic_uint last_loaded[LIBRARIES]; /* index of the major, plus one */

static const char *value_of(char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; environment && *environment; environment++)
		if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

/* "none", "cublas,cufft" (only these) or "-nccl" (all except these). */
static void read_choice(const char *text)
{
	bool only = text && text[0] && text[0] != '-';

	for (unsigned i = 0; i < LIBRARIES; i++)
		off[i] = only;
	while (text && *text) {
		size_t length = strcspn(text, ",");
		bool is_off = *text == '-';
		const char *name = text + is_off;

		for (unsigned i = 0; i < LIBRARIES; i++)
			if (strlen(libraries[i].name) == length - is_off &&
				strncmp(libraries[i].name, name, length - is_off) == 0)
				off[i] = is_off;
		text += length + (text[length] == ',');
	}
	/* NVIDIA's cuBLAS calls undocumented functions of cuBLASLt: it needs NVIDIA's cuBLASLt. */
	off[CUBLASLT] = off[CUBLASLT] || off[CUBLAS];
}

void ckt_patch_libraries_init_in(const char *path, char *const *environment)
{
	const char *address = value_of(environment, "REMOTE_GPU_ADDRESS");
	bool is_local = address && strncmp(address, "local:", 6) == 0;

	directory = path && path[0] && !is_local ? path : NULL;
	memset(there, 0, sizeof(there));
	memset(last_loaded, 0, sizeof(last_loaded));
	for (unsigned i = 0; i < LIBRARIES; i++)
		for (unsigned j = 0; j < MAJORS; j++)
			free(atomic_exchange(&paths[i][j], NULL));
	read_choice(value_of(environment, "CRICKET_LIBRARIES"));
}

void ckt_patch_libraries_init(const void *address, char *const *environment)
{
	static char path[PATH_MAX];
	size_t used = 0;
	Dl_info info;

	ckt_patch_libraries_init_in(NULL, environment);
	if (!dladdr(address, &info) || !info.dli_fname || !strchr(info.dli_fname, '/'))
		return;
	/* The path must be absolute, because the program may change its directory. */
	if (info.dli_fname[0] != '/') {
		if (!getcwd(path, sizeof(path) - 1))
			return;
		used = strlen(path);
		path[used++] = '/';
	}
	if (strlen(info.dli_fname) >= sizeof(path) - used)
		return;
	strcpy(path + used, info.dli_fname);
	*strrchr(path, '/') = 0;
	ckt_patch_libraries_init_in(path, environment);
}

static bool join(char ret_path[PATH_MAX], const struct library *library, unsigned major)
{
	int length = snprintf(ret_path, PATH_MAX, "%s/lib%s.so.%u", directory, library->name,
		library->majors[major]);

	return length > 0 && length < PATH_MAX;
}

static bool has_major(const struct library *library, unsigned major)
{
	/* cuSPARSELt's only version is 0. */
	return major < MAJORS && (library->majors[major] || major == 0);
}

static bool is_there(unsigned index, unsigned major)
{
	signed char known = atomic_load_explicit(&there[index][major], memory_order_relaxed);
	char path[PATH_MAX];

	if (!known) {
		int saved = errno;

		known = join(path, &libraries[index], major) && access(path, R_OK) == 0 ? 1 : -1;
		errno = saved;
		atomic_store_explicit(&there[index][major], known, memory_order_relaxed);
	}
	return known > 0;
}

/* "-" and hexadecimal digits: wheels name their own copies of libraries in this way. */
static const char *skip_hash(const char *text)
{
	size_t digits = *text == '-' ? strspn(text + 1, "0123456789abcdef") : 0;

	return digits == HASH_DIGITS ? text + 1 + digits : text;
}

static bool parse(const char *name, struct wanted *ret_wanted)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;

	if (strncmp(base, "lib", 3) != 0)
		return false;
	for (unsigned i = 0; i < LIBRARIES; i++) {
		size_t length = strlen(libraries[i].name);
		const char *rest;

		if (strncmp(base + 3, libraries[i].name, length) != 0)
			continue;
		rest = skip_hash(base + 3 + length);
		if (strncmp(rest, ".so", 3) != 0)
			continue;
		rest += 3;
		*ret_wanted = (struct wanted){i, MAJORS};
		if (!*rest)
			return true;
		if (*rest != '.' || rest[1] < '0' || rest[1] > '9')
			return false;
		char *end;
		unsigned long number = strtoul(rest + 1, &end, 10);
		for (unsigned j = 0; has_major(&libraries[i], j); j++)
			if (libraries[i].majors[j] == number && (!*end || *end == '.')) {
				ret_wanted->major = j;
				return true;
			}
		return false;
	}
	return false;
}

/*
 * Chooses the version for a name without one: the link's target, else the loaded version, else the
 * newest version.
 */
static bool choose_major(const char *name, struct wanted *wanted)
{
	char target[PATH_MAX];
	struct wanted other;
	unsigned loaded;

	if (wanted->major < MAJORS)
		return true;
	if (strchr(name, '/') && realpath(name, target) && parse(target, &other) &&
		other.library == wanted->library && other.major < MAJORS) {
		wanted->major = other.major;
		return true;
	}
	loaded = atomic_load(&last_loaded[wanted->library]);
	if (loaded) {
		wanted->major = loaded - 1;
		return true;
	}
	for (unsigned j = 0; has_major(&libraries[wanted->library], j); j++)
		if (is_there(wanted->library, j)) {
			wanted->major = j;
			return true;
		}
	return false;
}

static bool find(const char *name, struct wanted *ret_wanted)
{
	int saved = errno;
	bool found = directory && name && parse(name, ret_wanted) && !off[ret_wanted->library] &&
		choose_major(name, ret_wanted) &&
		is_there(ret_wanted->library, ret_wanted->major) &&
		(ret_wanted->library != CUBLASLT || is_there(CUBLAS, ret_wanted->major));

	errno = saved;
	return found;
}

bool ckt_patch_library_known(const char *name)
{
	struct wanted wanted;

	return parse(name, &wanted);
}

bool ckt_patch_library_path(const char *name, char ret_path[PATH_MAX])
{
	struct wanted wanted;

	return find(name, &wanted) && join(ret_path, &libraries[wanted.library], wanted.major);
}

const char *ckt_patch_library_shim(const char *name)
{
	struct wanted wanted;
	char path[PATH_MAX], *kept, *made;

	if (!find(name, &wanted))
		return NULL;
	_Atomic(char *) *place = &paths[wanted.library][wanted.major];
	kept = atomic_load(place);
	if (kept)
		return kept;
	int saved = errno;
	made = join(path, &libraries[wanted.library], wanted.major) ? strdup(path) : NULL;
	errno = saved;
	if (made && !atomic_compare_exchange_strong(place, &kept, made)) {
		free(made);
		return kept;
	}
	return made;
}

void ckt_patch_library_loaded(const char *name)
{
	struct wanted wanted;

	if (name && parse(name, &wanted) && wanted.major < MAJORS)
		atomic_store(&last_loaded[wanted.library], wanted.major + 1);
}

int ckt_patch_library_refusal(const char *soname)
{
	struct wanted wanted;

	return parse(soname, &wanted) ? libraries[wanted.library].refusal : 1;
}
