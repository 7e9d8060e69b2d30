/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/compiler_process.c: it is started where workers have a cage, again when it
 * ends, and gets a socket for each worker.
 */
#include "server/daemon/session/compiler_process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "inside.h"

static char *out;

static unsigned lines(void)
{
	unsigned n = 0;
	for (const char *p = read_file(out); (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

static bool has_lines(void *wanted)
{
	return lines() >= *(unsigned *)wanted;
}

static void begin(const char *then)
{
	static char path[128];
	char script[512];
	snprintf(path, sizeof path, "%s", path_in("compiler.out"));
	out = path;
	write_file(out, "", 0666);
	snprintf(script, sizeof script, "#!/bin/sh\necho \"$$ $*\" >> %s\n%s\n", out, then);
	snprintf(server.worker_path, sizeof server.worker_path, "%s", path_in("compiler.sh"));
	write_file(server.worker_path, script, 0755);
	getrlimit(RLIMIT_NOFILE, &server.descriptors);
	server.driver.soft = true;
	server.options.cage = (char *)"on";
	server.options.log_level = (char *)"info";
	ckt_log_level = CKT_LOG_QUIET;
	ckt_compiler_init(&server);
}

static void end(void)
{
	ckt_compiler_fini(&server);
	IS(server.compiler == NULL, 1);
	IS(ckt_compiler_connect(server.compiler), -1);
	server.driver.soft = false;
	server.options.cage = NULL;
	ckt_log_level = CKT_LOG_ERROR;
}

static void test_connections(void)
{
	char byte;
	unsigned wanted = 1;
	/* It takes what comes, and closes it, until the server is gone. */
	begin("exec cat <&3 >/dev/null");
	YES(run_until(has_lines, &wanted));
	HAS(read_file(out), " --compiler\n");
	int first = ckt_compiler_connect(server.compiler),
	    second = ckt_compiler_connect(server.compiler);
	YES(first >= 0 && second >= 0);
	IS(recv(first, &byte, 1, 0), 0);
	IS(recv(second, &byte, 1, 0), 0);
	close(first);
	close(second);
	/* After a crash it is there again, and takes connections. */
	IS(kill(atoi(read_file(out)), SIGKILL), 0);
	wanted = 2;
	YES(run_until(has_lines, &wanted));
	first = ckt_compiler_connect(server.compiler);
	YES(first >= 0);
	IS(recv(first, &byte, 1, 0), 0);
	close(first);
	end();
}

/* In that long: two at once, then after 100 ms, 200 ms, and so on. */
static unsigned most_starts(int64_t took_ms)
{
	unsigned starts = 2;
	for (int64_t pause_ms = 100; took_ms >= pause_ms; starts++, pause_ms *= 2)
		took_ms -= pause_ms;
	return starts;
}

/* One that ends at once is started less and less often. */
static void test_crashes(void)
{
	unsigned wanted = 3;
	int64_t begun_ms = ckt_net_now_ms();
	begin("exit 1");
	YES(run_until(has_lines, &wanted));
	run_for(300);
	/* However long that took. */
	unsigned starts = lines();
	YES(starts <= most_starts(ckt_net_now_ms() - begun_ms));
	end();
}

static void test_missing(void)
{
	begin("exit 0");
	end();
	snprintf(server.worker_path, sizeof server.worker_path, "%s", path_in("no-compiler"));
	server.driver.soft = true;
	server.options.cage = (char *)"on";
	ckt_log_level = CKT_LOG_QUIET;
	ckt_compiler_init(&server);
	IS(ckt_compiler_connect(server.compiler), -1);
	end();
	/* Without a cage, and with NVIDIA's driver, there is none. */
	ckt_compiler_init(&server);
	IS(server.compiler == NULL, 1);
	server.driver.soft = true;
	server.options.cage = (char *)"off";
	ckt_compiler_init(&server);
	IS(server.compiler == NULL, 1);
	end();
}

UNIT_SUITE(compiler_process, {"connections", test_connections}, {"crashes", test_crashes},
	{"missing", test_missing})
