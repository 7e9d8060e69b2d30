/* SPDX-License-Identifier: Apache-2.0 */
/* The input buffer; see input.h. */
#include "server/worker/session/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/record.h"

enum { AHEAD_AT_FIRST = 64 << 10 };

int ckt_input_init(struct ckt_input *input)
{
	*input = (struct ckt_input){.data = malloc(CKT_INPUT_SIZE)};
	ckt_transport_init_socket(&input->transport, -1);
	pthread_mutex_init(&input->lock, NULL);
	return input->data ? 0 : -ENOMEM;
}

void ckt_input_connect(struct ckt_input *input, int fd)
{
	struct ckt_transport transport;
	ckt_transport_init_socket(&transport, fd);
	ckt_input_connect_over(input, &transport);
}

void ckt_input_connect_over(struct ckt_input *input, const struct ckt_transport *transport)
{
	pthread_mutex_lock(&input->lock);
	input->transport = *transport;
	input->head = input->tail = 0;
	input->ahead_head = input->ahead_tail = 0;
	atomic_store_explicit(&input->begun, 0, memory_order_relaxed);
	pthread_mutex_unlock(&input->lock);
}

/* Room behind tail for a record of any size.  Precondition: locked. */
static void make_room(struct ckt_input *input)
{
	if (input->head == input->tail) {
		input->head = input->tail = 0;
	} else if (CKT_INPUT_SIZE - input->head < CKT_RECORD_MAX + CKT_MARK_SIZE ||
		input->tail == CKT_INPUT_SIZE) {
		memmove(input->data, input->data + input->head, input->tail - input->head);
		input->tail -= input->head;
		input->head = 0;
	}
	atomic_store_explicit(&input->begun, input->head, memory_order_relaxed);
}

/* As ckt_input_receive.  Precondition: locked. */
static int receive_some(struct ckt_input *input, uint8_t *to, size_t room, size_t *tail)
{
	ssize_t n = ckt_transport_read(&input->transport, to, room);
	if (n < 0)
		return n == -EAGAIN ? 0 : (int)n;
	*tail += (size_t)n;
	return 1;
}

int ckt_input_receive(struct ckt_input *input)
{
	pthread_mutex_lock(&input->lock);
	make_room(input);
	size_t room = CKT_INPUT_SIZE - input->tail, waiting = input->ahead_tail - input->ahead_head;
	int result;
	if (waiting) {
		size_t n = waiting < room ? waiting : room;
		memcpy(input->data + input->tail, input->ahead + input->ahead_head, n);
		input->tail += n;
		input->ahead_head += n;
		if (input->ahead_head == input->ahead_tail)
			input->ahead_head = input->ahead_tail = 0;
		result = 1;
	} else {
		result = receive_some(input, input->data + input->tail, room, &input->tail);
	}
	pthread_mutex_unlock(&input->lock);
	return result;
}

void ckt_input_discard(struct ckt_input *input)
{
	pthread_mutex_lock(&input->lock);
	input->head = input->tail = input->ahead_head = input->ahead_tail = 0;
	atomic_store_explicit(&input->begun, 0, memory_order_relaxed);
	for (size_t dropped = 0; receive_some(input, input->data, CKT_INPUT_SIZE, &dropped) > 0;)
		;
	pthread_mutex_unlock(&input->lock);
}

/* ---- Looking ahead */

/* Precondition: locked. */
static bool take_ahead(struct ckt_input *input)
{
	bool some = false;
	for (;;) {
		if (input->ahead_tail == input->ahead_room) {
			size_t room = input->ahead_room ? 2 * input->ahead_room : AHEAD_AT_FIRST;
			uint8_t *larger =
				room <= CKT_INPUT_AHEAD_MAX ? realloc(input->ahead, room) : NULL;
			if (!larger)
				return some;
			input->ahead = larger;
			input->ahead_room = room;
		}
		/* An end or an error is the executor's to find: it finds it again. */
		if (receive_some(input, input->ahead + input->ahead_tail,
			    input->ahead_room - input->ahead_tail, &input->ahead_tail) <= 0)
			return some;
		some = true;
	}
}

/*
 * Copies from the stream, `at` bytes behind what is begun.  False where there is less.
 * Precondition: locked.
 */
static bool copy_out(
	const struct ckt_input *input, size_t begun, size_t at, uint8_t *to, size_t size)
{
	size_t here = input->tail - begun, there = input->ahead_tail - input->ahead_head;
	if (at + size > here + there)
		return false;
	size_t first = at < here ? (size < here - at ? size : here - at) : 0;
	memcpy(to, input->data + begun + at, first);
	if (first < size)
		memcpy(to + first, input->ahead + input->ahead_head + (at + first - here),
			size - first);
	return true;
}

bool ckt_input_look(struct ckt_input *input, ckt_input_visit visit, void *data)
{
	pthread_mutex_lock(&input->lock);
	bool taken = ckt_transport_open(&input->transport) && take_ahead(input);
	/*
	 * The executor may be beyond it by now; what it adds to or moves in `data` waits for the
	 * lock.
	 */
	size_t begun = atomic_load_explicit(&input->begun, memory_order_relaxed),
	       total = input->tail - begun + input->ahead_tail - input->ahead_head;
	for (size_t at = 0;;) {
		uint8_t bytes[CKT_CALL_HEADER_SIZE + CKT_INPUT_SEEN];
		struct ckt_call_header header;
		if (!copy_out(input, begun, at, bytes, CKT_MARK_SIZE))
			break;
		size_t size;
		if (ckt_mark_get(bytes, CKT_RECORD_MAX, &size) || size < CKT_CALL_HEADER_SIZE ||
			total - at < CKT_MARK_SIZE + size)
			break;
		size_t seen = size < sizeof bytes ? size : sizeof bytes;
		struct ckt_cursor record = {.p = bytes, .end = bytes + seen};
		if (!copy_out(input, begun, at + CKT_MARK_SIZE, bytes, seen) ||
			!ckt_call_header_get(&record, &header) || !visit(data, &header, &record))
			break;
		at += CKT_MARK_SIZE + size;
	}
	pthread_mutex_unlock(&input->lock);
	return taken;
}
