/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/job.h: which names a job may have, and how a hello carries one. */
#include <string.h>

#include "rpc/job.h"
#include "tests/unit/suite.h"

static void test_names(void)
{
	char longest[CKT_JOB_NAME_MAX + 2];
	static const char *const good[] = {"a", "7", "train", "4711.0", "node-1:run_2",
		"6f1b2c1e-0000-4000-8000-aaaaaaaaaaaa"};
	static const char *const bad[] = {"", ".", "..", "-x", ":", "_a", "a b", "a/b", "a\n",
		"\xc3\xa9", "a\033[2J", "a;b", "a*"};
	for (size_t i = 0; i < COUNT(good); i++)
		YES(ckt_job_name_good(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		NO(ckt_job_name_good(bad[i]));
	memset(longest, 'x', sizeof longest);
	longest[CKT_JOB_NAME_MAX + 1] = 0;
	NO(ckt_job_name_good(longest));
	longest[CKT_JOB_NAME_MAX] = 0;
	YES(ckt_job_name_good(longest));
}

static void test_capability(void)
{
	TEXT(ckt_job_of_capability("job:train"), "train");
	TEXT(ckt_job_of_capability("job:a:b"), "a:b");
	CU_ASSERT_PTR_NULL(ckt_job_of_capability("job:"));
	CU_ASSERT_PTR_NULL(ckt_job_of_capability("job:a b"));
	CU_ASSERT_PTR_NULL(ckt_job_of_capability("jobs:a"));
	CU_ASSERT_PTR_NULL(ckt_job_of_capability("copy"));
	CU_ASSERT_PTR_NULL(ckt_job_of_capability(""));
}

UNIT_SUITE(job, {"names", test_names}, {"capability", test_capability})
