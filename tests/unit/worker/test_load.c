/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/load.c: a genuine library is opened when it is first used, of the client's
 * major where that is there.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/libs/libs.h"
#include "tests/unit/worker/inside.h"

static struct {
	int (*version)(void);
	void (*missing)(void);
} functions;
static const char *const names[] = {"genuineVersion", "genuineMissing"};
static const struct ckt_library_functions list = {names, (void **)&functions, 2};

static uint32_t version(void)
{
	return (uint32_t)functions.version();
}

static void test_open(void)
{
	char message[1024] = "";
	struct ckt_library library = {.name = "genuine",
		.lib = CKT_LIB_CUSPARSE,
		.soname = "libnogenuine.so",
		.functions = &list,
		.version = version};
	setenv("CRICKET_LIBRARY_PATH", TOY_DIR, 1);
	IS(ckt_library_open(&ckt_worker, &library, 120000, message, sizeof message),
		CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
	HAS(message, "the server has no libnogenuine.so.12:");
	NO(ckt_library_loaded(CKT_LIB_CUSPARSE)->open);
	/* The client's own major, which is not the highest. */
	library.soname = "libgenuine.so";
	IS(ckt_library_open(&ckt_worker, &library, 110500, message, sizeof message), CUDA_SUCCESS);
	const struct ckt_library_loaded *loaded = ckt_library_loaded(CKT_LIB_CUSPARSE);
	YES(loaded->open);
	IS(loaded->major, 11);
	IS(loaded->version, 110203);
	YES(functions.version != NULL);
	YES(functions.missing == NULL);
	/* The second time it is what it was. */
	IS(ckt_library_open(&ckt_worker, &library, 120000, message, sizeof message), CUDA_SUCCESS);
	IS(ckt_library_loaded(CKT_LIB_CUSPARSE)->major, 11);
	/* Where the client's major is not there, it is not there; numbers of another unit. */
	library.lib = CKT_LIB_CURAND;
	library.soname = "libothergenuine.so";
	library.version_unit = 1000;
	IS(ckt_library_open(&ckt_worker, &library, 10400, message, sizeof message),
		CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
	HAS(message, "the server has no libothergenuine.so.10:");
	NO(ckt_library_loaded(CKT_LIB_CURAND)->open);
}

UNIT_SUITE(load, {"open", test_open})
