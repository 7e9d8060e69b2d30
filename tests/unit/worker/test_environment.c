/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/environment.c: the session's settings for libraries: all or none, of the list
 * alone, and not once a library is open.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/libs/environment.h"
#include "server/worker/libs/genuine.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

static int take(const char *name, const char *value, const char *second, const char *second_value)
{
	ckt_setting list[] = {
		{(char *)name, (char *)value}, {(char *)second, (char *)second_value}};
	ckt_environment_args args = {.settings = {second ? 2 : 1, list}};
	return ckt_worker_environment_take(&args);
}

static const char *saved(const char *name)
{
	const ckt_environment_args *all = ckt_worker_environment_settings();
	for (unsigned i = 0; i < all->settings.settings_len; i++)
		if (!strcmp(all->settings.settings_val[i].name, name))
			return all->settings.settings_val[i].value;
	return "(none)";
}

/* A fresh process: the others have a library open. */
static void test_refused(void)
{
	static const char *const never[] = {"LD_PRELOAD", "NCCL_NET_PLUGIN", "CUBLAS_LOGDEST_DBG",
		"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_DEBUG_FILE", "CUDNN_LOGDEST_DBG",
		"CRICKET_INSIDE"};
	for (unsigned i = 0; i < COUNT(never); i++) {
		char before[4096] = "(none)";
		if (getenv(never[i]))
			snprintf(before, sizeof before, "%s", getenv(never[i]));
		/* With a good one before it: none is taken. */
		IS(take("NCCL_PROTO", "LL", never[i], "x"), -EINVAL);
		TEXT(getenv(never[i]) ? getenv(never[i]) : "(none)", before);
	}
	CU_ASSERT_PTR_NULL(getenv("NCCL_PROTO"));
	IS(take("CUBLAS_WORKSPACE_CONFIG", "/tmp/x", NULL, NULL), -EINVAL);
	TEXT(saved("NCCL_PROTO"), "(none)");
}

static void test_taken(void)
{
	bool open = ckt_genuine_at(0) != NULL;
	if (!open) {
		IS(take("CUBLAS_WORKSPACE_CONFIG", ":16:8", "NCCL_ALGO", "Ring"), 0);
		IS(take("CUBLAS_WORKSPACE_CONFIG", ":4096:8", NULL, NULL), 0);
		TEXT(getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
		TEXT(getenv("NCCL_ALGO"), "Ring");
		TEXT(saved("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
		YES(ckt_worker_environment_settings()->settings.settings_len >= 2);
	}
	toy_library();
	/* A library has read it: the same again is what it was, another is too late. */
	IS(take("CUBLAS_WORKSPACE_CONFIG", open ? "x" : ":4096:8", NULL, NULL), open ? -EBUSY : 0);
	IS(take("NCCL_ALGO", "Tree", NULL, NULL), -EBUSY);
	IS(take("NVIDIA_TF32_OVERRIDE", "0", NULL, NULL), -EBUSY);
	CU_ASSERT_PTR_NULL(getenv("NVIDIA_TF32_OVERRIDE"));
}

UNIT_SUITE(libs_environment, {"refused", test_refused}, {"taken", test_taken})
