/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/library_environment.c: which variables travel to libraries, and with which values. */
#include "rpc/library_environment.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/session.h"
#include "tests/unit/suite.h"

static void test_names(void)
{
	static const char *const never[] = {"LD_PRELOAD", "LD_LIBRARY_PATH", "PATH",
		"CUBLAS_LOGDEST_DBG", "CUBLASLT_LOG_FILE", "CUDNN_LOGDEST_DBG", "CUSPARSE_LOG_FILE",
		"NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN",
		"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_TOPO_DUMP_FILE",
		"NCCL_DEBUG_FILE", "NCCL_CONF_FILE", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA",
		"NCCL_COMM_ID", "NCCL_NVLS_ENABLE", "NCCL_CUMEM_ENABLE", "NCCL_LAUNCH_MODE",
		"CUDA_MODULE_LOADING", "CUDA_CACHE_PATH", "GLIBC_TUNABLES", "CRICKET_LIBRARY_PATH",
		"CRICKET_LIBRARY_OWNER", "CRICKET_INSIDE", ""};
	unsigned count = 0;
	for (const char *name; (name = ckt_library_environment_name(count)); count++) {
		YES(ckt_library_environment_allows(name, "1"));
		YES(strlen(name) < 64);
		for (unsigned i = 0; i < COUNT(never); i++)
			YES(strcmp(name, never[i]) != 0);
		/* No two are the same. */
		for (unsigned i = 0; i < count; i++)
			YES(strcmp(name, ckt_library_environment_name(i)) != 0);
	}
	YES(count > 30 && count <= CKT_SETTINGS_MAX);
	for (unsigned i = 0; i < COUNT(never); i++)
		NO(ckt_library_environment_allows(never[i], "1"));
}

static void test_values(void)
{
	char longest[CKT_LIBRARY_VALUE_MAX + 2];
	static const char *const good[] = {
		":4096:8", "0", "", "Ring,Tree", "^LL128", "a=b;c.d_e+f-"};
	static const char *const bad[] = {
		"/etc/passwd", "a b", "a\nb", "$(x)", "../x", "\xff", "a\"b"};
	for (unsigned i = 0; i < COUNT(good); i++)
		YES(ckt_library_environment_allows("CUBLAS_WORKSPACE_CONFIG", good[i]));
	for (unsigned i = 0; i < COUNT(bad); i++)
		NO(ckt_library_environment_allows("CUBLAS_WORKSPACE_CONFIG", bad[i]));
	memset(longest, '1', sizeof longest);
	longest[sizeof longest - 1] = 0;
	NO(ckt_library_environment_allows("NCCL_ALGO", longest));
	longest[CKT_LIBRARY_VALUE_MAX] = 0;
	YES(ckt_library_environment_allows("NCCL_ALGO", longest));
}

UNIT_SUITE(library_environment, {"names", test_names}, {"values", test_values})
