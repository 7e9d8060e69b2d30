/* SPDX-License-Identifier: Apache-2.0 */
/* client/run/run_place.c: what cricketctl is asked, and what is made of its answer; a script stands for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/run/run.h"
#include "tests/unit/suite.h"

static char directory[] = "/tmp/ckt-place-XXXXXX", script[64], address[64];

static void ctl(const char *text)
{
	FILE *file = fopen(script, "w");
	MUST(file != NULL, true);
	fprintf(file, "#!/bin/sh\n%s\n", text);
	MUST(fclose(file), 0);
	MUST(chmod(script, 0700), 0);
	strcpy(address, "?");
}

static void test_place(void)
{
	MUST(mkdtemp(directory) != NULL, true);
	snprintf(script, sizeof script, "%s/ctl", directory);
	setenv("TEST_CRICKETCTL", script, 1);
	/* Each server is an argument; empty ones are none. */
	ctl("test \"$*\" = '--server a --server unix:/b place pack' && echo unix:/b && echo more");
	YES(ckt_run_place("pack", "a,,unix:/b,", address, sizeof address));
	TEXT(address, "unix:/b");
	/* Without --server: the variable's. */
	setenv("REMOTE_GPU_ADDRESS", "c,d", 1);
	ctl("test \"$*\" = '--server c --server d place spread' && echo d");
	YES(ckt_run_place("spread", NULL, address, sizeof address));
	TEXT(address, "d");
	/* It fails, says nothing, or is not there. */
	ctl("echo d; exit 3");
	NO(ckt_run_place("spread", "c,d", address, sizeof address));
	ctl("true");
	NO(ckt_run_place("spread", "c,d", address, sizeof address));
	unlink(script);
	NO(ckt_run_place("spread", "c,d", address, sizeof address));
	unsetenv("TEST_CRICKETCTL");
	NO(ckt_run_place("spread", "c,d", address, sizeof address));
	unsetenv("REMOTE_GPU_ADDRESS");
	NO(ckt_run_place("spread", NULL, address, sizeof address));
	NO(ckt_run_place("spread", ",", address, sizeof address));
	NO(ckt_run_place(
		"spread", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", address, sizeof address));
	rmdir(directory);
}

UNIT_SUITE(run_place, {"place", test_place})
