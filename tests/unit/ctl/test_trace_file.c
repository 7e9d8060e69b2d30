/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/trace_file.c: records as a file that viewers open, whole or not at all. */
#include "ctl/trace_file.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

static ckt_traced_call call_of(const char *name, const char *kernel, unsigned flags)
{
	return (ckt_traced_call){.name = (char *)name,
		.kernel = (char *)kernel,
		.flags = flags,
		.thread = 4,
		.start_ns = 5000,
		.duration_ns = 250,
		.stream = 0xab,
		.bytes = 12,
		.grid = {1, 2, UINT32_MAX},
		.block = {32, 1, 1}};
}

static const char *text_of(json_t *event, const char *name)
{
	return json_string_value(json_object_get(event, name));
}

static void test_file(void)
{
	struct ckt_ctl_trace_file file;
	const char *path = path_in("trace.json");
	/* The names are a peer's: quotation marks, bytes that are no UTF-8. */
	ckt_traced_call calls[] = {
		call_of("launch_kernel", "a\"b\xff", CKT_TRACED_LAUNCH | CKT_TRACED_STREAM),
		call_of("launch_kernel", "add",
			CKT_TRACED_LAUNCH | CKT_TRACED_STREAM | CKT_TRACED_GPU),
		call_of("ctx_synchronize", "", CKT_TRACED_WAITED)};
	ckt_control_trace_res res = {.dropped = 2, .calls = {3, calls}};
	IS(ckt_ctl_trace_file_open(path, "0123", &file), CKT_EXIT_DONE);
	NO(exists(path));
	YES(exists(file.temporary));
	IS(ckt_ctl_trace_file_put(&file, &res), CKT_EXIT_DONE);
	IS(ckt_ctl_trace_file_put(&file, &res), CKT_EXIT_DONE);
	IS(ckt_ctl_trace_file_keep(&file), CKT_EXIT_DONE);
	NO(exists(file.temporary));
	IS(file.calls, 6);
	json_t *list = json_load_file(path, 0, NULL);
	/* Two processes, one stream's track, the records, the end. */
	IS(json_array_size(list), 2 + 1 + 6 + 1);
	json_t *launch = json_array_get(list, 2), *args = json_object_get(launch, "args");
	TEXT(text_of(launch, "name"), "launch_kernel");
	IS(json_integer_value(json_object_get(launch, "tid")), 4);
	YES(json_number_value(json_object_get(launch, "ts")) == 5.0);
	YES(json_number_value(json_object_get(launch, "dur")) == 0.25);
	HAS(text_of(args, "kernel"), "a\"b");
	IS(json_integer_value(json_array_get(json_object_get(args, "grid"), 2)), UINT32_MAX);
	TEXT(text_of(args, "stream"), "0xab");
	/* The GPU's work has the kernel's name, on the track of its stream. */
	json_t *track = json_array_get(list, 3), *gpu = json_array_get(list, 4);
	TEXT(text_of(json_object_get(track, "args"), "name"), "stream 0xab");
	TEXT(text_of(gpu, "name"), "add");
	IS(json_integer_value(json_object_get(gpu, "tid")),
		json_integer_value(json_object_get(track, "tid")));
	json_t *end = json_object_get(json_array_get(list, 9), "args");
	IS(json_integer_value(json_object_get(end, "dropped_records")), 4);
	json_decref(list);
}

/* Many streams share the last track instead of more memory. */
static void test_streams(void)
{
	struct ckt_ctl_trace_file file;
	const char *path = path_in("streams.json");
	ckt_traced_call call = call_of("memset", "", CKT_TRACED_GPU | CKT_TRACED_STREAM);
	ckt_control_trace_res res = {.calls = {1, &call}};
	IS(ckt_ctl_trace_file_open(path, "0123", &file), CKT_EXIT_DONE);
	for (unsigned i = 0; i < CKT_CTL_TRACE_STREAMS + 10u; i++) {
		call.stream = i;
		ckt_ctl_trace_file_put(&file, &res);
	}
	IS(file.stream_count, CKT_CTL_TRACE_STREAMS);
	ckt_ctl_trace_file_drop(&file);
	NO(exists(file.temporary));
	NO(exists(path));
}

UNIT_SUITE(trace_file, {"file", test_file}, {"streams", test_streams})
