/* client/libs/libs.c: the way from a shim to our libcuda.so.1. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/libs/libs.h"
#include "tests/unit/suite.h"

static const char *libcuda;

int unit_setup(int argc, char **argv)
{
	libcuda = argc == 2 ? argv[1] : NULL;
	/* No session is to be had. */
	setenv("REMOTE_GPU_ADDRESS", "127.0.0.1:1", 1);
	return !libcuda;
}

static void test_found(void)
{
	static struct ckt_lib_opened opened = {.lock = PTHREAD_MUTEX_INITIALIZER};
	/* Neither in the process nor beside this program. */
	YES(ckt_client() == NULL);
	IS(ckt_lib_open(&opened, "toy", CKT_LIB_PROC(CKT_LIB_CUBLAS, 1), 130000), CUDA_ERROR_NOT_INITIALIZED);
	/* Opened by someone else, under another name than a shim asks for, and for itself alone. */
	void *own = dlopen(libcuda, RTLD_NOW | RTLD_LOCAL);
	MUST(own != NULL, true);
	const struct ckt_client_table *table = ckt_client();
	MUST(table != NULL, true);
	YES(table == dlsym(own, CKT_CLIENT_TABLE_SYMBOL));
	YES(table == ckt_client());
	/* There is no server: the library is not open, and the next attempt is one. */
	YES(ckt_lib_open(&opened, "toy", CKT_LIB_PROC(CKT_LIB_CUBLAS, 1), 130000) != CUDA_SUCCESS);
	NO(opened.open);
}

UNIT_SUITE(libs, {"found", test_found})
