/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/session_devices.c: CUDA_VISIBLE_DEVICES of a worker, from the operator's
 * and the session's GPUs.
 */
#include "server/worker/objects/session_devices.h"

#include <stdlib.h>

#include "tests/unit/suite.h"

#define NARROW(total, ...)                                                             \
	({                                                                             \
		unsigned gpus_[] = {__VA_ARGS__};                                      \
		ckt_worker_devices_narrow(gpus_, sizeof gpus_ / sizeof *gpus_, total); \
	})

static void expect(const char *text)
{
	const char *now = getenv("CUDA_VISIBLE_DEVICES");
	if (text)
		TEXT(now ? now : "(none)", text);
	else
		CU_ASSERT_PTR_NULL(now);
}

static void test_all(void)
{
	unsetenv("CUDA_VISIBLE_DEVICES");
	NO(NARROW(1, 0));
	NO(NARROW(3, 0, 1, 2));
	NO(NARROW(0, 2));
	NO(ckt_worker_devices_narrow(NULL, 0, 2));
	expect(NULL);
}

static void test_some(void)
{
	unsetenv("CUDA_VISIBLE_DEVICES");
	YES(NARROW(3, 0));
	expect("0");
	unsetenv("CUDA_VISIBLE_DEVICES");
	YES(NARROW(8, 7, 3));
	expect("7,3");
	unsetenv("CUDA_VISIBLE_DEVICES");
	YES(NARROW(2, 1, 0));
	expect("1,0");
	unsetenv("CUDA_VISIBLE_DEVICES");
}

/* The operator's list is what the numbers count in. */
static void test_of_operator(void)
{
	setenv("CUDA_VISIBLE_DEVICES", "GPU-12ab,5,GPU-77", 1);
	NO(NARROW(3, 0, 1, 2));
	expect("GPU-12ab,5,GPU-77");
	YES(NARROW(3, 2, 1));
	expect("GPU-77,5");
	setenv("CUDA_VISIBLE_DEVICES", "4", 1);
	NO(NARROW(1, 0));
	/* None of those that there are: left as it is, for the driver to say so. */
	NO(NARROW(1, 3));
	NO(NARROW(4, 3));
	expect("4");
	unsetenv("CUDA_VISIBLE_DEVICES");
}

UNIT_SUITE(narrow, {"all", test_all}, {"some", test_some}, {"of the operator's", test_of_operator})
