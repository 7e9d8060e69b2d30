/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/audit/audit_line.c: keys in their order, and texts that would forge a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"
#include "server/daemon/audit/audit_line.h"

static const struct timespec when = {1795458234, 7999999};

static char *line_of(const struct ckt_audit_record *record)
{
	static char text[8192];
	json_t *object = ckt_audit_line_object(record, &when);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	char *line = ckt_audit_line_text(object);
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	snprintf(text, sizeof text, "%s", line);
	free(line);
	json_decref(object);
	return text;
}

static void test_keys(void)
{
	TEXT(line_of(&(struct ckt_audit_record){.event = "control",
		     .peer = "10.0.0.7",
		     .pid = 17,
		     .owner = "token:alice",
		     .role = "user",
		     .call = "save",
		     .session = "0123456789ab",
		     .object = "stage-1",
		     .program = "nbody",
		     .worker = 18,
		     .result = "refused",
		     .reason = "no",
		     .count = 3}),
		"{\"time\":\"2026-11-23T18:23:54.007Z\",\"event\":\"control\",\"peer\":\"10.0.0.7\","
		"\"pid\":17,\"owner\":\"token:alice\",\"role\":\"user\",\"call\":\"save\","
		"\"session\":\"0123456789ab\",\"object\":\"stage-1\",\"program\":\"nbody\","
		"\"worker\":18,\"result\":\"refused\",\"reason\":\"no\",\"count\":3}");
	/* What is empty is absent, and one event needs no count. */
	TEXT(line_of(&(struct ckt_audit_record){.event = "refused", .session = "", .count = 1}),
		"{\"time\":\"2026-11-23T18:23:54.007Z\",\"event\":\"refused\"}");
}

static void test_forged(void)
{
	static const struct {
		const char *program, *says;
	} cases[] = {
		{"a\n{\"time\":\"x\"}", "\"program\":\"a\\n{\\\"time\\\":\\\"x\\\"}\"}"},
		{"a\r\x7f\x1b[2J", "\"program\":\"a\\r\x7f\\u001B[2J\"}"},
		{"caf\xc3\xa9", "\"program\":\"caf\\u00E9\"}"},
		{"line\xe2\x80\xa8separator", "\"program\":\"line\\u2028separator\"}"},
		{"\xff", "\"program\":\"\\uFFFD\"}"},
		{"a\xc3", "\"program\":\"a\\uFFFD\"}"},
		{"\xc3\n\xc3\xa9", "\"program\":\"\\uFFFD\\n\\u00E9\"}"},
		/* An overlong line's end, half a surrogate pair, beyond Unicode. */
		{"\xc0\x8a", "\"program\":\"\\uFFFD\\uFFFD\"}"},
		{"\xed\xa0\x80!", "\"program\":\"\\uFFFD\\uFFFD\\uFFFD!\"}"},
		{"\xf4\x90\x80\x80", "\"program\":\"\\uFFFD\\uFFFD\\uFFFD\\uFFFD\"}"},
		{"\xff\xf0\x9f\x98\x80", "\"program\":\"\\uFFFD\\uD83D\\uDE00\"}"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *line = line_of(&(struct ckt_audit_record){.program = cases[i].program});
		if (!HAS(line, cases[i].says))
			fprintf(stderr, "case %zu: %s\n", i, line);
		CU_ASSERT_PTR_NULL(strchr(line, '\n'));
		json_t *back = json_loads(line, 0, NULL);
		CU_ASSERT_PTR_NOT_NULL(back);
		IS(json_object_size(back), 2);
		json_decref(back);
	}
	/* All bytes, at the greatest length. */
	char every[CKT_MESSAGE_MAX + 1] = "";
	for (size_t i = 0; i < sizeof every - 1; i++)
		every[i] = (char)(i % 255 + 1);
	CU_ASSERT_PTR_NULL(strchr(line_of(&(struct ckt_audit_record){.reason = every}), '\n'));
}

UNIT_SUITE(audit_line, {"keys", test_keys}, {"forged", test_forged})
