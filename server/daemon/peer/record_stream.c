/* SPDX-License-Identifier: Apache-2.0 */
/* Records without waiting; see record_stream.h. */
#include "server/daemon/peer/record_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rpc/record.h"

struct ckt_stream_out {
	struct ckt_stream_out *next;
	uint8_t mark[CKT_MARK_SIZE];
	uint8_t *data;
	size_t size, sent; /* sent counts the mark */
	int fd;
};

static void out_free(struct ckt_stream_out *out)
{
	if (out->fd >= 0)
		close(out->fd);
	free(out->data);
	free(out);
}

static void drop_queue(struct ckt_record_stream *stream)
{
	while (stream->out_first) {
		struct ckt_stream_out *out = stream->out_first;
		stream->out_first = out->next;
		out_free(out);
	}
	stream->out_last = &stream->out_first;
}

static void update_events(struct ckt_record_stream *stream)
{
	if (stream->source.fd >= 0)
		ckt_loop_change(stream->loop, &stream->source,
			(stream->finish                  ? 0
					: stream->paused ? EPOLLRDHUP
							 : EPOLLIN) |
				(stream->out_first ? EPOLLOUT : 0));
}

/* Writes the rest of a record in one call.  The descriptor goes with the first byte. */
static ssize_t write_some(struct ckt_record_stream *stream, const struct ckt_stream_out *out)
{
	struct iovec parts[2];
	size_t count = ckt_record_parts(out->mark, out->data, out->size, out->sent, parts);
	return ckt_transport_write_fd(&stream->transport, parts, count, out->sent ? -1 : out->fd);
}

/* 0 or -errno; the rest stays queued. */
static int flush(struct ckt_record_stream *stream)
{
	while (stream->out_first) {
		struct ckt_stream_out *out = stream->out_first;
		ssize_t n = write_some(stream, out);
		if (n == -EAGAIN)
			break;
		if (n < 0)
			return (int)n;
		out->sent += (size_t)n;
		if (out->sent < out->size + CKT_MARK_SIZE)
			continue;
		stream->out_first = out->next;
		if (!stream->out_first)
			stream->out_last = &stream->out_first;
		out_free(out);
	}
	update_events(stream);
	return 0;
}

static ssize_t read_some(struct ckt_record_stream *stream, void *data, size_t size)
{
	if (!stream->take_fds)
		return ckt_transport_read(&stream->transport, data, size);
	int fd;
	ssize_t n = ckt_transport_read_fd(&stream->transport, data, size, &fd);
	if (fd >= 0) {
		if (stream->passed_fd >= 0)
			close(stream->passed_fd);
		stream->passed_fd = fd;
	}
	return n;
}

/* 1: a whole record lies in stream->data; 0: more must come; -errno. */
static int read_record(struct ckt_record_stream *stream)
{
	for (;;) {
		bool mark = stream->have < CKT_MARK_SIZE;
		size_t at = mark ? stream->have : stream->have - CKT_MARK_SIZE;
		size_t want = (mark ? CKT_MARK_SIZE : stream->size) - at;
		if (want) {
			ssize_t n =
				read_some(stream, (mark ? stream->mark : stream->data) + at, want);
			if (n == -EAGAIN)
				return 0;
			if (n < 0)
				return (int)n;
			stream->have += (size_t)n;
			if ((size_t)n < want)
				continue;
		}
		if (!mark)
			return 1;
		int result = ckt_mark_get(stream->mark, stream->max_bytes, &stream->size);
		if (result)
			return result;
		stream->data = malloc(stream->size ? stream->size : 1);
		if (!stream->data)
			return -ENOMEM;
	}
}

static void stream_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_record_stream *stream = CKT_CONTAINER(source, struct ckt_record_stream, source);
	if (events & EPOLLOUT) {
		int result = flush(stream);
		bool unread = (result == -EPIPE || result == -ECONNRESET) && !stream->paused &&
			!stream->finish && events & EPOLLIN;
		if (result && !unread) {
			stream->closed(stream, result);
			return;
		}
		/* What the peer said before it ended comes first; the end is noticed after it. */
		if (result) {
			drop_queue(stream);
			update_events(stream);
		}
	}
	if (stream->finish && !stream->out_first) {
		stream->closed(stream, 0);
		return;
	}
	if (stream->paused || stream->finish) {
		if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
			stream->closed(stream, -ECONNRESET);
		return;
	}
	if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		return;
	/* One record per event, so that a busy peer cannot hold the loop. */
	int result = read_record(stream);
	if (result < 0) {
		stream->closed(stream, result);
	} else if (result > 0) {
		uint8_t *data = stream->data;
		int passed_fd = stream->passed_fd;
		stream->data = NULL;
		stream->have = 0;
		stream->passed_fd = -1;
		stream->record(stream, data, stream->size, passed_fd);
	}
}

int ckt_record_stream_init(struct ckt_record_stream *stream, struct ckt_loop *loop, int fd)
{
	stream->loop = loop;
	stream->have = 0;
	stream->data = NULL;
	stream->passed_fd = -1;
	stream->paused = stream->finish = false;
	stream->out_first = NULL;
	stream->out_last = &stream->out_first;
	stream->source = (struct ckt_source){.fd = fd, .ready = stream_ready};
	ckt_transport_init_socket(&stream->transport, fd);
	int result = ckt_loop_add(loop, &stream->source, EPOLLIN);
	if (result)
		stream->source.fd = -1;
	return result;
}

int ckt_record_stream_detach(struct ckt_record_stream *stream)
{
	int fd = stream->source.fd;
	if (fd < 0)
		return -1;
	ckt_loop_remove(stream->loop, &stream->source);
	ckt_transport_release(&stream->transport);
	free(stream->data);
	stream->data = NULL;
	if (stream->passed_fd >= 0)
		close(stream->passed_fd);
	stream->passed_fd = -1;
	drop_queue(stream);
	return fd;
}

void ckt_record_stream_fini(struct ckt_record_stream *stream)
{
	int fd = ckt_record_stream_detach(stream);
	if (fd < 0)
		return;
	/*
	 * Shuts down, so that the peer sees the end now: a recently forked child may still have a
	 * copy, and then close alone has no effect.
	 */
	ckt_transport_init_socket(&stream->transport, fd);
	ckt_transport_shutdown(&stream->transport);
	ckt_transport_close(&stream->transport);
}

void ckt_record_stream_pause(struct ckt_record_stream *stream, bool paused)
{
	stream->paused = paused;
	update_events(stream);
}

int ckt_record_stream_send(
	struct ckt_record_stream *stream, uint8_t *data, size_t size, int pass_fd)
{
	struct ckt_stream_out *out = calloc(1, sizeof *out);
	if (!out || stream->source.fd < 0) {
		free(data);
		if (pass_fd >= 0)
			close(pass_fd);
		/*
		 * Nobody waits for what was never sent: the loop notices the end of the connection.
		 */
		if (!out && stream->source.fd >= 0)
			ckt_transport_shutdown(&stream->transport);
		int error = out ? -EPIPE : -ENOMEM;
		free(out);
		return error;
	}
	ckt_mark_put(out->mark, size);
	out->data = data;
	out->size = size;
	out->fd = pass_fd;
	*stream->out_last = out;
	stream->out_last = &out->next;
	/*
	 * A failure is not reported in the middle of the caller's work: the loop notices it when it
	 * tries to write the rest.
	 */
	if (flush(stream))
		update_events(stream);
	return 0;
}

void ckt_record_stream_finish(struct ckt_record_stream *stream)
{
	stream->finish = true;
	/* With nothing left to write, the loop would not wake up by itself. */
	if (stream->source.fd >= 0)
		ckt_loop_change(stream->loop, &stream->source, EPOLLOUT);
}

size_t ckt_record_stream_queued(const struct ckt_record_stream *stream)
{
	size_t queued = 0;
	for (const struct ckt_stream_out *out = stream->out_first; out; out = out->next)
		queued += out->size + CKT_MARK_SIZE - out->sent;
	return queued;
}
