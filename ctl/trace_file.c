/* SPDX-License-Identifier: Apache-2.0 */
/* See trace_file.h. */
#include "ctl/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/print.h"

/* Tracks of the file: the commands by the client's thread, and the GPU's work by stream. */
enum { COMMANDS = 1, GPU = 2 };

static int problem(const char *path, int error)
{
	fprintf(stderr, "cricketctl: cannot write %s: %s\n", path, strerror(error));
	return CKT_EXIT_REFUSED;
}

/* Prints and frees the event. */
static void put(struct ckt_ctl_trace_file *file, json_t *event, const char *after)
{
	if (!event || json_dumpf(event, file->file, JSON_COMPACT | JSON_PRESERVE_ORDER))
		errno = errno ? errno : ENOMEM;
	json_decref(event);
	fputs(after, file->file);
}

static void put_name(
	struct ckt_ctl_trace_file *file, const char *what, int pid, unsigned tid, const char *name)
{
	put(file,
		json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "name", what, "ph", "M", "pid", pid,
			"tid", (int)tid, "args", "name", ckt_ctl_json_text(name)),
		",\n");
}

int ckt_ctl_trace_file_open(
	const char *path, const char *session, struct ckt_ctl_trace_file *ret_file)
{
	char name[64];
	*ret_file = (struct ckt_ctl_trace_file){.path = path};
	int n = snprintf(ret_file->temporary, sizeof ret_file->temporary, "%s.%d.partial", path,
		(int)getpid());
	if (n >= (int)sizeof ret_file->temporary)
		return problem(path, ENAMETOOLONG);
	int fd = open(ret_file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return problem(ret_file->temporary, errno);
	ret_file->file = fdopen(fd, "w");
	if (!ret_file->file) {
		close(fd);
		unlink(ret_file->temporary);
		return problem(ret_file->temporary, ENOMEM);
	}
	fputs("[\n", ret_file->file);
	snprintf(name, sizeof name, "session %s: commands", session);
	put_name(ret_file, "process_name", COMMANDS, 0, name);
	snprintf(name, sizeof name, "session %s: GPU", session);
	put_name(ret_file, "process_name", GPU, 0, name);
	return CKT_EXIT_DONE;
}

/* The number of the stream's track; streams beyond the most share one. */
static unsigned track_of(struct ckt_ctl_trace_file *file, uint64_t stream)
{
	char name[32];
	for (unsigned i = 0; i < file->stream_count; i++)
		if (file->streams[i] == stream)
			return i + 1;
	if (file->stream_count == CKT_CTL_TRACE_STREAMS)
		return CKT_CTL_TRACE_STREAMS + 1;
	file->streams[file->stream_count++] = stream;
	snprintf(name, sizeof name, "stream 0x%llx", (unsigned long long)stream);
	put_name(file, "thread_name", GPU, file->stream_count, name);
	return file->stream_count;
}

static json_t *arguments_of(const ckt_traced_call *call)
{
	char stream[32];
	json_t *args = json_pack("{s:I, s:b}", "bytes", (json_int_t)call->bytes, "waited",
		(call->flags & CKT_TRACED_WAITED) != 0);
	if (args && call->flags & CKT_TRACED_STREAM) {
		snprintf(stream, sizeof stream, "0x%llx", (unsigned long long)call->stream);
		json_object_set_new(args, "stream", json_string(stream));
	}
	if (args && call->flags & CKT_TRACED_LAUNCH) {
		const u_int *g = call->grid, *b = call->block;
		json_object_set_new(args, "kernel", ckt_ctl_json_text(call->kernel));
		json_object_set_new(args, "grid",
			json_pack(
				"[I, I, I]", (json_int_t)g[0], (json_int_t)g[1], (json_int_t)g[2]));
		json_object_set_new(args, "block",
			json_pack(
				"[I, I, I]", (json_int_t)b[0], (json_int_t)b[1], (json_int_t)b[2]));
	}
	return args;
}

static void put_call(struct ckt_ctl_trace_file *file, const ckt_traced_call *call)
{
	bool gpu = call->flags & CKT_TRACED_GPU;
	unsigned track = gpu ? track_of(file, call->stream) : call->thread;
	put(file,
		json_pack("{s:o, s:s, s:s, s:f, s:f, s:i, s:I, s:o}", "name",
			ckt_ctl_json_text(gpu && *call->kernel ? call->kernel : call->name), "cat",
			gpu ? "gpu" : "command", "ph", "X", "ts", (double)call->start_ns / 1000,
			"dur", (double)call->duration_ns / 1000, "pid", gpu ? GPU : COMMANDS, "tid",
			(json_int_t)track, "args", arguments_of(call)),
		",\n");
}

int ckt_ctl_trace_file_put(struct ckt_ctl_trace_file *file, const ckt_control_trace_res *res)
{
	errno = 0;
	for (u_int i = 0; i < res->calls.calls_len; i++)
		put_call(file, &res->calls.calls_val[i]);
	file->calls += res->calls.calls_len;
	file->dropped += res->dropped;
	return fflush(file->file) || ferror(file->file)
		? problem(file->temporary, errno ? errno : EIO)
		: CKT_EXIT_DONE;
}

int ckt_ctl_trace_file_keep(struct ckt_ctl_trace_file *file)
{
	put(file,
		json_pack("{s:s, s:s, s:i, s:i, s:{s:I}}", "name", "cricket_trace_end", "ph", "M",
			"pid", COMMANDS, "tid", 0, "args", "dropped_records",
			(json_int_t)file->dropped),
		"\n]\n");
	errno = 0;
	int failed = fflush(file->file) || ferror(file->file) || fsync(fileno(file->file));
	int error = errno ? errno : EIO;
	if (fclose(file->file) || failed)
		failed = 1;
	file->file = NULL;
	if (!failed && rename(file->temporary, file->path) == 0)
		return CKT_EXIT_DONE;
	error = failed ? error : errno;
	unlink(file->temporary);
	return problem(file->path, error);
}

void ckt_ctl_trace_file_drop(struct ckt_ctl_trace_file *file)
{
	if (file->file)
		fclose(file->file);
	file->file = NULL;
	unlink(file->temporary);
}
