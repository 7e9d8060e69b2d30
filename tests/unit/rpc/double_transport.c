/* SPDX-License-Identifier: Apache-2.0 */
/* A transport without a kernel; see double_transport.h. */
#include "tests/unit/rpc/double_transport.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* How much the next call may move, or -errno. */
static ssize_t next(struct double_transport *d, size_t size)
{
	size_t call = d->calls++;
	if (call >= d->step_count)
		return (ssize_t)size;
	int step = d->steps[call];
	return step > 0 && (size_t)step > size ? (ssize_t)size : step;
}

static ssize_t double_read(struct ckt_transport *t, void *data, size_t size)
{
	struct double_transport *d = (struct double_transport *)t;
	ssize_t n = next(d, size);
	if (n > 0 && (size_t)n > d->input_size)
		n = (ssize_t)d->input_size;
	if (n <= 0)
		return n ? n : -ECONNRESET;
	memcpy(data, d->input, (size_t)n);
	d->input += n;
	d->input_size -= (size_t)n;
	return n;
}

static ssize_t double_read_fd(struct ckt_transport *t, void *data, size_t size, int *ret_fd)
{
	struct double_transport *d = (struct double_transport *)t;
	ssize_t n = double_read(t, data, size);
	*ret_fd = n > 0 ? d->passes_fd : -1;
	if (n > 0)
		d->passes_fd = -1;
	return n;
}

static ssize_t double_write(struct ckt_transport *t, const void *data, size_t size)
{
	struct double_transport *d = (struct double_transport *)t;
	ssize_t n = next(d, size);
	if (n > 0) {
		memcpy(d->output + d->output_size, data, (size_t)n);
		d->output_size += (size_t)n;
	}
	return n;
}

static ssize_t double_write_fd(
	struct ckt_transport *t, const struct iovec *parts, size_t count, int pass_fd)
{
	struct double_transport *d = (struct double_transport *)t;
	size_t size = 0, moved = 0;
	for (size_t i = 0; i < count; i++)
		size += parts[i].iov_len;
	ssize_t n = next(d, size);
	for (size_t i = 0; n > 0 && i < count && moved < (size_t)n; i++) {
		size_t left = (size_t)n - moved,
		       part = parts[i].iov_len < left ? parts[i].iov_len : left;
		memcpy(d->output + d->output_size, parts[i].iov_base, part);
		d->output_size += part;
		moved += part;
	}
	if (n > 0 && pass_fd >= 0)
		d->passed_fd = pass_fd;
	return n;
}

static unsigned double_ready(struct ckt_transport *t, unsigned want)
{
	return ((struct double_transport *)t)->pending ? want & CKT_TRANSPORT_READ : 0;
}

static short double_events(struct ckt_transport *t, unsigned want)
{
	(void)t;
	return want & (CKT_TRANSPORT_READ | CKT_TRANSPORT_WRITE) ? POLLOUT : 0;
}

static bool double_vanished(struct ckt_transport *t, unsigned after_ms)
{
	(void)t;
	return after_ms < 5;
}

static int double_peer_process(struct ckt_transport *t, pid_t *ret_pid, uid_t *ret_uid)
{
	(void)t;
	(void)ret_pid;
	(void)ret_uid;
	return -EOPNOTSUPP;
}

static bool double_undelivered(struct ckt_transport *t)
{
	return ((struct double_transport *)t)->output_size > 0;
}

static void double_finish(struct ckt_transport *t)
{
	((struct double_transport *)t)->finished = true;
}

static void double_shutdown(struct ckt_transport *t)
{
	((struct double_transport *)t)->shut_down = true;
}

static void double_close(struct ckt_transport *t)
{
	((struct double_transport *)t)->closed = true;
}

static const struct ckt_transport_operations operations = {
	.name = "double",
	.read = double_read,
	.write = double_write,
	.read_fd = double_read_fd,
	.write_fd = double_write_fd,
	.ready = double_ready,
	.events = double_events,
	.vanished = double_vanished,
	.peer_process = double_peer_process,
	.undelivered = double_undelivered,
	.finish = double_finish,
	.shutdown = double_shutdown,
	.close = double_close,
};

void double_init(struct double_transport *d, const int *steps, size_t step_count)
{
	int ends[2];
	MUST(pipe(ends), 0);
	*d = (struct double_transport){.steps = steps,
		.step_count = step_count,
		.passes_fd = -1,
		.passed_fd = -1,
		.ready_fd = ends[1],
		.other_fd = ends[0]};
	d->transport.operations = &operations;
	d->transport.fd = ends[1];
}

void double_fini(struct double_transport *d)
{
	close(d->ready_fd);
	close(d->other_fd);
}
