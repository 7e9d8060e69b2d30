/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/limit_rule.c: rules of owners' limits, in words and back, and whom they fit. */
#include "server/daemon/policy/limit_rule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rpc/identity.h"
#include "rpc/token_file.h"
#include "tests/unit/suite.h"

static struct ckt_limit_rule rule;
static char message[512];

static int parse(const char *line)
{
	*message = 0;
	return ckt_limit_rule_parse(line, &rule, message, sizeof message);
}

static void test_parse(void)
{
	char text[CKT_LIMIT_LINE_MAX + 1];
	MUST(parse("job=train memory=8G share=30 priority=-5 sessions=4 gpus=0,2-3 # nightly"), 0);
	IS(rule.key, CKT_LIMIT_JOB);
	TEXT(rule.name, "train");
	IS(rule.sets, 31);
	IS(rule.memory_bytes, 8ll << 30);
	IS(rule.share, 30);
	IS(rule.priority, -5);
	IS(rule.sessions, 4);
	IS(rule.gpus, 0xd);
	ckt_limit_rule_text(&rule, text);
	TEXT(text, "job=train memory=8G share=30 priority=-5 sessions=4 gpus=0,2,3");
	/* Down to whole granules. */
	MUST(parse("\tuser=root  memory=5M"), 0);
	IS(rule.owner, 0);
	IS(rule.memory_bytes, 4 << 20);
	ckt_limit_rule_text(&rule, text);
	TEXT(text, "user=root memory=4M");
	MUST(parse("token=alice sessions=0"), 0);
	IS(rule.owner, ckt_owner_of_token("alice"));
	MUST(parse("container=/system.slice/docker-1.scope gpus=63"), 0);
	IS(rule.gpus, (long long)(UINT64_C(1) << 63));
	MUST(parse("session=0123456789ab memory=2M"), 0);
	MUST(parse("job=a swap=3M"), 0);
	IS(rule.sets, CKT_LIMIT_SETS_SWAP);
	IS(rule.swap_bytes, 3 << 20);
	ckt_limit_rule_text(&rule, text);
	TEXT(text, "job=a swap=3M");
	MUST(parse("job=a swap=0 memory=2M"), 0);
	IS(rule.swap_bytes, 0);
	ckt_limit_rule_text(&rule, text);
	TEXT(text, "job=a memory=2M swap=0");
	MUST(parse("token=alice share-mode=space share=5"), 0);
	IS(rule.sets, CKT_LIMIT_SETS_SHARE_MODE | CKT_LIMIT_SETS_SHARE);
	IS(rule.share_mode, CKT_SHARE_SPACE);
	ckt_limit_rule_text(&rule, text);
	TEXT(text, "token=alice share=5 share-mode=space");
	IS(parse("token=alice share-mode=both"), -EINVAL);
	HAS(message, "write time or space");
	IS(parse(""), -ENODATA);
	IS(parse("  # job=train memory=8G"), -ENODATA);
}

/* The narrowest rule decides. */
static void test_share_mode(void)
{
	struct ckt_limit_table table = {0};
	const struct ckt_limit_subject
		subject = {.session = "0123456789ab", .container = "", .job = "a", .owner = 7},
		other = {.session = "", .container = "", .job = "b", .owner = 8};
	MUST(parse("user=7 share-mode=time"), 0);
	MUST(ckt_limit_table_put(&table, &rule), 0);
	IS(ckt_limit_table_share_mode(&table, &subject, CKT_SHARE_SPACE), CKT_SHARE_TIME);
	MUST(parse("job=a share-mode=space"), 0);
	MUST(ckt_limit_table_put(&table, &rule), 0);
	IS(ckt_limit_table_share_mode(&table, &subject, CKT_SHARE_TIME), CKT_SHARE_SPACE);
	MUST(parse("job=a share-mode=time"), 0);
	MUST(ckt_limit_table_put(&table, &rule), 0);
	IS(ckt_limit_table_share_mode(&table, &subject, CKT_SHARE_SPACE), CKT_SHARE_TIME);
	IS(ckt_limit_table_share_mode(&table, &other, CKT_SHARE_SPACE), CKT_SHARE_SPACE);
	ckt_limit_table_free(&table);
}

/* Owners that agree: named by user= and token= alone. */
static void test_share_group(void)
{
	struct ckt_limit_table table = {0};
	char text[CKT_LIMIT_LINE_MAX + 1];
	const struct ckt_limit_subject
		alice = {.session = "",
			.container = "/x",
			.job = "lab",
			.owner = ckt_owner_of_token("7")},
		user = {.session = "", .container = "/x", .job = "lab", .owner = 7},
		nobody = {.session = "", .container = "/x", .job = "lab", .owner = CKT_UID_UNKNOWN};
	MUST(parse("token=7 share-group=lab-14-letters"), 0);
	ckt_limit_rule_text(&rule, text);
	TEXT(text, "token=7 share-group=lab-14-letters");
	MUST(ckt_limit_table_put(&table, &rule), 0);
	TEXT(ckt_limit_table_share_group(&table, &alice), "lab-14-letters");
	/* A user of that name, or who says a job of it, is another. */
	TEXT(ckt_limit_table_share_group(&table, &user), "");
	TEXT(ckt_limit_table_share_group(&table, &nobody), "");
	MUST(parse("token=7 share-group=none"), 0);
	ckt_limit_rule_text(&rule, text);
	TEXT(text, "token=7 share-group=none");
	MUST(ckt_limit_table_put(&table, &rule), 0);
	TEXT(ckt_limit_table_share_group(&table, &alice), "");
	ckt_limit_table_free(&table);
	static const char *const keys_refused[] = {"job=lab share-group=lab",
		"container=/x share-group=lab", "session=0123456789ab share-group=lab",
		"job=lab share-group=none"};
	for (unsigned i = 0; i < COUNT(keys_refused); i++) {
		IS(parse(keys_refused[i]), -EINVAL);
		HAS(message, "write it for user= or token=");
	}
	/* A comment after one that was refused. */
	IS(parse("# nothing"), -ENODATA);
	static const char *const names[] = {"", "@lab", "../lab", "Lab", "lab-of-15-chars", "-lab"};
	for (unsigned i = 0; i < COUNT(names); i++) {
		snprintf(text, sizeof text, "user=7 share-group=%s", names[i]);
		IS(parse(text), -EINVAL);
		HAS(message, "write 1 to 14 of a-z");
	}
}

static void test_refuse(void)
{
	static const struct {
		const char *line, *word, *remedy;
	} cases[] = {
		{"memory=8G", "'memory=8G'", "session=, user=, container="},
		{"job=train", "'job=train'", "add memory="},
		{"job= memory=8G", "'job='", "missing"},
		{"job=-a memory=8G", "'job=-a'", "letter or digit"},
		{"user=no-such-user-here memory=8G", "no-such-user-here", "a number"},
		{"session=01234 memory=8G", "'session=01234'", "cricketctl ps"},
		{"container=docker memory=8G", "'container=docker'", "/sys/fs/cgroup"},
		{"container=/a/ memory=8G", "'container=/a/'", "not last"},
		{"token=Alice memory=8G", "'token=Alice'", "a-z"},
		{"job=a memory=8X", "'memory=8X'", "such as 512M"},
		{"job=a memory=1M", "'memory=1M'", "2M or more"},
		{"job=a memory=-2G", "'memory=-2G'", "such as 512M"},
		{"job=a swap=", "'swap='", "or 0 for none"},
		{"job=a swap=much", "'swap=much'", "or 0 for none"},
		{"job=a share=0", "'share=0'", "1 to 100"},
		{"job=a share=101", "'share=101'", "1 to 100"},
		{"job=a priority=101", "'priority=101'", "-100 to 100"},
		{"job=a priority=", "'priority='", "-100 to 100"},
		{"job=a sessions=1e3", "'sessions=1e3'", "whole number"},
		{"job=a gpus=", "'gpus='", "0,2-3"},
		{"job=a gpus=64", "'gpus=64'", "0,2-3"},
		{"job=a gpus=3-2", "'gpus=3-2'", "0,2-3"},
		{"job=a gpus=1,", "'gpus=1,'", "0,2-3"},
		{"job=a gpus=all", "'gpus=all'", "0,2-3"},
		{"job=a memory=2M memory=4M", "'memory=4M'", "once"},
		{"job=a speed=9", "'speed=9'", "priority="},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		IS(parse(cases[i].line), -EINVAL);
		HAS(message, cases[i].word);
		HAS(message, cases[i].remedy);
	}
	char line[CKT_LIMIT_LINE_MAX + 3];
	memset(line, ' ', sizeof line);
	line[sizeof line - 1] = 0;
	IS(parse(line), -EINVAL);
	HAS(message, "longer than");
}

static void test_fit(void)
{
	struct ckt_limit_subject a = {"0123456789ab", "/docker/one", "train", 1000},
				 b = {"ba9876543210", "/docker/one/child", "train", 1001},
				 nobody = {"", "", "", CKT_UID_UNKNOWN};
	parse("container=/docker/one memory=2M");
	YES(ckt_limit_fits(&rule, &a));
	YES(ckt_limit_fits(&rule, &b));
	YES(ckt_limit_counts(&rule, &a, &b));
	NO(ckt_limit_fits(&rule, &nobody));
	a.container = "/docker/onetwo";
	NO(ckt_limit_fits(&rule, &a));
	/* Nobody uses up another's job by naming it. */
	parse("job=train memory=2M");
	YES(ckt_limit_fits(&rule, &a));
	YES(ckt_limit_fits(&rule, &b));
	NO(ckt_limit_counts(&rule, &a, &b));
	b.owner = 1000;
	YES(ckt_limit_counts(&rule, &a, &b));
	parse("user=1000 memory=2M");
	YES(ckt_limit_counts(&rule, &a, &b));
	NO(ckt_limit_fits(&rule, &nobody));
	parse("session=0123456789ab memory=2M");
	YES(ckt_limit_fits(&rule, &a));
	NO(ckt_limit_fits(&rule, &b));
	parse("token=alice memory=2M");
	NO(ckt_limit_fits(&rule, &a));
	a.owner = ckt_owner_of_token("alice");
	YES(ckt_limit_fits(&rule, &a));
}

static void test_table(void)
{
	struct ckt_limit_table table = {0};
	parse("user=root memory=8G share=20");
	IS(ckt_limit_table_put(&table, &rule), 0);
	parse("job=root memory=1G");
	IS(ckt_limit_table_put(&table, &rule), 0);
	/* The same user by its number: what is set replaces, the rest stays. */
	parse("user=0 memory=4G sessions=2 priority=3 gpus=1");
	rule.live = true;
	IS(ckt_limit_table_put(&table, &rule), 0);
	IS(table.count, 2);
	const struct ckt_limit_rule *found = ckt_limit_table_find(&table, &rule);
	MUST(found != NULL, true);
	IS(found->sets, 31);
	IS(found->memory_bytes, 4ll << 30);
	IS(found->share, 20);
	YES(found->live);
	YES(ckt_limit_table_remove(&table, &rule));
	NO(ckt_limit_table_remove(&table, &rule));
	IS(table.count, 1);
	TEXT(table.rules[0].name, "root");
	IS(table.rules[0].key, CKT_LIMIT_JOB);
	ckt_limit_table_free(&table);
}

UNIT_SUITE(limit_rule, {"share mode", test_share_mode}, {"share group", test_share_group},
	{"parse", test_parse}, {"refuse", test_refuse}, {"fit", test_fit}, {"table", test_table})
