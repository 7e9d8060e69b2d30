/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/audit/audit.c: open, write, count, end, and threads that write after the end. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/audit/audit_sources.h"

static const struct ckt_audit_record refused = {
	.event = "refused", .peer = "local", .owner = "uid:7", .call = "hello", .reason = "no"};

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;
	for (; (text = strstr(text, part)); text++)
		found++;
	return found;
}

static bool has_count(void *path)
{
	return strstr(read_file(path), "\"count\":") != NULL;
}

static void test_file(void)
{
	char path[256], message[512] = "";
	struct ckt_audit *audit = NULL;
	const struct ckt_identity seven = {.kind = CKT_IDENTITY_USER, .uid = 7};
	snprintf(path, sizeof path, "%s/audit", directory);
	MUST(ckt_audit_open(path, &server.loop, &audit, message, sizeof message), 0);
	ckt_audit_write(audit, &(struct ckt_audit_record){.event = "control", .call = "list"});
	for (int i = 0; i < 100; i++)
		ckt_audit_write_limited(audit, &seven, 3, &refused);
	/* The timer tells of the rest. */
	YES(run_until(has_count, path));
	const char *text = read_file(path);
	IS(count(text, "\n"), 5);
	IS(count(text, "\"call\":\"list\""), 1);
	HAS(text, "\"reason\":\"no\",\"count\":97}\n");
	/* What is counted when the server ends is told then. */
	for (int i = 0; i < 10; i++)
		ckt_audit_write_limited(audit, &seven, 1, &refused);
	struct ckt_audit *thread = ckt_audit_ref(audit);
	ckt_audit_reopen(audit);
	ckt_audit_close(audit);
	text = read_file(path);
	IS(count(text, "\n"), 6);
	IS(count(text, "\"count\":10}"), 1);
	/* A thread that is late writes nothing, and the memory is its own. */
	ckt_audit_write(thread, &refused);
	ckt_audit_unref(thread);
	IS(count(read_file(path), "\n"), 6);
}

static void test_none(void)
{
	char message[512] = "";
	struct ckt_audit *audit = NULL;
	const struct ckt_identity seven = {.kind = CKT_IDENTITY_USER, .uid = 7};
	ckt_audit_write(NULL, &refused);
	ckt_audit_write_limited(NULL, &seven, 1, &refused);
	ckt_audit_reopen(NULL);
	CU_ASSERT_PTR_NULL(ckt_audit_ref(NULL));
	ckt_audit_unref(NULL);
	ckt_audit_close(NULL);
	YES(ckt_audit_open("/nowhere/audit", &server.loop, &audit, message, sizeof message) < 0);
	HAS(message, "--audit: '/nowhere/audit': No such file or directory: give a path in");
	if (access("/run/systemd/journal/socket", F_OK)) {
		YES(ckt_audit_open(
			    CKT_AUDIT_JOURNAL, &server.loop, &audit, message, sizeof message) < 0);
		HAS(message, "/run/systemd/journal/socket: No such file or directory");
	}
	CU_ASSERT_PTR_NULL(audit);
}

UNIT_SUITE(audit, {"file", test_file}, {"none", test_none})
