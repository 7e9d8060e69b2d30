/* SPDX-License-Identifier: Apache-2.0 */
/* client/preload/needed.c: which names a library would bring along. */
#include "client/preload/needed.h"

#include <dlfcn.h>
#include <string.h>

#include "tests/unit/suite.h"

struct visits {
	char names[512];
	const char *settled;
};

static bool visit(const char *soname, void *opaque)
{
	struct visits *visits = opaque;
	if (strncmp(soname, "libcu", 5) == 0 || strncmp(soname, "libneeds", 8) == 0) {
		strcat(visits->names, soname);
		strcat(visits->names, " ");
	}
	return visits->settled && strcmp(visits->settled, soname) == 0;
}

static const struct link_map *own_map(void)
{
	struct link_map *map = NULL;
	Dl_info info;
	return dladdr1((void *)own_map, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static void walks(const char *name, const char *settled, const char *expected)
{
	struct visits visits = {.settled = settled};
	ckt_needed_walk(name, own_map(), visit, &visits);
	TEXT(visits.names, expected);
	visits.names[0] = 0;
	ckt_needed_walk(name, NULL, visit, &visits);
	if (strchr(name, '/'))
		TEXT(visits.names, expected);
}

static void test_walk(void)
{
	/* By run paths with $ORIGIN; once, whoever needs it. */
	walks(NEEDS_CUBLAS, NULL, "libcublas.so.13 ");
	walks(NEEDS_BOTH, NULL, "libneeds-cublas.so libcublas.so.13 ");
	walks(NEEDS_BOTH, "libneeds-cublas.so", "libneeds-cublas.so ");
	/* Names that lead nowhere, files that are none, and what is there already. */
	walks("libnowhere.so", NULL, "");
	walks("/nowhere/libnowhere.so", NULL, "");
	walks("/etc/passwd", NULL, "");
	walks("$ORIGIN/libneeds-cublas.so", NULL, "");
	walks("", NULL, "");
	walks("libc.so.6", NULL, "");
}

static void test_loaded(void)
{
	YES(ckt_needed_is_loaded("libc.so.6"));
	NO(ckt_needed_is_loaded("libneeds-both.so"));
	void *handle = dlopen(NEEDS_BOTH, RTLD_LAZY);
	CU_ASSERT_PTR_NOT_NULL_FATAL(handle);
	YES(ckt_needed_is_loaded("libneeds-both.so"));
	YES(ckt_needed_is_loaded("libneeds-cublas.so"));
	walks(NEEDS_BOTH, NULL, "");
	dlclose(handle);
}

UNIT_SUITE(needed, {"walk", test_walk}, {"loaded", test_loaded})
