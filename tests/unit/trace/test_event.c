/* SPDX-License-Identifier: Apache-2.0 */
/* client/trace/event.c: one record as a line. */
#include "client/trace/event.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

static const char *put(const struct ckt_trace_record *record, const struct ckt_trace_text *text)
{
	static char buffer[CKT_TRACE_EVENT_MAX + 1];
	size_t size = ckt_trace_event_put(buffer, record, text);
	YES(size < CKT_TRACE_EVENT_MAX);
	buffer[size] = 0;
	return buffer;
}

static void test_launch(void)
{
	struct ckt_trace_record record = {.flags = CKT_TRACE_F_STREAM | CKT_TRACE_F_KERNEL,
		.stream = 0x1234,
		.kernel = 0xabc,
		.grid = {5, 6, 7},
		.block = {32, 2, 1},
		.shared_bytes = 48,
		.commands = 1};
	struct ckt_trace_text text = {.name = "cudaLaunchKernel",
		.category = CKT_TRACE_RUNTIME,
		.kernel = "add",
		.pid = 10,
		.tid = 11,
		.start_ns = 1234567,
		.duration_ns = 89};
	TEXT(put(&record, &text),
		"{\"name\":\"cudaLaunchKernel\",\"cat\":\"runtime\",\"ph\":\"X\",\"ts\":1234.567,"
		"\"dur\":0.089,\"pid\":10,\"tid\":11,\"args\":{\"stream\":\"0x1234\",\"kernel\":"
		"\"add\",\"grid\":[5,6,7],\"block\":[32,2,1],\"shared_bytes\":48,\"commands\":1,"
		"\"waited\":false}}");
	text.kernel = NULL;
	HAS(put(&record, &text), "\"kernel\":\"0xabc\"");
}

static void test_copy(void)
{
	struct ckt_trace_record record = {
		.flags = CKT_TRACE_F_BYTES | CKT_TRACE_F_WAITED, .bytes = 4096, .commands = 2};
	struct ckt_trace_text text = {.name = "cuMemcpy", .category = CKT_TRACE_DRIVER};
	const char *line = put(&record, &text);
	HAS(line, "\"cat\":\"driver\"");
	HAS(line, "\"args\":{\"bytes\":4096,\"commands\":2,\"waited\":true}}");
	record.flags = CKT_TRACE_F_STREAM;
	HAS(put(&record, &text), "\"stream\":\"0x0\"");
}

/* A name of the program's must not end the string, nor overflow the line. */
static void test_names(void)
{
	char buffer[2048], long_name[4000];
	*ckt_trace_string_put(buffer, "a\"b\\c\ne\xff", 100) = 0;
	TEXT(buffer, "\"a\\\"b\\\\c?e?\"");
	*ckt_trace_string_put(buffer, "abcdef", 3) = 0;
	TEXT(buffer, "\"abc\"");
	memset(long_name, '"', sizeof long_name);
	long_name[sizeof long_name - 1] = 0;
	struct ckt_trace_record record = {
		.flags = 15, .stream = UINT64_MAX, .bytes = UINT64_MAX, .commands = UINT32_MAX};
	memset(record.grid, 255, sizeof record.grid);
	memset(record.block, 255, sizeof record.block);
	struct ckt_trace_text text = {.name = long_name,
		.kernel = long_name,
		.start_ns = UINT64_MAX,
		.duration_ns = UINT64_MAX};
	YES(strlen(put(&record, &text)) > 1000);
}

UNIT_SUITE(event, {"a launch", test_launch}, {"a copy", test_copy}, {"names", test_names})
