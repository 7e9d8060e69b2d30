/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/nvml/driver_probe.c: which CUDA driver the sessions get: what is none is named,
 * what is one is counted, in a child.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/daemon/nvml/driver_probe.h"
#include "inside.h"

static struct ckt_driver_info info;
static char message[1024];

static void test_refused(void)
{
	write_file(path_in("text.so"), "this is no library", 0600);
	const struct {
		const char *choice, *soft, *says;
		int result;
	} cases[] = {
		{"/nonexistent/libcuda.so.1", NULL, "--driver: '/nonexistent/libcuda.so.1'",
			-ENOENT},
		{path_in("text.so"), NULL, "give another path, or soft", -ENOENT},
		{"libc.so.6", NULL, "libc.so.6 has no cuInit, so it is not a CUDA driver",
			-ENOEXEC},
		{"soft", NULL, "the soft GPU is not installed", -ENOENT},
		{"soft", "/nonexistent/soft.so", "the soft GPU does not start", -ENOENT},
		{"soft", "libc.so.6", "the soft GPU does not start: libc.so.6 has no cuInit",
			-ENOEXEC},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		memset(&info, 0x55, sizeof info);
		IS(ckt_driver_choose(
			   cases[i].choice, cases[i].soft, &info, message, sizeof message),
			cases[i].result);
		HAS(message, cases[i].says);
		IS(info.gpu_count, 0x55555555); /* only written where there is one */
	}
}

static void test_found(void)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(soft_driver);
	setenv("CRICKET_SOFT_DEVICES", "12.0:4G,9.0:1G", 1);
	IS(ckt_driver_choose("soft", soft_driver, &info, message, sizeof message), 0);
	TEXT(message, "");
	YES(info.soft);
	MUST(info.gpu_count, 2);
	YES(info.gpus[0].memory_bytes > info.gpus[1].memory_bytes);
	YES(memcmp(info.gpus[0].uuid, info.gpus[1].uuid, sizeof info.gpus[0].uuid) != 0);
	YES(info.gpus[0].name[0] && info.path[0] == '/');
	/* By its path it is the soft GPU where it is the one that is known. */
	char path[sizeof info.path];
	strcpy(path, info.path);
	IS(ckt_driver_choose(path, path, &info, message, sizeof message), 0);
	YES(info.soft);
	IS(ckt_driver_choose(path, NULL, &info, message, sizeof message), 0);
	NO(info.soft);
	unsetenv("CRICKET_SOFT_DEVICES");
}

UNIT_SUITE(driver, {"refused", test_refused}, {"found", test_found})
