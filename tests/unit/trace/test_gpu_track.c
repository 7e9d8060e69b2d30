/* SPDX-License-Identifier: Apache-2.0 */
/* client/trace/gpu_track.c: what the GPU did, on tracks of its own. */
#include "client/trace/gpu_track.h"

#include <stdio.h>
#include <string.h>

#include "in_child.h"
#include "tests/unit/suite.h"

static void launch(unsigned server, uint64_t stream)
{
	ckt_trace_gpu_put(server,
		&(struct ckt_trace_gpu){.name = "launch_kernel",
			.kernel = "add",
			.start_ns = 5000,
			.duration_ns = 1500,
			.stream = stream,
			.grid = {1, 2, 3},
			.block = {4, 5, 6}});
}

static void records(void)
{
	/* Before the file is open, and for a server that there is not: nothing. */
	launch(0, 7);
	ckt_trace_enter(site(0));
	ckt_trace_leave();
	ckt_trace_gpu_server(0, "node");
	launch(0, 9);
	launch(0, 9);
	launch(1, 9);
	launch(CKT_TRACE_GPU_SERVERS, 9);
	ckt_trace_gpu_server(CKT_TRACE_GPU_SERVERS, "none");
	ckt_trace_gpu_put(0,
		&(struct ckt_trace_gpu){
			.name = "memset", .kernel = "", .duration_ns = 1, .bytes = 64});
	ckt_trace_gpu_dropped(0, 4);
	ckt_trace_gpu_dropped(1, 5);
}

static void test_records(void)
{
	IS(in_child(own_path("gpu"), NULL, records), 0);
	const char *text = file_text(own_path("gpu"));
	IS(occurs(text,
		   "\"name\":\"process_name\",\"ph\":\"M\",\"pid\":8388608,\"tid\":0,\"args\":{"
		   "\"name\":\"GPU of node\"}}"),
		1);
	IS(occurs(text, "GPU of none"), 0);
	IS(occurs(text, "\"stream 0x9\""), 2);
	IS(occurs(text, "\"stream 0x7\""), 0);
	IS(occurs(text,
		   "{\"name\":\"add\",\"cat\":\"gpu\",\"ph\":\"X\",\"ts\":5.000,\"dur\":1.500,"
		   "\"pid\":8388608,\"tid\":1,\"args\":{\"stream\":\"0x9\",\"kernel\":\"add\","
		   "\"grid\":[1,2,3],\"block\":[4,5,6],\"shared_bytes\":0}}"),
		2);
	IS(occurs(text, "\"pid\":8388609,\"tid\":1,\"args\":{\"stream\""), 1);
	HAS(text, "\"tid\":2,\"args\":{\"stream\":\"0x0\",\"bytes\":64}}");
	HAS(text, "\"args\":{\"records\":4}}");
	HAS(text, "\"dropped_gpu_records\":9}}\n]\n");
}

static void streams(void)
{
	ckt_trace_enter(site(0));
	ckt_trace_leave();
	for (uint64_t i = 0; i < CKT_TRACE_GPU_STREAMS + 20; i++)
		launch(0, 1000 + i);
}

/* As many tracks as there is room for; the rest shares the last one. */
static void test_streams(void)
{
	IS(in_child(own_path("streams"), NULL, streams), 0);
	const char *text = file_text(own_path("streams"));
	IS(occurs(text, "\"name\":\"add\""), CKT_TRACE_GPU_STREAMS + 20);
	IS(occurs(text, "\"further streams\""), 1);
	IS(occurs(text, "\"tid\":256,\"args\":{\"stream\""), 21);
	IS(occurs(text, "\"tid\":257"), 0);
}

UNIT_SUITE(gpu_track, {"records", test_records}, {"streams", test_streams})
