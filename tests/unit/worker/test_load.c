/* server/worker/libs/load.c: a genuine library is opened when it is first used, of the client's major where that is there. */
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
	struct ckt_library library = {.name = "genuine", .lib = CKT_LIB_CUSPARSE, .soname = "/nowhere/libgenuine.so", .functions = &list, .version = version};
	IS(ckt_library_open(&ckt_worker, &library, 120000, message, sizeof message), CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
	HAS(message, "/nowhere/libgenuine.so");
	NO(ckt_library_loaded(CKT_LIB_CUSPARSE)->open);
	/* The client's own major, which is not the highest. */
	library.soname = GENUINE;
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
	/* One of which the client's major is not there: the highest. */
	library.lib = CKT_LIB_CURAND;
	IS(ckt_library_open(&ckt_worker, &library, 100000, message, sizeof message), CUDA_SUCCESS);
	IS(ckt_library_loaded(CKT_LIB_CURAND)->major, 12);
}

UNIT_SUITE(load, {"open", test_open})
