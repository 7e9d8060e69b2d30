/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/wire_lane.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int lane_open(struct wire *w, bool right_secret)
{
	int first = w->fd;
	uint64_t executed = w->executed;
	w->fd = -1;
	ckt_hello_status status = wire_hello(w, CKT_HELLO_DATA, right_secret);
	int fd = w->fd;
	w->fd = first;
	w->executed = executed;
	return status == CKT_HELLO_OK ? fd : -1;
}

int lane_open_anew(struct wire *w)
{
	w->lane_set++;
	return lane_open(w, true);
}

void lane_say(int fd, uint32_t kind, uint32_t size, uint64_t piece)
{
	uint8_t bytes[CKT_LANE_HEAD_SIZE];
	ckt_lane_head_put(
		bytes, &(struct ckt_lane_head){.kind = kind, .size = size, .piece = piece});
	/* The worker may have ended the lane. */
	(void)!send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
}

void lane_send(int fd, uint64_t piece, uint32_t size, uint8_t value)
{
	struct ckt_transport t;
	uint8_t *data = malloc(size);
	memset(data, value, size);
	ckt_transport_init_socket(&t, fd);
	ckt_lane_frame_write(&t,
		&(struct ckt_lane_head){.kind = CKT_LANE_DATA, .size = size, .piece = piece}, data);
	free(data);
}

static bool read_all(int fd, void *data, size_t size)
{
	for (size_t have = 0; have < size;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n = poll(&p, 1, WIRE_GUARD_MS) == 1
			? recv(fd, (uint8_t *)data + have, size - have, 0)
			: -1;
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

struct ckt_lane_head lane_hear(int fd)
{
	uint8_t bytes[CKT_LANE_HEAD_SIZE];
	struct ckt_lane_head head = {0};
	if (read_all(fd, bytes, sizeof bytes))
		IS(ckt_lane_head_get(bytes, &head), 0);
	return head;
}

unsigned lane_wrong(int fd, uint32_t size, uint8_t value)
{
	uint8_t *data = calloc(1, size);
	unsigned wrong = !read_all(fd, data, size);
	for (uint32_t i = 0; i < size; i++)
		wrong += data[i] != value;
	free(data);
	return wrong;
}
