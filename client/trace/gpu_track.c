/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_track.h. */
#include "client/trace/gpu_track.h"

#include <stdio.h>
#include <string.h>

#include "client/trace/event.h"
#include "client/trace/recorder.h"

/* All under ckt_trace_lock. */
static struct track_list {
	unsigned count;
	uint64_t streams[CKT_TRACE_GPU_STREAMS];
} tracks[CKT_TRACE_GPU_SERVERS];

/* Precondition: ckt_trace_lock held, and the file is open. */
static int track_of(unsigned server, uint64_t stream)
{
	struct track_list *list = &tracks[server];
	char name[32];
	for (unsigned i = 0; i < list->count; i++)
		if (list->streams[i] == stream)
			return (int)i + 1;
	if (list->count == CKT_TRACE_GPU_STREAMS)
		return CKT_TRACE_GPU_STREAMS;
	list->streams[list->count++] = stream;
	if (list->count == CKT_TRACE_GPU_STREAMS)
		snprintf(name, sizeof name, "further streams");
	else
		snprintf(name, sizeof name, "stream 0x%llx", (unsigned long long)stream);
	ckt_trace_writer_name(
		"thread_name", (int)(CKT_TRACE_GPU_PID + server), (int)list->count, name);
	return (int)list->count;
}

void ckt_trace_gpu_server(unsigned server, const char *name)
{
	char text[80];
	if (server >= CKT_TRACE_GPU_SERVERS)
		return;
	snprintf(text, sizeof text, "GPU of %s", name);
	pthread_mutex_lock(&ckt_trace_lock);
	if (ckt_trace_writer_open())
		ckt_trace_writer_name("process_name", (int)(CKT_TRACE_GPU_PID + server), 0, text);
	pthread_mutex_unlock(&ckt_trace_lock);
}

void ckt_trace_gpu_put(unsigned server, const struct ckt_trace_gpu *gpu)
{
	bool launch = *gpu->kernel;
	struct ckt_trace_record record = {
		.flags = CKT_TRACE_F_STREAM | (launch ? CKT_TRACE_F_KERNEL : CKT_TRACE_F_BYTES),
		.stream = gpu->stream,
		.bytes = gpu->bytes};
	if (server >= CKT_TRACE_GPU_SERVERS)
		return;
	memcpy(record.grid, gpu->grid, sizeof record.grid);
	memcpy(record.block, gpu->block, sizeof record.block);
	struct ckt_trace_text text = {.name = launch ? gpu->kernel : gpu->name,
		.category = CKT_TRACE_GPU,
		.kernel = gpu->kernel,
		.pid = (int)(CKT_TRACE_GPU_PID + server),
		.start_ns = gpu->start_ns,
		.duration_ns = gpu->duration_ns};
	pthread_mutex_lock(&ckt_trace_lock);
	if (ckt_trace_writer_open()) {
		text.tid = track_of(server, gpu->stream);
		ckt_trace_writer_commit(
			ckt_trace_event_put(ckt_trace_writer_begin(), &record, &text));
	}
	pthread_mutex_unlock(&ckt_trace_lock);
}

void ckt_trace_gpu_dropped(unsigned server, uint64_t records)
{
	pthread_mutex_lock(&ckt_trace_lock);
	ckt_trace_state.gpu_dropped += records;
	if (ckt_trace_writer_open())
		ckt_trace_writer_dropped((int)(CKT_TRACE_GPU_PID + server), 0, records);
	pthread_mutex_unlock(&ckt_trace_lock);
}
