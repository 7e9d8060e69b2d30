/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/certificate/certificate_ledger.c: lines that are added, cut, malformed and found. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/certificate/certificate_ledger.h"
#include "inside.h"

static struct ckt_ctl_problem problem;

static int open_text(const char *text, struct ckt_ctl_ledger *ret_ledger)
{
	write_file(path_in("ledger.jsonl"), text);
	int fd = open(directory, O_RDONLY | O_DIRECTORY);
	int result = ckt_ctl_ledger_open(fd, directory, ret_ledger, &problem);
	close(fd);
	return result;
}

static int add(struct ckt_ctl_ledger *ledger, const char *event, const char *kind, const char *name,
	const char *serial)
{
	return ckt_ctl_ledger_add(ledger,
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "event", event, "kind", kind, "name",
			name, "serial", serial, "not_after", 99, "revoked", 7),
		&problem);
}

static void test_lines(void)
{
	struct ckt_ctl_ledger ledger;
	MUST(open_text("", &ledger), 0);
	CU_ASSERT_PTR_NULL(ckt_ctl_ledger_find(&ledger, NULL, "a"));
	IS(add(&ledger, "issue", "client", "a", "01"), 0);
	IS(add(&ledger, "renew", "client", "a", "02"), 0);
	IS(add(&ledger, "issue", "server", "b", "03"), 0);
	IS(add(&ledger, "revoke", "client", "a", "01"), 0);
	for (int again = 0; again < 2; again++) {
		IS(json_array_size(ledger.lines), 4);
		const json_t *line = ckt_ctl_ledger_find(&ledger, NULL, "a");
		TEXT(ckt_ctl_ledger_text(line, "serial"), "02");
		IS(ckt_ctl_ledger_not_after(line), 99);
		IS(strlen(ckt_ctl_ledger_text(line, "time")), 20);
		TEXT(ckt_ctl_ledger_text(line, "nothing"), "");
		TEXT(ckt_ctl_ledger_text(ckt_ctl_ledger_find(&ledger, NULL, "01"), "name"), "a");
		CU_ASSERT_PTR_NULL(ckt_ctl_ledger_find(&ledger, "server", "a"));
		IS(ckt_ctl_ledger_revoked(&ledger, "01"), 7);
		IS(ckt_ctl_ledger_revoked(&ledger, "02"), 0);
		NO(ckt_ctl_ledger_is_ambiguous(&ledger, "a"));
		/* The same from the file, with half a line of a killed process. */
		ckt_ctl_ledger_close(&ledger);
		char text[4096];
		snprintf(text, sizeof text, "%s{\"event\":\"iss",
			read_file(path_in("ledger.jsonl")));
		MUST(open_text(text, &ledger), 0);
	}
	IS(add(&ledger, "issue", "server", "a", "04"), 0);
	YES(ckt_ctl_ledger_is_ambiguous(&ledger, "a"));
	ckt_ctl_ledger_close(&ledger);
	CU_ASSERT_PTR_NULL(strstr(read_file(path_in("ledger.jsonl")), "iss{"));
	char *text = strdup(read_file(path_in("ledger.jsonl")));
	MUST(open_text(text, &ledger), 0);
	IS(json_array_size(ledger.lines), 5);
	ckt_ctl_ledger_close(&ledger);
	free(text);
}

static void test_bad(void)
{
	static const char *const texts[] = {
		"\n", "x\n", "[]\n", "{}\n{\n", "{\"a\":1,\"a\":2}\n", "{} {}\n"};
	struct ckt_ctl_ledger ledger;
	for (unsigned i = 0; i < COUNT(texts); i++) {
		IS(open_text(texts[i], &ledger), -EINVAL);
		HAS(problem.text, "the line is not a JSON object");
	}
	unlink(path_in("ledger.jsonl"));
	int fd = open(directory, O_RDONLY | O_DIRECTORY);
	IS(ckt_ctl_ledger_open(fd, directory, &ledger, &problem), -ENOENT);
	close(fd);
	/* What cannot be written is not there, and what is there stays. */
	MUST(open_text("{}\n", &ledger), 0);
	close(ledger.fd);
	ledger.fd = open(path_in("ledger.jsonl"), O_RDONLY);
	YES(add(&ledger, "issue", "client", "a", "01") < 0);
	IS(json_array_size(ledger.lines), 1);
	ckt_ctl_ledger_close(&ledger);
	TEXT(read_file(path_in("ledger.jsonl")), "{}\n");
	unlink(path_in("ledger.jsonl"));
}

UNIT_SUITE(certificate_ledger, {"lines", test_lines}, {"bad", test_bad})
