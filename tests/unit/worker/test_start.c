/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/start.c: the start: notes of a session, and refusals that name what is
 * wrong, each in a process of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/session/start.h"
#include "tests/unit/worker/inside.h"

static void test_note(void)
{
	char long_text[CKT_MESSAGE_MAX + 100];
	memset(long_text, 'x', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = 0;
	ckt_worker.note[0] = 0;
	ckt_worker_note(&ckt_worker, "%d of %s", 3, "them");
	TEXT(ckt_worker.note, "3 of them");
	ckt_worker_note(&ckt_worker, "and more");
	TEXT(ckt_worker.note, "3 of them; and more");
	for (int i = 0; i < 5; i++)
		ckt_worker_note(&ckt_worker, "%s", long_text);
	IS(strlen(ckt_worker.note), sizeof ckt_worker.note - 1);
	ckt_worker.note[0] = 0;
}

static void test_devices(void)
{
	TEXT(ckt_worker.session, "0123456789ab");
	IS(ckt_worker.device_count, 2);
	IS(ckt_worker.devices[0].total, (uint64_t)4 << 30);
	IS(ckt_worker.devices[1].total, (uint64_t)1 << 30);
	IS(ckt_worker.devices[0].major, 12);
	YES(ckt_worker.driver_version >= 13000);
	IS(ckt_worker.generation, 1);
	YES(ckt_worker.started > 0);
}

/*
 * A fresh worker in a process of its own, which inside.c makes of us: its status, and what it says.
 */
static int start_of(const char *driver, const char *gpus, unsigned total,
	char ret_message[CKT_MESSAGE_MAX], char ret_devices[CKT_MESSAGE_MAX])
{
	char command[1024], line[CKT_MESSAGE_MAX + 16] = "";
	int status = -1, at = 0;
	snprintf(command, sizeof command, "/proc/%d/exe --start '%s' %s %u 2>/dev/null",
		(int)getpid(), driver, gpus, total);
	FILE *pipe = popen(command, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
	YES(fgets(line, sizeof line, pipe) && sscanf(line, "%d %n", &status, &at) == 1);
	size_t size = fread(ret_devices, 1, CKT_MESSAGE_MAX - 1, pipe);
	ret_devices[size] = 0;
	pclose(pipe);
	snprintf(ret_message, CKT_MESSAGE_MAX, "%s", line + at);
	return status;
}

static int start(const char *driver, const char *gpu, char ret_message[CKT_MESSAGE_MAX])
{
	char devices[CKT_MESSAGE_MAX];
	return start_of(driver, gpu, 2, ret_message, devices);
}

/*
 * The driver numbers the session's GPUs as the session does, where it is told how many there are;
 * else libraries are (inside_objects.c).
 */
static void test_numbers(void)
{
	char message[CKT_MESSAGE_MAX], devices[CKT_MESSAGE_MAX];
	IS(start_of(inside_driver, "1", 2, message, devices), 0);
	TEXT(devices, "1: 0 is 0, the server's 1, 1 GiB\n");
	IS(start_of(inside_driver, "1,0", 2, message, devices), 0);
	TEXT(devices, "2: 0 is 0, the server's 1, 1 GiB\n2: 1 is 1, the server's 0, 4 GiB\n");
	IS(start_of(inside_driver, "0", 2, message, devices), 0);
	TEXT(devices, "1: 0 is 0, the server's 0, 4 GiB\n");
	IS(start_of(inside_driver, "0,1", 2, message, devices), 0);
	TEXT(devices, "2: 0 is 0, the server's 0, 4 GiB\n2: 1 is 1, the server's 1, 1 GiB\n");
	IS(start_of(inside_driver, "1", 0, message, devices), 0);
	TEXT(devices, "2: 0 is 1, the server's 1, 1 GiB\n");
}

static void test_refused(void)
{
	char message[CKT_MESSAGE_MAX];
	YES(start("/nowhere/libcuda.so.1", "0", message) < 0);
	HAS(message, "/nowhere/libcuda.so.1");
	YES(start("/dev/null", "0", message) < 0);
	HAS(message, "/dev/null");
	IS(start(inside_driver, "7", message), -ENODEV);
	HAS(message, "opening GPU 7 failed: CUDA_ERROR_INVALID_DEVICE");
	IS(start(inside_driver, "1", message), 0);
}

UNIT_SUITE(start, {"note", test_note}, {"devices", test_devices}, {"numbers", test_numbers},
	{"refused", test_refused})
