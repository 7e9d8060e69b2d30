/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/log_limited.c: some messages of a kind, and how many were left out. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "inside.h"
#include "server/daemon/log_limited.h"

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

static void test_limit(void)
{
	char *path = path_in("log");
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ckt_log_init_fd("test", CKT_LOG_INFO, fd);
	server.options.log_burst = 3;
	memset(server.log_buckets, 0, sizeof server.log_buckets);
	for (int i = 0; i < 20; i++)
		ckt_daemon_log_limited(&server, CKT_LIMIT_REFUSED, "stranger %d", i);
	/* One kind leaves the other alone. */
	ckt_daemon_log_limited(&server, CKT_LIMIT_DROPPED, "dropped one");
	const char *text = read_file(path);
	/* A second that passes lets one more through. */
	unsigned told = count(text, "stranger");
	YES(told >= 3 && told < 20);
	IS(count(text, "dropped one"), 1);
	IS(count(text, "left out"), 0);
	unsigned long long suppressed = server.log_buckets[CKT_LIMIT_REFUSED].suppressed;
	IS(suppressed, 20 - told);
	/* After a while it is told of, and what comes later again. */
	YES(server.log_timer.link != NULL);
	ckt_timer_set(&server.loop, &server.log_timer, 0);
	run_for(0);
	IS(count(read_file(path), "left out"), 1);
	IS(server.log_buckets[CKT_LIMIT_REFUSED].suppressed, 0);
	for (int i = 0; i < 20; i++)
		ckt_daemon_log_limited(&server, CKT_LIMIT_REFUSED, "stranger %d", i);
	YES(server.log_timer.link != NULL);
	ckt_daemon_log_limited_fini(&server);
	YES(server.log_timer.link == NULL);
	text = read_file(path);
	IS(count(text, "left out"), 2);
	HAS(text, "refused hellos");
	IS(server.log_buckets[CKT_LIMIT_REFUSED].suppressed, 0);
	/* The descriptor is the log's until the next one. */
	ckt_log_init("test", CKT_LOG_ERROR, NULL);
	server.options.log_burst = 10;
	memset(server.log_buckets, 0, sizeof server.log_buckets);
}

UNIT_SUITE(log_limited, {"limit", test_limit})
